//! Validates outputs against their schema and reports every violation with its path.

use super::path::{OutputPath, PathSegment};
use super::schema::{FieldSchema, FieldType};
use crate::value::{Membership, member, type_name};
use crate::violation::{Reason, Violation, Violations, a, excerpt, listed};
use indexmap::IndexMap;
use serde_json::{Map, Value};

/// All violations in `outputs`, up to the limit.
///
/// If a field has an `enum`, the matching allowed value replaces the answer, so that later
/// steps compare with the declared value.
pub fn validate(
    schema: &IndexMap<String, FieldSchema>,
    outputs: &mut Map<String, Value>,
    membership: Membership,
) -> Vec<Violation> {
    let mut walk = Validator::new(membership);
    walk.fields(schema, None, outputs);
    walk.found.into_vec()
}

/// Validates one value; its own path is empty.
pub fn value(schema: &FieldSchema, value: &mut Value, membership: Membership) -> Vec<Violation> {
    let mut walk = Validator::new(membership);
    walk.value(schema, value);
    walk.found.into_vec()
}

struct Validator<'a> {
    membership: Membership,
    place: OutputPath<'a>,
    found: Violations,
}

impl<'a> Validator<'a> {
    fn new(membership: Membership) -> Validator<'a> {
        Validator { membership, place: OutputPath::default(), found: Violations::default() }
    }

    /// `listed`: the object's `required` list, if it has one.
    fn fields(
        &mut self,
        schema: &'a IndexMap<String, FieldSchema>,
        listed: Option<&'a [String]>,
        map: &mut Map<String, Value>,
    ) {
        for (name, field) in schema {
            if self.found.is_full() {
                return;
            }
            let required = listed.map_or(field.required, |names| names.contains(name));
            self.place.enter(PathSegment::Name(name));
            match map.get_mut(name).filter(|value| !value.is_null()) {
                Some(value) => self.value(field, value),
                None if required => self.add(Reason::MissingRequired, "is required"),
                None => {}
            }
            self.place.leave();
        }
        let undeclared = |name: &&String| !schema.contains_key(*name);
        for name in listed.into_iter().flatten().filter(undeclared) {
            if map.get(name).is_none_or(Value::is_null) {
                self.place.enter(PathSegment::Name(name));
                self.add(Reason::MissingRequired, "is required");
                self.place.leave();
            }
        }
    }

    fn value(&mut self, schema: &'a FieldSchema, value: &mut Value) {
        if let Some(kind) = schema.kind
            && !kind.fits(value)
        {
            self.add(Reason::TypeMismatch, mismatch(kind, value));
            return;
        }
        if !schema.values.is_empty() {
            match member(value, &schema.values, self.membership) {
                Some(canonical) => *value = canonical.clone(),
                None => {
                    let allowed = listed(&schema.values);
                    let message = format!("is {}, not one of {allowed}", excerpt(value));
                    self.add(Reason::EnumMismatch, message);
                }
            }
        }
        for (reason, message) in schema.bounds().check(value) {
            self.add(reason, message);
        }
        match value {
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    self.items(schema, items);
                }
            }
            Value::Object(map) => {
                let listed = schema.required_properties.as_deref();
                self.fields(&schema.properties, listed, map);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn items(&mut self, schema: &'a FieldSchema, items: &mut [Value]) {
        for (index, item) in items.iter_mut().enumerate() {
            if self.found.is_full() {
                return;
            }
            self.place.enter(PathSegment::Index(index));
            self.value(schema, item);
            self.place.leave();
        }
    }

    fn add(&mut self, reason: Reason, message: impl Into<String>) {
        self.found.add(&self.place.render(), reason, message);
    }
}

fn mismatch(kind: FieldType, value: &Value) -> String {
    match value {
        // "is a number, not an integer" would not say what is wrong.
        Value::Number(number) if kind == FieldType::Integer => {
            format!("is {number}, not a 64-bit integer")
        }
        _ => format!("is {}, not {}", a(type_name(value)), a(kind.as_str())),
    }
}

#[cfg(test)]
mod tests;
