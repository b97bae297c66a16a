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

/// `code: message`, or only the code where the message repeats it: a violated contract has no
/// message of its own, and its violations are shown apart.
pub(crate) fn failure(code: &str, message: &str) -> String {
    match [code, message] {
        [one, other] if one == other => one.to_owned(),
        both => both.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": "),
    }
}

/// The violations of a contract: the field, then the message or, without one, the reason.
pub(crate) fn violations(errors: &Value) -> Vec<String> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let drawn = |one: &Value| {
        let message = Some(text(one, "message")).filter(|message| !message.is_empty());
        format!("{} {}", text(one, "field"), message.unwrap_or_else(|| text(one, "reason")))
    };
    errors.as_array().into_iter().flatten().map(drawn).collect()
}

/// The answer of a failed attempt or of a tool: its text, else its fields; empty without an
/// answer.
pub(crate) fn answered(answer: &Value) -> String {
    let text = answer["text"].as_str().map(str::trim_end).filter(|text| !text.is_empty());
    let outputs = ["outputs", "structured"].into_iter().find_map(|name| answer[name].as_object());
    let outputs = outputs.filter(|outputs| !outputs.is_empty());
    match (text, outputs) {
        (Some(text), _) => text.to_owned(),
        (None, Some(outputs)) => harmless(json!(outputs).to_string()),
        (None, None) => String::new(),
    }
}
