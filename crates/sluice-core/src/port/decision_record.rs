//! A decision of the gates as it is journalled.

use serde_json::Value;
use sluice_govern::decision::{Known, expand};
use std::sync::Arc;

/// A decision of the gates as the text of a JSON object. It is written once. People and
/// back-tests read it; the state of a run never depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(Arc<String>);

impl Record {
    /// Wraps the text of a JSON object.
    pub fn new(text: impl Into<String>) -> Record {
        let text = text.into();
        debug_assert!(text.starts_with('{') && text.ends_with('}'), "a record is an object");
        Record(Arc::new(text))
    }

    /// The text of the JSON object.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The record as it is written.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The record in full, even if it was written in the short form.
    pub fn whole(&self, known: &Known<'_>) -> Value {
        match self.value() {
            Value::Object(record) => Value::Object(expand(record, known)),
            other => other,
        }
    }
}
