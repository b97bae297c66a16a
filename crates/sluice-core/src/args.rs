//! The arguments of a run: what a workflow declares and what a caller passes.
//!
//! Callers are people at a command line, programs and parent workflows. Text is therefore
//! converted to the declared type ("5" for an integer, a JSON text for an object or a list),
//! and numbers and booleans become text if text is declared; nothing else is converted. Allowed
//! values must match exactly, because policies read arguments.

use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::outputs::coerce::{converted, nests_within, normalise};
use crate::outputs::schema::{FieldSchema, FieldType};
use crate::outputs::validate;
use crate::suggest::suggest;
use crate::value::Membership;
use crate::violation::{Contradiction, Reason, Violation, Violations};
use crate::wire;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The declaration of one argument.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct ArgDecl {
    /// The type; `None` means any.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<FieldType>,
    /// Whether a caller must pass it; an optional argument without a value is null.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// The value if the caller passes none.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The allowed values (`enum`); empty means all.
    #[serde(
        rename = "enum",
        default,
        deserialize_with = "wire::values",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<Value>,
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Flow labels: where its value came from; the caller by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<String>,
    /// Flow labels: secrets that its value contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl ArgDecl {
    /// The part of the declaration that output fields have too.
    fn schema(&self) -> FieldSchema {
        FieldSchema { kind: self.kind, values: self.values.clone(), ..FieldSchema::default() }
    }

    /// All contradictions in the declaration.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let schema = self.schema();
        let mut found = schema.contradictions();
        if let Some(default) = self.default.as_ref().filter(|value| !value.is_null()) {
            let violations = validate::value(&schema, &mut default.clone(), Membership::Exact);
            let unfit = |one: Violation| {
                Contradiction::new(&["default"], format!("the default {}", one.message))
            };
            found.extend(violations.into_iter().map(unfit));
        }
        found
    }
}

/// The arguments that a run starts with, in the order of declaration, or all violations.
pub fn check(
    decls: &IndexMap<String, ArgDecl>,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<Violation>> {
    let mut found = Violations::default();
    let mut args = Map::new();
    for (name, decl) in decls {
        match resolved(decl, given.get(name)) {
            Ok(value) => drop(args.insert(name.clone(), value)),
            Err(violations) => {
                for violation in violations {
                    found.add(name, violation.reason, violation.message);
                }
            }
        }
    }
    for name in given.keys().filter(|name| !decls.contains_key(*name)) {
        if found.is_full() {
            break;
        }
        let message = match suggest(name, decls.keys().map(String::as_str)) {
            Some(near) => format!("is not an argument of this workflow; did you mean `{near}`?"),
            None => "is not an argument of this workflow".to_owned(),
        };
        found.add(name, Reason::UnknownField, message);
    }
    let found = found.into_vec();
    if found.is_empty() { Ok(args) } else { Err(found) }
}

fn resolved(decl: &ArgDecl, given: Option<&Value>) -> Result<Value, Vec<Violation>> {
    let Some(given) = given.filter(|value| !value.is_null()) else {
        let default = decl.default.clone().unwrap_or(Value::Null);
        if decl.required && default.is_null() {
            let missing = Violation::new("", Reason::MissingRequired, "is required");
            return Err(vec![missing]);
        }
        return Ok(default);
    };
    let mut value = given.clone();
    if let Some(kind) = decl.kind {
        read_as(kind, &mut value);
    }
    let violations = validate::value(&decl.schema(), &mut value, Membership::Exact);
    if violations.is_empty() { Ok(value) } else { Err(violations) }
}

fn read_as(kind: FieldType, value: &mut Value) {
    if kind.fits(value) {
        normalise(kind, value);
        return;
    }
    let read = match (kind, &*value) {
        (FieldType::Array, Value::String(text)) => list(text),
        (_, Value::String(_)) | (FieldType::String, Value::Number(_) | Value::Bool(_)) => {
            converted(kind, value, DOCUMENT_DEPTH_MAX)
        }
        _ => None,
    };
    if let Some(read) = read {
        *value = read;
    }
}

/// A JSON list, else a list with one text.
fn list(text: &str) -> Option<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(parsed) if parsed.is_array() => {
            nests_within(&parsed, DOCUMENT_DEPTH_MAX).then_some(parsed)
        }
        _ => Some(Value::Array(vec![text.into()])),
    }
}

#[cfg(test)]
mod tests;
