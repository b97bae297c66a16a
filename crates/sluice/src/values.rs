//! Draws named values and texts, indented under a heading.

use crate::out::harmless;
use serde_json::{Value, json};
use sluice_core::visible;

/// `name: value`; a text of several lines follows below its name.
pub(crate) fn named(name: &str, value: &Value) -> String {
    let name = visible::brief(name);
    match value {
        Value::String(text) if text.trim_end().contains('\n') => {
            format!("  {name}:\n{}", block("    ", text))
        }
        Value::String(text) => format!("  {name}: {}\n", visible::line(text.trim_end())),
        value => format!("  {name}: {}\n", harmless(value.to_string())),
    }
}

/// Indents every line of a text.
pub(crate) fn block(indent: &str, text: &str) -> String {
    let mut drawn = String::new();
    for line in text.trim_end().lines() {
        drawn.push_str(format!("{indent}{}", visible::line(line)).trim_end());
        drawn.push('\n');
    }
    drawn
}

/// The answer of a failed attempt: its text, else its outputs; empty without an answer.
pub(crate) fn answered(answer: &Value) -> String {
    let text = answer["text"].as_str().map(str::trim_end).filter(|text| !text.is_empty());
    let outputs = answer["outputs"].as_object().filter(|outputs| !outputs.is_empty());
    match (text, outputs) {
        (Some(text), _) => text.to_owned(),
        (None, Some(outputs)) => harmless(json!(outputs).to_string()),
        (None, None) => String::new(),
    }
}
