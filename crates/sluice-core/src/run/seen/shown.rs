//! A tool call as approvers see it: its arguments, and where each value was seen.

use crate::journal::event::{ShownArgument, StepAt};
use crate::limits::{SHOWN_ASKED_CHARS_MAX, SHOWN_LINE_CHARS_MAX, SHOWN_VALUE_CHARS_MAX};
use crate::run::state::Run;
use serde_json::{Map, Value};
use sluice_govern::facts::{CallFacts, SeenIn};
use std::borrow::Cow;

/// Stands for a value of another step in what the caller asked for.
const GAP: &str = "[…]";

/// The arguments of a call: its input, if that is an object.
pub(crate) fn arguments(input: &Value) -> Cow<'_, Map<String, Value>> {
    match input {
        Value::Object(input) => Cow::Borrowed(input),
        other => Cow::Owned(Map::from_iter([("input".to_owned(), other.clone())])),
    }
}

/// The arguments of a call in their order, the fields of objects one by one.
pub(crate) fn shown_arguments(input: &Map<String, Value>, call: &CallFacts) -> Vec<ShownArgument> {
    let mut shown = Vec::new();
    show(input, "", call, &mut shown);
    shown
}

fn show(input: &Map<String, Value>, above: &str, call: &CallFacts, shown: &mut Vec<ShownArgument>) {
    for (name, value) in input {
        let path = format!("{above}{name}");
        if let Value::Object(fields) = value
            && !fields.is_empty()
        {
            show(fields, &format!("{path}."), call, shown);
            continue;
        }
        let facts = call.arguments.get(&path).cloned().unwrap_or_default();
        shown.push(ShownArgument {
            path,
            seen: facts.seen.into_iter().collect(),
            mentions: facts.mentions.into_iter().collect(),
            carries: facts.carries.into_iter().collect(),
        });
    }
}

/// The question to an approver: `Let STEP call TOOL?`, and each argument with the places where
/// its value was seen.
pub(crate) fn question(
    step: &str,
    tool: &str,
    input: &Map<String, Value>,
    shown: &[ShownArgument],
) -> String {
    let line = |argument: &ShownArgument| {
        let value = argument.value(input).map_or_else(String::new, short);
        let places = argument.places();
        let places = if places.is_empty() { places } else { format!(" ({places})") };
        format!("{} {value}{places}", plain(&argument.path))
    };
    let lines: Vec<String> = shown.iter().map(line).collect();
    let one = lines.join(", ");
    let question = format!("Let `{step}` call {tool}?");
    if one.chars().count() <= SHOWN_LINE_CHARS_MAX {
        return format!("{question} {one}").trim_end().to_owned();
    }
    format!("{question}\n{}", lines.join("\n"))
}

/// A value on one line, cut if it is long.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => plain(text),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A text as it is if it is one plain word, else in quotes: it must not look like another
/// argument.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "@._+-:/#%$€£".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

impl ShownArgument {
    /// Its value in the arguments of the call.
    pub fn value<'v>(&self, input: &'v Map<String, Value>) -> Option<&'v Value> {
        if let Some(value) = input.get(&self.path) {
            return Some(value);
        }
        // A name may have dots itself.
        self.path.match_indices('.').find_map(|(dot, _)| {
            let fields = input.get(&self.path[..dot])?.as_object()?;
            let below = ShownArgument { path: self.path[dot + 1..].to_owned(), ..self.clone() };
            below.value(fields)
        })
    }

    /// Where its value was seen, in words.
    pub fn places(&self) -> String {
        let places = |classes: &[SeenIn]| {
            let words: Vec<&str> = classes.iter().map(|class| place(*class)).collect();
            words.join(", ")
        };
        let is_trusted = |class: &&SeenIn| matches!(class, SeenIn::Prompt | SeenIn::Records);
        let mut parts = Vec::new();
        if self.seen == [SeenIn::Private, SeenIn::Stranger, SeenIn::Nowhere] {
            // A text is missing with which the value would have to be compared.
            return "may come from a stranger".to_owned();
        }
        if !self.seen.is_empty() {
            parts.push(format!("seen {}", places(&self.seen)));
        }
        let doubtful = self.mentions.iter().filter(|class| !is_trusted(class));
        let doubtful: Vec<SeenIn> = doubtful.copied().collect();
        if !doubtful.is_empty() && doubtful != self.seen {
            parts.push(format!("has an address that was seen {}", places(&doubtful)));
        }
        for class in &self.carries {
            parts.push(match class {
                SeenIn::Private => "repeats private data".to_owned(),
                _ => "repeats a stranger's text".to_owned(),
            });
        }
        parts.join("; ")
    }
}

fn place(class: SeenIn) -> &'static str {
    match class {
        SeenIn::Prompt => "in the prompt",
        SeenIn::Records => "in records",
        SeenIn::Private => "in private data",
        SeenIn::Stranger => "in a stranger's text",
        SeenIn::Nowhere => "nowhere",
    }
}

impl Run {
    /// What the caller asked a step for: its prompt without the values of other steps, or the
    /// arguments of the run.
    pub(crate) fn asked_for(&self, at: StepAt) -> Option<String> {
        let caller = self.caller_values();
        let prompt = caller.text(self, at.step, GAP);
        let is_empty = prompt.replace(GAP, "").trim().is_empty();
        let asked = if is_empty { caller.args() } else { prompt };
        let end = asked.char_indices().nth(SHOWN_ASKED_CHARS_MAX);
        let asked = match end {
            Some((end, _)) => format!("{}…", &asked[..end]),
            None => asked,
        };
        (!asked.trim().is_empty()).then_some(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn argument(path: &str, seen: &[SeenIn]) -> ShownArgument {
        let (mentions, carries) = (Vec::new(), Vec::new());
        ShownArgument { path: path.to_owned(), seen: seen.to_vec(), mentions, carries }
    }

    #[test]
    fn a_question_names_each_value_and_where_it_was_seen() {
        let input = json!({"amount": 740, "note": "a, b (seen in the prompt)", "flag": true});
        let input = input.as_object().unwrap();
        let shown = [
            argument("amount", &[SeenIn::Nowhere]),
            argument("note", &[SeenIn::Prompt, SeenIn::Stranger]),
            argument("flag", &[]),
        ];
        assert_eq!(
            question("refund", "pay.refund", input, &shown),
            "Let `refund` call pay.refund? amount 740 (seen nowhere), note \"a, b (seen in the \
             prompt)\" (seen in the prompt, in a stranger's text), flag true"
        );
        assert_eq!(question("a", "b.c", &Map::new(), &[]), "Let `a` call b.c?");
    }

    #[test]
    fn long_arguments_have_a_line_each() {
        let input = json!({"text": "x".repeat(500), "to": "ada"});
        let shown = [argument("text", &[SeenIn::Nowhere]), argument("to", &[SeenIn::Prompt])];
        let asked = question("a", "m.send", input.as_object().unwrap(), &shown);
        let lines: Vec<&str> = asked.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with("… (seen nowhere)"), "{asked}");
        assert_eq!(lines[2], "to ada (seen in the prompt)");
    }

    #[test]
    fn a_field_is_found_by_its_path() {
        let input = json!({"a": {"b.c": {"d": 1}}, "a.b": 2, "e": [{"f": 3}]});
        let input = input.as_object().unwrap();
        let shown = shown_arguments(input, &CallFacts::default());
        let values: Vec<_> =
            shown.iter().map(|one| (one.path.as_str(), one.value(input).unwrap())).collect();
        let expected = [("a.b.c.d", &json!(1)), ("a.b", &json!(2)), ("e", &json!([{"f": 3}]))];
        assert_eq!(values, expected);
    }

    #[test]
    fn what_a_text_repeats_is_said() {
        let shown = ShownArgument {
            mentions: vec![SeenIn::Prompt, SeenIn::Stranger],
            carries: vec![SeenIn::Private, SeenIn::Stranger],
            ..argument("text", &[SeenIn::Nowhere])
        };
        assert_eq!(
            shown.places(),
            "seen nowhere; has an address that was seen in a stranger's text; repeats private \
             data; repeats a stranger's text"
        );
    }
}
