//! Edge conditions that look at the edge's own value only.

use crate::value::{text, truthy};
use crate::wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to the value at an edge's `source_output_key`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Test {
    /// Its text form is that of this value: 5 equals "5".
    #[serde(deserialize_with = "wire::value")]
    Equals(Value),
    /// It is a text and this text occurs in it.
    #[serde(deserialize_with = "wire::value")]
    Contains(Value),
    /// It is neither null nor the empty text.
    Present,
    /// It is none of null, false, 0 and the empty text.
    Truthy,
}

impl Test {
    /// Whether the edge carries `value`.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            Test::Equals(expected) => text(value) == text(expected),
            Test::Contains(part) => match (value, part) {
                (Value::String(value), Value::String(part)) => value.contains(part),
                _ => false,
            },
            Test::Present => !value.is_null() && value != "",
            Test::Truthy => truthy(value),
        }
    }
}
