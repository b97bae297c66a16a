//! The output envelope of a lens node.

use crate::value::type_name;
use crate::violation::{Reason, Violation, a};
use serde::Serialize;
use serde_json::{Map, Value};

/// `{kind, artifactKind, output, data?, media?, metadata?}`.
///
/// A part that is present but null is `Some(Null)`, so that an edge can refer to it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The kind of output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the output is, in the agent's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_kind: Option<String>,
    /// The output itself; null if there is none.
    pub output: Value,
    /// Structured results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Pictures, sound and other files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Value>,
    /// More metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

impl Envelope {
    /// Reads an envelope; unknown keys are dropped.
    pub fn from_value(value: &Value) -> Result<Envelope, Violation> {
        let Value::Object(map) = value else {
            let message = format!("is {}, not an object", a(type_name(value)));
            return Err(Violation::new("envelope", Reason::InvalidEnvelope, message));
        };
        let metadata = map.get("metadata");
        if let Some(other) = metadata.filter(|value| !value.is_object() && !value.is_null()) {
            let message = format!("is {}, not an object", a(type_name(other)));
            return Err(Violation::new("metadata", Reason::InvalidEnvelope, message));
        }
        Ok(Envelope {
            kind: text_of(map, "kind")?,
            artifact_kind: text_of(map, "artifactKind")?,
            output: map.get("output").cloned().unwrap_or_default(),
            data: map.get("data").cloned(),
            media: map.get("media").cloned(),
            metadata: metadata.cloned(),
        })
    }

    /// The violation for an empty output, which no contract allows: no output, no media and
    /// no data.
    pub(crate) fn emptiness(&self) -> Option<Violation> {
        let no_output = self.output.is_null() || self.output == "";
        let empty =
            no_output && holds_nothing(self.media.as_ref()) && holds_nothing(self.data.as_ref());
        empty.then(|| Violation::new("output", Reason::MissingRequired, "is empty"))
    }
}

fn text_of(map: &Map<String, Value>, key: &str) -> Result<Option<String>, Violation> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            let message = format!("is {}, not a string", a(type_name(other)));
            Err(Violation::new(key, Reason::InvalidEnvelope, message))
        }
    }
}

/// An empty list of media or an object without data is empty.
fn holds_nothing(part: Option<&Value>) -> bool {
    match part {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}
