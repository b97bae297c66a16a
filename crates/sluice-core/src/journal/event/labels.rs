//! Labels of values, in the payloads that carry them.

use crate::journal::declare::form::{Form, Unless};
use crate::journal::declare::{Read, payload};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::malformed;
use crate::journal::wire::object::PayloadWriter;
use crate::origin::{
    FieldLabels, FlowLabels, Labels, PassedLabels, WrittenFields, WrittenFlow, WrittenLabels,
};
use serde_json::{Value, json};

payload! {
    impl PassedLabels {
        labels: Labels = "labels" as Unless<LabelsForm>, Whole;
        field_labels: FieldLabels = "fieldLabels" as Unless<FieldLabelsForm>, Whole;
    }
}

/// Labels as an object that leaves out what is not set.
pub(super) struct LabelsForm;

impl Form<Labels> for LabelsForm {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, labels: &Labels) {
        payload.field(name, &WrittenLabels::from(labels));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Labels> {
        let written: WrittenLabels<'_> = fields.need(name)?;
        written.read().ok_or_else(|| malformed("labels: unknown source class"))
    }

    fn schema() -> Value {
        let names = json!({"type": "array", "items": {"type": "string"}});
        json!({"type": "object", "properties": {
            "classes": names,
            "untrusted": {"type": "boolean"}, "private": {"type": "boolean"},
            "since": {"type": "integer"},
            "origins": names, "without": names, "secrecy": names,
            "control": {"type": "boolean"},
        }})
    }
}

/// Named labels, all of them.
pub(super) struct FlowLabelsForm;

impl Form<FlowLabels> for FlowLabelsForm {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, labels: &FlowLabels) {
        payload.field(name, &WrittenFlow::from(labels));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<FlowLabels> {
        let written: WrittenFlow<'_> = fields.need(name)?;
        Ok(written.read())
    }

    fn schema() -> Value {
        let names = json!({"type": "array", "items": {"type": "string"}});
        json!({"type": "object", "properties": {
            "origins": names, "secrecy": names, "control": {"type": "boolean"},
        }})
    }
}

/// Named labels of fields, by name.
pub(super) struct FieldLabelsForm;

impl Form<FieldLabels> for FieldLabelsForm {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, labels: &FieldLabels) {
        payload.field(name, &labels.written());
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<FieldLabels> {
        let written: WrittenFields<'_> = fields.need(name)?;
        Ok(FieldLabels::read(&written))
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": FlowLabelsForm::schema()})
    }
}
