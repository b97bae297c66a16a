//! Edge conditions that test only the carried value.

use crate::value::{text, truthy};
use crate::wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A test of the value at an edge's `source_output_key`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Test {
    /// Its text equals the text of this value: 5 equals "5".
    #[serde(deserialize_with = "wire::value")]
    Equals(Value),
    /// It is a text that contains this text.
    #[serde(deserialize_with = "wire::value")]
    Contains(Value),
    /// It is neither null nor the empty text.
    Present,
    /// It is not null, false, 0 or the empty text.
    Truthy,
}

impl Test {
    /// Whether the test holds for `value`.
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
