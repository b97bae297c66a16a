//! The typed arguments of a tool, `context.input`: from the tool's JSON input schema to a
//! Cedar type, and from the arguments of a call to values of that type.
//!
//! A part of a schema that Cedar has no type for is left out, so no policy can name it.
//!
//! INVARIANT: an argument that does not have its declared type has no value, and neither
//! have the others: a rule that reads one of them cannot be evaluated, and blocks.

use super::call::shown;
use super::number::DecimalNumber;
use super::request::text;
use crate::limits::{INPUT_FIELDS_MAX, INPUT_TYPE_DEPTH_MAX};
use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The type of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputType {
    Text,
    Boolean,
    Integer,
    Number,
    Set(Box<InputType>),
    Record(BTreeMap<String, Field>),
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) kind: InputType,
    pub(super) required: bool,
}

impl InputType {
    /// The type of a tool's arguments; `None` if the schema describes no object.
    pub(super) fn from_schema(schema: &Value) -> Option<InputType> {
        let mut reader = SchemaReader { root: schema, fields: 0 };
        match reader.read(schema, 0)? {
            (record @ InputType::Record(_), _) => Some(record),
            _ => None,
        }
    }

    /// The names of the arguments that have a type.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            InputType::Record(fields) => fields.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// As a Cedar schema writes it, indented by `depth` levels.
    pub(super) fn cedar(&self, depth: usize) -> String {
        match self {
            InputType::Text => "String".to_owned(),
            InputType::Boolean => "Bool".to_owned(),
            InputType::Integer => "Long".to_owned(),
            InputType::Number => "decimal".to_owned(),
            InputType::Set(item) => format!("Set<{}>", item.cedar(depth)),
            InputType::Record(fields) => {
                let indent = "    ".repeat(depth);
                let mut text = "{\n".to_owned();
                for (name, field) in fields {
                    let optional = if field.required { "" } else { "?" };
                    let kind = field.kind.cedar(depth + 1);
                    let name = attribute(name);
                    let _ = writeln!(text, "{indent}    {name}{optional}: {kind},");
                }
                text + &indent + "}"
            }
        }
    }

    /// The arguments of a call as a Cedar value, or the argument that has another type.
    pub(super) fn value(
        &self,
        input: &Map<String, Value>,
    ) -> Result<RestrictedExpression, Mismatch> {
        let InputType::Record(fields) = self else { return Err(Mismatch::new("", "an object")) };
        record(fields, input, "")
    }

    fn convert(&self, value: &Value, path: &str) -> Result<RestrictedExpression, Mismatch> {
        match (self, value) {
            (InputType::Text, Value::String(whole)) => Ok(text(shown(whole).0)),
            (InputType::Boolean, Value::Bool(flag)) => Ok(RestrictedExpression::new_bool(*flag)),
            (InputType::Integer, value) => match integer(value) {
                Some(number) => Ok(RestrictedExpression::new_long(number)),
                None => Err(Mismatch::new(path, "an integer of 64 bits")),
            },
            (InputType::Number, value) => match DecimalNumber::from_value(value) {
                Some(number) => Ok(number.cedar()),
                None => Err(Mismatch::new(path, "a number")),
            },
            (InputType::Set(kind), Value::Array(items)) => {
                let items = items.iter().map(|item| kind.convert(item, path));
                Ok(RestrictedExpression::new_set(items.collect::<Result<Vec<_>, _>>()?))
            }
            (InputType::Record(fields), Value::Object(map)) => record(fields, map, path),
            (InputType::Text, _) => Err(Mismatch::new(path, "a text")),
            (InputType::Boolean, _) => Err(Mismatch::new(path, "true or false")),
            (InputType::Set(_), _) => Err(Mismatch::new(path, "a list")),
            (InputType::Record(_), _) => Err(Mismatch::new(path, "an object")),
        }
    }
}

/// An argument that does not have its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch(String);

impl Mismatch {
    fn new(path: &str, wanted: &str) -> Mismatch {
        Mismatch(format!("argument `{path}` is not {wanted}, as the tool's definition says"))
    }

    pub(super) fn message(&self) -> &str {
        &self.0
    }
}

fn record(
    fields: &BTreeMap<String, Field>,
    input: &Map<String, Value>,
    path: &str,
) -> Result<RestrictedExpression, Mismatch> {
    let mut values = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match input.get(name) {
            None | Some(Value::Null) if !field.required => {}
            None => return Err(Mismatch::new(&path, "there, although it is required")),
            Some(value) => values.push((name.clone(), field.kind.convert(value, &path)?)),
        }
    }
    RestrictedExpression::new_record(values).map_err(|error| Mismatch(error.to_string()))
}

/// A whole number, or a text that is one.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // 5.0 is an integer, too.
            let decimal = DecimalNumber::from_value(value)?;
            decimal.text().strip_suffix(".0000")?.parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// An attribute name in a Cedar schema.
fn attribute(name: &str) -> String {
    let mut text = "\"".to_owned();
    for letter in name.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(text, "\\u{{{:x}}}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

/// The paths of the arguments that a schema describes, as a call has them: fields of objects,
/// also in lists.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) known: BTreeSet<String>,
    /// Arguments that may have any fields; the empty path stands for the call.
    pub(super) open: Vec<String>,
}

impl Paths {
    pub(super) fn from_schema(schema: &Value) -> Paths {
        let mut paths = Paths::default();
        SchemaReader { root: schema, fields: 0 }.paths(schema, "", 0, &mut paths);
        paths
    }

    /// Whether a call may have an argument with this path.
    pub(super) fn may_have(&self, path: &str) -> bool {
        let is_below = |open: &String| {
            open.is_empty() || path.strip_prefix(open).is_some_and(|rest| rest.starts_with('.'))
        };
        self.known.contains(path) || self.open.iter().any(is_below)
    }
}

/// Reads a JSON schema within bounds.
struct SchemaReader<'s> {
    root: &'s Value,
    fields: usize,
}

impl<'s> SchemaReader<'s> {
    /// The type, and whether null is a value of it.
    fn read(&mut self, schema: &'s Value, depth: usize) -> Option<(InputType, bool)> {
        let (schema, nullable) = self.resolve(schema, depth)?;
        let (kind, null) = kind(schema)?;
        let kind = match kind {
            "string" => InputType::Text,
            "boolean" => InputType::Boolean,
            "integer" => InputType::Integer,
            "number" => InputType::Number,
            "array" => {
                let (item, null) = self.read(schema.get("items")?, depth + 1)?;
                // A set of lists or of records is of no use, and null has no type.
                if null || matches!(item, InputType::Set(_) | InputType::Record(_)) {
                    return None;
                }
                InputType::Set(Box::new(item))
            }
            "object" => InputType::Record(self.record(schema, depth)?),
            _ => return None,
        };
        Some((kind, null || nullable))
    }

    fn record(&mut self, schema: &'s Value, depth: usize) -> Option<BTreeMap<String, Field>> {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut fields = BTreeMap::new();
        let properties = match schema.get("properties") {
            Some(properties) => properties.as_object()?,
            None => return Some(fields),
        };
        for (name, property) in properties {
            self.fields += 1;
            if self.fields > INPUT_FIELDS_MAX {
                return None;
            }
            if let Some((kind, nullable)) = self.read(property, depth + 1) {
                let required = required.contains(&name.as_str()) && !nullable;
                fields.insert(name.clone(), Field { kind, required });
            }
        }
        Some(fields)
    }

    /// Follows references, and choices between one schema and null.
    fn resolve(&mut self, schema: &'s Value, depth: usize) -> Option<(&'s Value, bool)> {
        let (mut schema, mut nullable) = (schema, false);
        for _ in depth..INPUT_TYPE_DEPTH_MAX {
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                schema = self.root.pointer(reference.strip_prefix('#')?)?;
                continue;
            }
            let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| schema.get(*name));
            let Some(choices) = choices.and_then(Value::as_array) else {
                return Some((schema, nullable));
            };
            let is_null = |one: &Value| one.get("type").and_then(Value::as_str) == Some("null");
            let mut others = choices.iter().filter(|one| !is_null(one));
            nullable |= choices.iter().any(is_null);
            schema = others.next()?;
            if others.next().is_some() {
                return None;
            }
        }
        None
    }

    /// Adds the paths below a schema.
    fn paths(&mut self, schema: &'s Value, above: &str, depth: usize, paths: &mut Paths) {
        let Some((schema, _)) = self.resolve(schema, depth) else {
            return paths.open.push(above.to_owned());
        };
        if let Some(items) = schema.get("items") {
            return self.paths(items, above, depth + 1, paths);
        }
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            // A part without a type, or an object of any fields.
            if kind(schema).is_none_or(|(kind, _)| matches!(kind, "object" | "array")) {
                paths.open.push(above.to_owned());
            }
            return;
        };
        if schema.get("patternProperties").is_some()
            || schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
        {
            paths.open.push(above.to_owned());
        }
        for (name, property) in properties {
            self.fields += 1;
            if self.fields > INPUT_FIELDS_MAX {
                return paths.open.push(String::new());
            }
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            paths.known.insert(path.clone());
            self.paths(property, &path, depth + 1, paths);
        }
    }
}

/// The type that a schema names, and whether null is one of them.
fn kind(schema: &Value) -> Option<(&str, bool)> {
    match schema.get("type") {
        Some(Value::String(one)) => Some((one, false)),
        Some(Value::Array(several)) => {
            let mut others =
                several.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            let one = others.next()?;
            others.next().is_none().then_some((one, several.len() > 1))
        }
        Some(_) => None,
        None if schema.get("properties").is_some() => Some(("object", false)),
        None => {
            let words = schema.get("enum")?.as_array()?;
            words.iter().all(Value::is_string).then_some(("string", false))
        }
    }
}

#[cfg(test)]
mod tests;
