//! Field schemas: the rules for each output of a step.
//!
//! A schema is JSON Schema with two differences that make short declarations safe: a field is
//! required unless it is declared optional, and the types are the six of JSON without null.
//! Schemas are compiled when a document is read and never refer to anything outside themselves.
//!
//! INVARIANT: equal schemas serialise equally and different ones differently, because the
//! plan's hash covers the serialised form.

pub mod json;
mod written;

use super::validate;
use crate::bounds::{Holds, Spelling, ValueBounds};
use crate::choices::choices;
use crate::pattern::Pattern;
use crate::value::Membership;
use crate::violation::Contradiction;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Number, Value};

choices! {
    /// The type a field may declare.
    pub enum FieldType, "a type" {
        /// Text.
        String = "string",
        /// Any number.
        Number = "number",
        /// A number without a fraction that fits 64 bits.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// A map from names to values.
        Object = "object",
        /// A list of values.
        Array = "array",
    }
}

impl FieldType {
    /// Whether `value` has this type. As in JSON Schema, 5.0 is an integer.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            FieldType::String => value.is_string(),
            FieldType::Number => value.is_number(),
            FieldType::Integer => value.as_number().is_some_and(|n| whole(n).is_some()),
            FieldType::Boolean => value.is_boolean(),
            FieldType::Object => value.is_object(),
            FieldType::Array => value.is_array(),
        }
    }
}

/// The number as an integer, if it is one and fits 64 bits.
pub(crate) fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // Formatted without a fraction, the text is the exact value of the float.
    let text = format!("{float:.0}");
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// The rules for one field.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "written::SchemaJson")]
pub struct FieldSchema {
    /// The type; `None` means any.
    pub kind: Option<FieldType>,
    /// Whether the field is required. For a property of an object with
    /// `required_properties`, that list decides instead.
    pub required: bool,
    /// The allowed values (`enum`); empty means all.
    pub values: Vec<Value>,
    /// The smallest number.
    pub minimum: Option<Number>,
    /// The largest number.
    pub maximum: Option<Number>,
    /// The smallest number of characters of a text.
    pub min_length: Option<u64>,
    /// The largest number of characters of a text.
    pub max_length: Option<u64>,
    /// A pattern that a part of the text must match.
    pub pattern: Option<Pattern>,
    /// The rules for every item of an array.
    pub items: Option<Box<FieldSchema>>,
    /// The rules for the properties of an object; other properties are allowed.
    pub properties: IndexMap<String, FieldSchema>,
    /// The `required` list of an object: exactly these properties are required.
    pub required_properties: Option<Vec<String>>,
    /// A description for people and agents.
    pub description: Option<String>,
    /// Flow labels: where its data came from, besides the step's inputs.
    pub origin: Vec<String>,
    /// Flow labels: secrets that it contains, besides those of the step's inputs.
    pub sensitive: Vec<String>,
    /// Flow labels that it loses, because its values cannot carry a payload.
    pub endorse: Vec<String>,
}

impl Default for FieldSchema {
    fn default() -> FieldSchema {
        FieldSchema {
            kind: None,
            required: true,
            values: Vec::new(),
            minimum: None,
            maximum: None,
            min_length: None,
            max_length: None,
            pattern: None,
            items: None,
            properties: IndexMap::new(),
            required_properties: None,
            description: None,
            origin: Vec::new(),
            sensitive: Vec::new(),
            endorse: Vec::new(),
        }
    }
}

impl FieldSchema {
    /// A required field of one type, without further rules.
    pub fn of(kind: FieldType) -> FieldSchema {
        FieldSchema { kind: Some(kind), ..FieldSchema::default() }
    }

    /// Whether the author listed or bounded all values that the field can have, so that it
    /// cannot carry a text.
    pub(crate) fn is_endorsable(&self) -> bool {
        let bounded = self.minimum.is_some() && self.maximum.is_some();
        !self.values.is_empty()
            || self.kind == Some(FieldType::Boolean)
            || self.kind == Some(FieldType::Integer) && bounded
    }

    /// Whether it declares a flow label.
    pub(crate) fn has_flow_labels(&self) -> bool {
        !(self.origin.is_empty() && self.sensitive.is_empty() && self.endorse.is_empty())
    }

    pub(crate) fn bounds(&self) -> ValueBounds<'_> {
        ValueBounds {
            min: self.minimum.as_ref(),
            max: self.maximum.as_ref(),
            min_length: self.min_length,
            max_length: self.max_length,
            pattern: self.pattern.as_ref(),
        }
    }

    /// All contradictions in the schema, including nested ones.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let spelling = Spelling { min: "minimum", max: "maximum" };
        let name = self.kind.map_or("any", FieldType::as_str);
        let mut found = self.bounds().contradictions(self.holds(), name, spelling);
        if self.items.is_some() && self.kind != Some(FieldType::Array) {
            found.push(Contradiction::new(&["items"], "`items` needs `type: array`"));
        }
        if self.kind != Some(FieldType::Object) {
            if !self.properties.is_empty() {
                let message = "`properties` needs `type: object`";
                found.push(Contradiction::new(&["properties"], message));
            }
            if self.required_properties.is_some() {
                let message = "a list under `required` needs `type: object`";
                found.push(Contradiction::new(&["required"], message));
            }
        }
        found.extend(self.enum_contradictions());
        if let Some(items) = &self.items {
            let inner = items.inner_contradictions().into_iter();
            found.extend(inner.map(|one| one.within(&["items"])));
        }
        for (name, property) in &self.properties {
            let inner = property.inner_contradictions().into_iter();
            found.extend(inner.map(|one| one.within(&["properties", name])));
        }
        found
    }

    /// The contradictions in a schema inside another one. Labels are kept for each output.
    fn inner_contradictions(&self) -> Vec<Contradiction> {
        let mut found = self.contradictions();
        if self.has_flow_labels() {
            let message = "only an output as a whole has labels: declare them on the output";
            found.push(Contradiction::new(&[], message));
        }
        found
    }

    fn holds(&self) -> Holds {
        match self.kind {
            None => Holds::Anything,
            Some(FieldType::Number | FieldType::Integer) => Holds::Numbers,
            Some(FieldType::String) => Holds::Texts,
            Some(FieldType::Boolean | FieldType::Object | FieldType::Array) => Holds::Neither,
        }
    }

    /// Allowed values that other rules of the schema reject.
    fn enum_contradictions(&self) -> Vec<Contradiction> {
        // A value is always a member of its own list, so only the other rules can
        // reject it.
        let unfit = |(index, value): (usize, &Value)| {
            let mut value = value.clone();
            let violations = validate::value(self, &mut value, Membership::Exact);
            let first = violations.into_iter().next()?;
            let inside =
                if first.field.is_empty() { String::new() } else { format!("{} ", first.field) };
            let message = format!("allowed value {inside}{}", first.message);
            Some(Contradiction::new(&["enum", &index.to_string()], message))
        };
        self.values.iter().enumerate().filter_map(unfit).collect()
    }
}

impl Serialize for FieldSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        optional(&mut map, "type", self.kind.as_ref())?;
        match &self.required_properties {
            Some(names) => {
                map.serialize_entry("required", names)?;
                // A document cannot set both on one key; a schema made by a
                // program can.
                optional(&mut map, "optional", (!self.required).then_some(&true))?;
            }
            None => optional(&mut map, "required", (!self.required).then_some(&false))?,
        }
        optional(&mut map, "enum", Some(&self.values).filter(|all| !all.is_empty()))?;
        optional(&mut map, "minimum", self.minimum.as_ref())?;
        optional(&mut map, "maximum", self.maximum.as_ref())?;
        optional(&mut map, "minLength", self.min_length.as_ref())?;
        optional(&mut map, "maxLength", self.max_length.as_ref())?;
        optional(&mut map, "pattern", self.pattern.as_ref())?;
        optional(&mut map, "items", self.items.as_ref())?;
        let properties = Some(&self.properties).filter(|all| !all.is_empty());
        optional(&mut map, "properties", properties)?;
        optional(&mut map, "description", self.description.as_ref())?;
        for (key, labels) in
            [("origin", &self.origin), ("sensitive", &self.sensitive), ("endorse", &self.endorse)]
        {
            optional(&mut map, key, Some(labels).filter(|all| !all.is_empty()))?;
        }
        map.end()
    }
}

fn optional<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

#[cfg(test)]
mod tests;
