//! `source_output_key`: the part of a node's output that an edge carries.

use crate::contract::envelope::Envelope;
use crate::value::text;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A parsed `source_output_key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputKey {
    segments: Vec<String>,
}

impl Default for OutputKey {
    fn default() -> OutputKey {
        OutputKey::parse("")
    }
}

impl OutputKey {
    /// Parses a key; every text is valid. The empty text means `output`.
    pub fn parse(text: &str) -> OutputKey {
        let text = if text.is_empty() { "output" } else { text };
        OutputKey { segments: text.split('.').map(str::to_owned).collect() }
    }

    /// The field of the data that the key names, if the data has it; `None` if it names
    /// another part of the envelope, or less than a field.
    pub(crate) fn field(&self) -> Option<&str> {
        const PARTS: [&str; 6] = ["output", "data", "media", "metadata", "kind", "artifactKind"];
        match self.segments.as_slice() {
            [data, field] if data == "data" => Some(field),
            [field] if !PARTS.contains(&field.as_str()) => Some(field),
            _ => None,
        }
    }

    /// The value at the key: first in the envelope, then in its `data`, else the whole
    /// output as text.
    ///
    /// A null or an empty text that is present is a value.
    pub fn resolve<'a>(&self, envelope: &'a Envelope) -> Cow<'a, Value> {
        let in_envelope = || {
            let (first, rest) = self.segments.split_first()?;
            match envelope_field(envelope, first)? {
                Cow::Borrowed(value) => walk(value, rest).map(Cow::Borrowed),
                Cow::Owned(value) => rest.is_empty().then_some(Cow::Owned(value)),
            }
        };
        let in_data = || {
            let data = envelope.data.as_ref()?;
            walk(data, &self.segments).map(Cow::Borrowed)
        };
        in_envelope().or_else(in_data).unwrap_or_else(|| whole(&envelope.output))
    }
}

impl fmt::Display for OutputKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.segments.join("."))
    }
}

impl Serialize for OutputKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A part of the envelope by its name in JSON, if it is present.
fn envelope_field<'a>(envelope: &'a Envelope, name: &str) -> Option<Cow<'a, Value>> {
    let owned = |text: &Option<String>| text.clone().map(|text| Cow::Owned(Value::String(text)));
    match name {
        "output" => Some(Cow::Borrowed(&envelope.output)),
        "data" => envelope.data.as_ref().map(Cow::Borrowed),
        "media" => envelope.media.as_ref().map(Cow::Borrowed),
        "metadata" => envelope.metadata.as_ref().map(Cow::Borrowed),
        "kind" => owned(&envelope.kind),
        "artifactKind" => owned(&envelope.artifact_kind),
        _ => None,
    }
}

fn walk<'a>(value: &'a Value, segments: &[String]) -> Option<&'a Value> {
    segments.iter().try_fold(value, |value, segment| match value {
        Value::Object(map) => map.get(segment),
        Value::Array(items) => items.get(index(segment)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Digits only: the standard library would also parse "+1".
fn index(segment: &str) -> Option<usize> {
    let digits = segment.bytes().all(|b| b.is_ascii_digit());
    if digits { segment.parse().ok() } else { None }
}

fn whole(output: &Value) -> Cow<'_, Value> {
    match output {
        Value::String(_) => Cow::Borrowed(output),
        other => Cow::Owned(Value::String(text(other).into_owned())),
    }
}
