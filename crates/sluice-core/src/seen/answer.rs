//! How the answer of a tool is read: which of its texts are records, which are private, and
//! which are a stranger's.

use super::Filling;
use super::layer::Classes;
use super::normal::normal;
use serde_json::{Deserializer, Number, Value};
use sluice_govern::catalog::AnswerFields;
use sluice_govern::facts::SeenIn;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The answer of a tool, as the model read it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnswerSeen {
    /// What the model read.
    pub text: Option<String>,
    /// The same as an object, if the server sent one.
    pub structured: Option<Value>,
    /// Whether the tool reports an error. Nothing that it says is a record then.
    pub failed: bool,
}

/// The part of a path that stands for the keys of a map. No key is equal to it.
#[derive(Debug, Clone, Copy)]
enum PathPart<'a> {
    Field(&'a str),
    Keys,
}

/// What a declaration says about the place that a walk has reached.
#[derive(Debug, Clone, Copy, Default)]
struct Declared {
    record: bool,
    private: bool,
    /// The text holds one record in each line.
    list: bool,
}

impl Filling<'_> {
    pub(super) fn value(&mut self, source: u32, value: &Value, class: SeenIn) {
        let all = || vec!["*".to_owned()];
        let fields = match class {
            SeenIn::Prompt => {
                return texts(value).iter().for_each(|text| self.prompt(source, text));
            }
            SeenIn::Nowhere => return,
            SeenIn::Records => AnswerFields { records: all(), ..AnswerFields::default() },
            SeenIn::Private => AnswerFields { private: all(), ..AnswerFields::default() },
            SeenIn::Stranger => AnswerFields::default(),
        };
        self.walk_all(source, value, &fields);
    }

    pub(super) fn answer(&mut self, source: u32, answer: &AnswerSeen, fields: &AnswerFields) {
        let AnswerSeen { text, structured, failed } = answer;
        let (text, nothing) = (text.as_deref().unwrap_or_default(), AnswerFields::default());
        let fields = if *failed { &nothing } else { fields };
        let Some(structured) = structured else {
            // A text that is JSON has fields as well.
            match parsed(text).filter(|values| values.iter().all(|v| v.is_object() || v.is_array()))
            {
                Some(values) if !values.is_empty() => {
                    values.iter().for_each(|value| self.walk_all(source, value, fields));
                }
                _ => self.walk_all(source, &text.into(), fields),
            }
            return;
        };
        self.walk_all(source, structured, fields);
        // The model read more than the fields: no declaration says what that is.
        if !says_no_more(text, structured) {
            self.walk_all(source, &text.into(), &nothing);
        }
    }

    fn walk_all(&mut self, source: u32, value: &Value, fields: &AnswerFields) {
        let whole = |names: &[String]| names.iter().any(|name| name == "*");
        let declared = Declared {
            record: whole(&fields.records),
            private: whole(&fields.private),
            list: whole(&fields.lists),
        };
        self.walk(source, value, fields, &mut Vec::new(), declared);
    }

    fn walk<'v>(
        &mut self,
        source: u32,
        value: &'v Value,
        fields: &AnswerFields,
        path: &mut Vec<PathPart<'v>>,
        declared: Declared,
    ) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => self.declared_leaf(source, text, path, declared),
            Value::Number(number) => {
                self.declared_leaf(source, &plain_number(number), path, declared);
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.walk(source, item, fields, path, declared));
            }
            Value::Object(map) => {
                for (key, item) in map {
                    path.push(PathPart::Keys);
                    self.declared_leaf(source, key, path, declared.below(fields, path));
                    path.pop();
                    path.push(PathPart::Field(key));
                    self.walk(source, item, fields, path, declared.below(fields, path));
                    path.pop();
                }
            }
        }
    }

    fn declared_leaf(
        &mut self,
        source: u32,
        text: &str,
        path: &[PathPart<'_>],
        declared: Declared,
    ) {
        if normal(text).is_empty() {
            return;
        }
        let is_record = declared.record || declared.list;
        if !is_record && !matches!(path.last(), Some(PathPart::Keys)) {
            self.index.exposed = true;
        }
        let private = declared.private.then_some(SeenIn::Private);
        let other = if is_record { SeenIn::Records } else { SeenIn::Stranger };
        let classes: Vec<SeenIn> = private.into_iter().chain([other]).collect();
        if !declared.list {
            return self.leaf(source, text, &[(text, Classes::new(&classes))]);
        }
        let mut parts: Vec<(&str, Classes)> = Vec::new();
        parts.extend(private.map(|private| (text, Classes::new(&[private]))));
        parts.extend(lines(text).map(|line| (line, Classes::new(&classes))));
        self.leaf(source, text, &parts);
    }
}

impl Declared {
    /// What holds at a path, given what holds above its last part.
    fn below(self, fields: &AnswerFields, path: &[PathPart<'_>]) -> Declared {
        let named = |names: &[String]| names.iter().any(|name| ends_with(path, name));
        Declared {
            record: self.record || named(&fields.records),
            private: self.private || named(&fields.private),
            list: self.list || named(&fields.lists),
        }
    }
}

/// Whether the last parts of a path, with dots between them, are a declared name.
fn ends_with(path: &[PathPart<'_>], name: &str) -> bool {
    let mut rest = name;
    for (depth, part) in path.iter().rev().enumerate() {
        if depth > 0 {
            let Some(before) = rest.strip_suffix('.') else { return false };
            rest = before;
        }
        let before = match part {
            PathPart::Keys => rest.strip_suffix("@keys"),
            // A server's own field of this name must not stand for keys.
            PathPart::Field("@keys") => None,
            PathPart::Field(field) => rest.strip_suffix(field),
        };
        match before {
            Some("") => return true,
            Some(before) => rest = before,
            None => return false,
        }
    }
    false
}

/// The records in a text that holds one in each line, without a label such as `Hotels: ` in
/// the first line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let breaks = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
        '\u{2029}',
    ];
    let lines = text.split(breaks).filter(|line| !normal(line).is_empty());
    lines.enumerate().map(|(number, line)| {
        let value = line.split_once(": ").filter(|_| number == 0);
        value.map_or(line, |(_, value)| value)
    })
}

/// A number without exponent, as in the prototype.
pub(super) fn plain_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e16 => {
            format!("{float:.1}")
        }
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// The text of a leaf; `None` for booleans, null and what has leaves itself.
pub(super) fn leaf_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(plain_number(number))),
        _ => None,
    }
}

/// The leaves of a value, and the keys of its objects.
fn texts(value: &Value) -> Vec<Cow<'_, str>> {
    let mut found = Vec::new();
    gather(value, &mut found, Some);
    found
}

fn gather<'v>(
    value: &'v Value,
    found: &mut Vec<Cow<'v, str>>,
    of_key: fn(&'v str) -> Option<&'v str>,
) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, found, of_key)),
        Value::Object(map) => {
            for (key, item) in map {
                found.extend(of_key(key).map(Cow::Borrowed));
                gather(item, found, of_key);
            }
        }
        leaf => found.extend(leaf_text(leaf)),
    }
}

/// The JSON values that a text consists of, one after the other; `None` if it is something else.
fn parsed(text: &str) -> Option<Vec<Value>> {
    Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
}

/// Whether everything in the text of an answer is in its structured content as well.
fn says_no_more(text: &str, structured: &Value) -> bool {
    let mut leaves = Vec::new();
    gather(structured, &mut leaves, |_| None);
    if normal(text).is_empty() || leaves.join("\n") == text {
        return true;
    }
    let known: BTreeSet<Cow<'_, str>> = texts(structured).into_iter().collect();
    let Some(values) = parsed(text) else { return known.contains(text) };
    known.contains(text) || values.iter().flat_map(texts).all(|text| known.contains(&text))
}
