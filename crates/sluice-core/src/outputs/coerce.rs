//! Coerces nearly correct outputs to their declared types.
//!
//! | declared | accepted besides |
//! |---|---|
//! | string | object, array (compact JSON), number, boolean |
//! | number | numeric string |
//! | integer | numeric string, rounded half away from zero |
//! | boolean | true, yes, false, no in any case; an object that says so under a known key |
//! | array | a single value, wrapped |
//! | object | a JSON string of one |
//!
//! Null is never coerced: it is treated as absent. A value that cannot be coerced is left
//! unchanged, and validation reports it.
//!
//! INVARIANT: coercing twice changes nothing more, and every change of type is recorded. An
//! integer written as 5.0 becomes 5 without a record.

use super::path::{OutputPath, PathSegment};
use super::schema::{FieldSchema, FieldType, whole};
use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::value::{numeric, text, type_name};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Number, Value};
use sluice_govern::decimal::{Decimal, Rest};

/// One change of a value's type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coercion {
    /// The path of the value: `a.b[0]`.
    pub field: String,
    /// The original type.
    pub from: &'static str,
    /// The new type.
    pub to: FieldType,
}

/// Keys under which an object may contain its result; the first one present is used.
const VERDICT_KEYS: [&str; 5] = ["result", "value", "verified", "passed", "status"];

/// Coerces `outputs` to `schema`, including nested values, and returns the changes.
pub(crate) fn coerce(
    schema: &IndexMap<String, FieldSchema>,
    mut outputs: Map<String, Value>,
) -> (Map<String, Value>, Vec<Coercion>) {
    let mut walk = Coercer { place: OutputPath::default(), made: Vec::new() };
    walk.fields(schema, &mut outputs);
    (outputs, walk.made)
}

struct Coercer<'a> {
    place: OutputPath<'a>,
    made: Vec<Coercion>,
}

impl<'a> Coercer<'a> {
    fn fields(&mut self, schema: &'a IndexMap<String, FieldSchema>, map: &mut Map<String, Value>) {
        for (name, field) in schema {
            if let Some(value) = map.get_mut(name) {
                self.place.enter(PathSegment::Name(name));
                self.value(field, value);
                self.place.leave();
            }
        }
    }

    fn value(&mut self, schema: &'a FieldSchema, value: &mut Value) {
        if let Some(kind) = schema.kind {
            self.convert(kind, value);
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.place.enter(PathSegment::Index(index));
                    self.value(schema, item);
                    self.place.leave();
                }
            }
            Value::Object(map) => self.fields(&schema.properties, map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn convert(&mut self, kind: FieldType, value: &mut Value) {
        if kind.fits(value) {
            normalise(kind, value);
            return;
        }
        let room = DOCUMENT_DEPTH_MAX.saturating_sub(self.place.depth());
        let from = type_name(value);
        let Some(converted) = converted(kind, value, room) else {
            return;
        };
        *value = converted;
        self.made.push(Coercion { field: self.place.render(), from, to: kind });
    }
}

/// Writes an integer without a fraction, so that 5.0 and 5 are stored alike.
pub(crate) fn normalise(kind: FieldType, value: &mut Value) {
    if kind == FieldType::Integer
        && let Value::Number(number) = value
        && let Some(integer) = whole(number)
    {
        *number = integer;
    }
}

/// `value` converted to `kind`, if the table above allows it; `room` bounds the nesting of the
/// result.
pub(crate) fn converted(kind: FieldType, value: &Value, room: usize) -> Option<Value> {
    match (kind, value) {
        (_, Value::Null) => None,
        (FieldType::String, _) => Some(Value::String(text(value).into_owned())),
        (FieldType::Number, Value::String(text)) => numeric(text).map(Value::Number),
        (FieldType::Integer, Value::String(text)) => rounded(text).map(Value::Number),
        (FieldType::Boolean, Value::Object(map)) => {
            let verdict = |key: &str| map.get(key).and_then(verdict);
            VERDICT_KEYS.into_iter().find_map(verdict).map(Value::Bool)
        }
        (FieldType::Boolean, _) => verdict(value).map(Value::Bool),
        (FieldType::Array, _) => Some(Value::Array(vec![value.clone()])),
        (FieldType::Object, Value::String(text)) => {
            let parsed: Value = serde_json::from_str(text).ok()?;
            (parsed.is_object() && nests_within(&parsed, room)).then_some(parsed)
        }
        (FieldType::Number | FieldType::Integer | FieldType::Object, _) => None,
    }
}

/// The integer nearest to a numeric string, halves away from zero, if it fits 64 bits.
fn rounded(text: &str) -> Option<Number> {
    let decimal = Decimal::parse(text.trim())?;
    let (size, rest) = decimal.split()?;
    let size = i128::try_from(size).ok()? + i128::from(rest == Rest::HalfOrMore);
    let signed = if decimal.negative { -size } else { size };
    let integer = i64::try_from(signed).map(Number::from);
    integer.or_else(|_| u64::try_from(signed).map(Number::from)).ok()
}

fn verdict(value: &Value) -> Option<bool> {
    let word = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    let is = |expected: &str| word.eq_ignore_ascii_case(expected);
    if is("true") || is("yes") {
        Some(true)
    } else if is("false") || is("no") {
        Some(false)
    } else {
        None
    }
}

/// Whether `value` is at most `room` levels deep: a deeper value could be written to a journal
/// but not read back.
pub(crate) fn nests_within(value: &Value, room: usize) -> bool {
    let Some(below) = room.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(items) => items.iter().all(|item| nests_within(item, below)),
        Value::Object(map) => map.values().all(|item| nests_within(item, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests;
