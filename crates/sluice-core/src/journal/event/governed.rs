//! What governance says of a dispatch.

use crate::money::Money;
use serde_json::Value;
use sluice_govern::decision::{Constraints, Known, expand};
use sluice_govern::registry::Price;
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

/// What a dispatch has taken, and what it must keep to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The agent whose slot it holds.
    pub slot: Option<String>,
    /// What is reserved for it, in each account.
    pub reserved: Money,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// What whoever does it must keep to.
    pub constraints: Constraints,
    /// The model, where the agent's row names it.
    pub model: Option<String>,
    /// Longest answer, where the money bounds it.
    pub max_output_tokens: Option<u64>,
    /// What the model cost when the money was reserved.
    pub price: Option<Price>,
}

/// An account that money was reserved in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: Arc<str>,
    /// The cap on it when the money was reserved.
    pub cap: Money,
}
