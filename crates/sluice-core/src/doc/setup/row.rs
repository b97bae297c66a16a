//! Reads rows by the forms of their fields, which `row!` declares in `sluice_govern::registry`.
//!
//! A reader checks a row and keeps nothing of it: the row that is stored is read from the same
//! text by its own type.

use super::texts;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::flow_labels::FlowLabels;
use crate::doc::leaf::{unknown_word, whole_number};
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::schema::{Defs, Field, object};
use crate::money::Money;
use crate::node::Node;
use serde_json::{Map, Value, json};
use sluice_govern::registry::{FieldForm, Form, Need, RowForm, RowType};
use std::marker::PhantomData;

/// A row of type `R`.
#[derive(Debug, Clone)]
pub(crate) struct Written<R>(PhantomData<R>);

impl<R: RowType> Read for Written<R> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Written<R>> {
        read_fields(&R::ROW, node, cx).map(|_| Written(PhantomData))
    }

    fn schema(defs: &mut Defs) -> Value {
        row_schema(&R::ROW, defs)
    }
}

/// The fields of a row that could be read.
pub(super) struct ReadFields<'n>(Vec<(&'static str, &'n Node<'n>)>);

impl<'n> ReadFields<'n> {
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'n>> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, node)| *node)
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, node)| ((*name).to_owned(), node.to_value())).collect()
    }
}

/// The fields that setups may write.
fn written(row: &RowForm) -> impl Iterator<Item = &'static FieldForm> + use<> {
    row.fields.iter().filter(|field| field.need != Need::Maintained)
}

pub(super) fn read_fields<'n>(
    row: &RowForm,
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<ReadFields<'n>> {
    let entries = cx.map(node)?;
    let mut fields = Vec::new();
    for entry in entries {
        let Some(field) = written(row).find(|field| field.key == entry.key) else {
            let known: Vec<&str> = written(row).map(|field| field.key).collect();
            cx.unknown_field(entry, &known);
            continue;
        };
        let read = |cx: &mut DocumentReader<'n, '_>| read(&field.form, &entry.value, cx);
        if !entry.value.is_null() && cx.within(PathPart::Key(&entry.key), read).is_some() {
            fields.push((field.key, &entry.value));
        }
    }
    let required = written(row).filter(|field| field.need == Need::Required);
    let required: Vec<&str> = required.map(|field| field.key).collect();
    cx.require(node.span, entries, &required);
    Some(ReadFields(fields))
}

/// Reads a value, or reports why it cannot.
fn read<'n>(form: &Form, node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    match form {
        Form::Text => cx.text(node).map(drop),
        Form::Prose(bytes_max) => prose(*bytes_max, node, cx),
        Form::Flag => bool::read(node, cx).map(drop),
        Form::Json => Some(()),
        Form::Cents => Money::read(node, cx).map(drop),
        Form::Number(min, max) => whole_number(node, cx, *min..=*max).map(drop),
        Form::Word(what, words) => {
            let word = cx.text(node)?;
            let known = words.contains(&word);
            if !known {
                unknown_word(node, word, what, words, cx);
            }
            known.then_some(())
        }
        Form::List(form) => {
            for (index, item) in cx.list(node)?.iter().enumerate() {
                cx.within(PathPart::Index(index), |cx| read(form, item, cx));
            }
            Some(())
        }
        Form::Table(form) => {
            for entry in cx.map(node)? {
                cx.within(PathPart::Key(&entry.key), |cx| read(form, &entry.value, cx));
            }
            Some(())
        }
        Form::Row(row) => read_fields(row, node, cx).map(drop),
        Form::GatewayUrl => texts::gateway_url(node, cx),
        Form::WebhookUrl => texts::webhook_url(node, cx),
        Form::Events => texts::events(node, cx),
        Form::Secret => texts::secret(node, cx),
        Form::BodyPath => texts::body_path(node, cx),
        Form::FlowLabels => FlowLabels::read(node, cx).map(drop),
    }
}

fn prose<'n>(bytes_max: usize, node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<()> {
    let text = cx.text(node)?;
    if text.len() > bytes_max {
        let message = format!("the text is {} bytes; the limit is {bytes_max}", text.len());
        cx.add(Problem::new(Code::BadValue, node.span, message));
        return None;
    }
    Some(())
}

pub(super) fn row_schema(row: &RowForm, defs: &mut Defs) -> Value {
    defs.define(row.name, |defs| {
        let fields = written(row).map(|field| Field {
            key: field.key,
            about: field.about,
            required: field.need == Need::Required,
            schema: schema(&field.form, defs),
        });
        let fields = fields.collect();
        object(defs.spelling(), row.about, fields)
    })
}

/// The JSON Schema of what `read` accepts.
fn schema(form: &Form, defs: &mut Defs) -> Value {
    match form {
        Form::Text | Form::BodyPath => json!({ "type": "string" }),
        Form::Prose(bytes_max) => json!({ "type": "string", "maxLength": bytes_max }),
        Form::Flag => bool::schema(defs),
        Form::Json => json!({}),
        Form::Cents => Money::schema(defs),
        Form::Number(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::Word(_, words) => json!({ "enum": words }),
        Form::List(form) => json!({ "type": "array", "items": schema(form, defs) }),
        Form::Table(form) => {
            json!({ "type": "object", "additionalProperties": schema(form, defs) })
        }
        Form::Row(row) => row_schema(row, defs),
        Form::GatewayUrl | Form::WebhookUrl => json!({ "type": "string", "format": "uri" }),
        Form::Events => json!({ "type": "array", "items": { "enum": texts::event_names() } }),
        Form::Secret => json!({ "type": "string", "pattern": texts::REFERENCE }),
        Form::FlowLabels => FlowLabels::schema(defs),
    }
}
