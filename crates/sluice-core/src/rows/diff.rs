//! The differences between two sets of rows.

use super::find;
use serde::Serialize;
use serde_json::Value;
use sluice_govern::registry::{Kind, Row};
use std::fmt;

/// The longest value shown in a line, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// A row that was added, removed or changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The kind of row.
    pub kind: Kind,
    /// The name of the row.
    pub name: String,
    /// The old body; `None` if the row was added.
    pub before: Option<Value>,
    /// The new body; `None` if the row was removed.
    pub after: Option<Value>,
}

/// A changed field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// The path of the field: `rate.limit`.
    pub path: String,
    /// The old value; null if it was not set.
    pub before: Value,
    /// The new value; null if it is not set.
    pub after: Value,
}

/// The differences between two sets of rows, in the order in which kinds are applied, then by
/// name.
pub fn diff(before: &[Row], after: &[Row]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for row in after {
        let old = find(before, row.kind, &row.name).map(|old| old.body.clone());
        if old.as_ref() != Some(&row.body) {
            let (kind, name) = (row.kind, row.name.clone());
            found.push(Difference { kind, name, before: old, after: Some(row.body.clone()) });
        }
    }
    for row in before.iter().filter(|row| find(after, row.kind, &row.name).is_none()) {
        let (kind, name) = (row.kind, row.name.clone());
        found.push(Difference { kind, name, before: Some(row.body.clone()), after: None });
    }
    found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    found
}

impl Difference {
    /// `added`, `changed` or `removed`.
    pub const fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        }
    }

    /// The changed fields; empty for a row that was added or removed.
    pub fn fields(&self) -> Vec<FieldChange> {
        let mut found = Vec::new();
        if let (Some(before), Some(after)) = (&self.before, &self.after) {
            compare(String::new(), before, after, &mut found);
        }
        found
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.kind.noun(), &self.name);
        match (&self.before, &self.after) {
            (None, _) => write!(f, "+ {kind} {name}"),
            (_, None) => write!(f, "- {kind} {name}"),
            (Some(_), Some(_)) => {
                let fields: Vec<String> = self.fields().iter().map(ToString::to_string).collect();
                write!(f, "~ {kind} {name}: {}", fields.join(", "))
            }
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (short(&self.before), short(&self.after)) {
            (Some(before), Some(after)) => write!(f, "{} {before} -> {after}", self.path),
            _ => write!(f, "{} changed", self.path),
        }
    }
}

/// Descends into maps and compares other values whole. Rows are no deeper than the documents
/// they came from.
fn compare(path: String, before: &Value, after: &Value, found: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        found.push(FieldChange { path, before: before.clone(), after: after.clone() });
        return;
    };
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, value) in old {
        compare(below(key), value, new.get(key).unwrap_or(&Value::Null), found);
    }
    for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
        compare(below(key), &Value::Null, value, found);
    }
}

/// A value on one line; `None` if it is too long.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fits = text.chars().count() <= SHOWN_CHARS_MAX && !text.contains('\n');
    fits.then_some(text)
}
