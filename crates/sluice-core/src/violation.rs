//! Violations of a schema, an argument declaration or a contract.
//!
//! All of them have one form, because one console shows them and one message returns them to an
//! agent. Lists are bounded: an answer with a million wrong items must not become a million
//! lines of journal.

use crate::choices::choices;
use crate::limits::VIOLATIONS_MAX;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

choices! {
    /// Why a value was not accepted.
    pub enum Reason, "a reason of a violation" {
        /// A required value is absent.
        MissingRequired = "missing_required",
        /// The value has another type than declared.
        TypeMismatch = "type_mismatch",
        /// The number is below its minimum.
        BelowMin = "below_min",
        /// The number is above its maximum.
        AboveMax = "above_max",
        /// The text has too few characters.
        TooShort = "too_short",
        /// The text has too many characters.
        TooLong = "too_long",
        /// The text does not match its pattern.
        PatternMismatch = "pattern_mismatch",
        /// The value is not one of the allowed values.
        EnumMismatch = "enum_mismatch",
        /// The name is not declared.
        UnknownField = "unknown_field",
        /// The envelope around an output is malformed or of another kind.
        InvalidEnvelope = "invalid_envelope",
        /// An output has no data that its schema could be applied to.
        SchemaViolation = "schema_violation",
        /// A layer of a prompt asks for what a stricter one forbids.
        ContradictsLayer = "contradicts_layer",
    }
}

/// One value that is not as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The path of the value: `a.b[0]`.
    pub field: String,
    /// The reason, for programs.
    pub reason: Reason,
    /// The message for people, which continues after the field: "is 12, above the maximum
    /// 10".
    pub message: String,
}

impl Violation {
    /// A violation of `field`.
    pub fn new(field: impl Into<String>, reason: Reason, message: impl Into<String>) -> Violation {
        Violation { field: field.into(), reason, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}

/// The violations found so far, up to the limit.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= VIOLATIONS_MAX
    }

    pub(crate) fn add(&mut self, field: &str, reason: Reason, message: impl Into<String>) {
        if !self.is_full() {
            self.0.push(Violation::new(field, reason, message));
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}

/// A schema that no value can satisfy, or that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The keys that lead to the culprit, starting at the schema: `["properties", "risk",
    /// "enum", "2"]`.
    pub path: Vec<String>,
    /// The message: lower case, no full stop.
    pub message: String,
}

impl Contradiction {
    /// A contradiction at `path`.
    pub fn new(path: &[&str], message: impl Into<String>) -> Contradiction {
        Contradiction {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            message: message.into(),
        }
    }

    /// Prefixes the path.
    #[must_use]
    pub fn within(mut self, outer: &[&str]) -> Contradiction {
        let outer = outer.iter().map(|key| (*key).to_owned());
        self.path.splice(0..0, outer);
        self
    }
}

/// The maximum length of an excerpt of a value in a message, in characters.
const EXCERPT_CHARS_MAX: usize = 60;
/// The maximum number of allowed values in a message.
const LISTED_MAX: usize = 10;

/// A value for a message: JSON, shortened.
pub(crate) fn excerpt(value: &Value) -> String {
    let text = match value {
        // Cut before quoting: a text may have megabytes.
        Value::String(text) => match text.char_indices().nth(EXCERPT_CHARS_MAX) {
            Some((cut, _)) => return format!("{}…", Value::from(&text[..cut])),
            None => return value.to_string(),
        },
        other => other.to_string(),
    };
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The first few allowed values, for a message.
pub(crate) fn listed(values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(LISTED_MAX).map(excerpt).collect();
    if values.len() > LISTED_MAX {
        shown.push(format!("… ({} in all)", values.len()));
    }
    shown.join(", ")
}

/// The name of a type with its article, for messages.
pub(crate) fn a(type_name: &str) -> String {
    match type_name {
        "null" => "null".to_owned(),
        "any" => "anything".to_owned(),
        "json" => "JSON".to_owned(),
        "url" => "a URL".to_owned(),
        "array" | "integer" | "object" => format!("an {type_name}"),
        _ => format!("a {type_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reasons_read_the_same_in_json_and_as_text() {
        for reason in [
            Reason::MissingRequired,
            Reason::TypeMismatch,
            Reason::BelowMin,
            Reason::AboveMax,
            Reason::TooShort,
            Reason::TooLong,
            Reason::PatternMismatch,
            Reason::EnumMismatch,
            Reason::UnknownField,
            Reason::InvalidEnvelope,
            Reason::SchemaViolation,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.to_string(), reason.as_str());
            assert_eq!(crate::choice::find(reason.as_str()), Some(reason));
        }
        assert_eq!(crate::choice::find::<Reason>("because"), None);
    }

    #[test]
    fn a_violation_reads_as_a_sentence_and_as_json() {
        let violation = Violation::new("a.b[0]", Reason::AboveMax, "is 12, above the maximum 10");
        assert_eq!(violation.to_string(), "a.b[0] is 12, above the maximum 10");
        assert_eq!(
            serde_json::to_value(&violation).unwrap(),
            json!({"field": "a.b[0]", "reason": "above_max", "message": "is 12, above the maximum 10"})
        );
    }

    #[test]
    fn the_list_of_violations_is_bounded() {
        let mut found = Violations::default();
        for at in 0..VIOLATIONS_MAX + 5 {
            assert_eq!(found.is_full(), at >= VIOLATIONS_MAX);
            found.add("x", Reason::TooLong, "is long");
        }
        assert_eq!(found.into_vec().len(), VIOLATIONS_MAX);
    }

    #[test]
    fn excerpts_and_lists_are_cut_short() {
        assert_eq!(excerpt(&json!("é".repeat(60))), format!("\"{}\"", "é".repeat(60)));
        assert_eq!(excerpt(&json!("é".repeat(61))), format!("\"{}\"…", "é".repeat(60)));
        assert_eq!(excerpt(&json!([1, 2])), "[1,2]");
        let long = excerpt(&json!(vec![1; 100]));
        assert_eq!(long.chars().count(), 61);
        assert!(long.starts_with("[1,1,") && long.ends_with('…'));

        let ten: Vec<Value> = (0..10).map(Value::from).collect();
        assert_eq!(listed(&ten), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
        let eleven: Vec<Value> = (0..11).map(Value::from).collect();
        assert_eq!(listed(&eleven), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (11 in all)");
    }

    #[test]
    fn types_get_their_article() {
        for (name, noun) in [
            ("null", "null"),
            ("any", "anything"),
            ("array", "an array"),
            ("integer", "an integer"),
            ("object", "an object"),
            ("string", "a string"),
            ("url", "a URL"),
            ("json", "JSON"),
        ] {
            assert_eq!(a(name), noun);
        }
    }

    #[test]
    fn a_contradiction_is_seen_from_further_out() {
        let inner = Contradiction::new(&["enum", "2"], "does not fit");
        assert_eq!(inner.within(&["properties", "a"]).path, ["properties", "a", "enum", "2"]);
    }
}
