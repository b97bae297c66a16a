//! How several values become one where they meet in one input.

use crate::value::text;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// What becomes of several values for one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Strategy {
    /// The last one counts.
    #[default]
    LastWriteWins,
    /// Their text forms, joined with a blank line.
    Concat,
    /// A JSON array of them.
    Array,
    /// A JSON object of them, keyed by the label of their source.
    JsonObject,
}

impl Strategy {
    /// All strategies, in the order the format lists them.
    pub const ALL: [Strategy; 4] = [
        Strategy::LastWriteWins,
        Strategy::Concat,
        Strategy::Array,
        Strategy::JsonObject,
    ];

    /// The strategy with that name.
    pub fn parse(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// The name authors write.
    pub const fn as_str(self) -> &'static str {
        match self {
            Strategy::LastWriteWins => "last_write_wins",
            Strategy::Concat => "concat",
            Strategy::Array => "array",
            Strategy::JsonObject => "json_object",
        }
    }

    /// Applies the strategy, to a single value too. An array of what arrived
    /// stays an array when only one of several sources completed.
    ///
    /// Of two sources with one label, the later counts (`json_object`).
    pub fn combine(self, values: &[(&str, &Value)]) -> Option<Value> {
        let (_, last) = values.last()?;
        Some(match self {
            Strategy::LastWriteWins => (*last).clone(),
            Strategy::Concat => {
                let texts: Vec<_> = values.iter().map(|(_, value)| text(value)).collect();
                Value::String(texts.join("\n\n"))
            }
            Strategy::Array => values.iter().map(|(_, value)| (*value).clone()).collect(),
            Strategy::JsonObject => {
                let entry =
                    |(label, value): &(&str, &Value)| ((*label).to_owned(), (*value).clone());
                Value::Object(values.iter().map(entry).collect::<Map<_, _>>())
            }
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Strategy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The strategy for one label: the first edge's own, else the target's, else the default.
pub fn choose(first_edge: Option<Strategy>, target: Option<Strategy>) -> Strategy {
    first_edge.or(target).unwrap_or_default()
}

/// The values, each with the label of its source, as one. A single value is
/// that value; none is none.
pub fn merge(strategy: Strategy, values: &[(&str, &Value)]) -> Option<Value> {
    match values {
        [(_, only)] => Some((*only).clone()),
        _ => strategy.combine(values),
    }
}
