//! A decision of the gates as it is journalled.

use serde_json::Value;
use sluice_govern::decision::{Known, expand};
use std::sync::Arc;

/// What the gates decided, as it is written: the text of a JSON object. It is
/// made once and read by people and back-tests, never by the fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(Arc<String>);

impl Record {
    /// The text of an object.
    pub fn new(text: impl Into<String>) -> Record {
        let text = text.into();
        debug_assert!(text.starts_with('{') && text.ends_with('}'), "a record is an object");
        Record(Arc::new(text))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// As a value, as it is written.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// As a value, whole, even if it was written in brief.
    pub fn whole(&self, known: &Known<'_>) -> Value {
        match self.value() {
            Value::Object(record) => Value::Object(expand(record, known)),
            other => other,
        }
    }
}
