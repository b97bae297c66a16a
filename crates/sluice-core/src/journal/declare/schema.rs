//! JSON Schema of payloads, for the description of the API and the types of its clients.

use super::form::Form;
use crate::choices::OwnChoice;
use crate::journal::event::{ChangedValue, ShownArgument};
use crate::money::Money;
use crate::violation::Violation;
use serde_json::{Map, Value, json};
use sluice_govern::choice::Choice as _;
use sluice_govern::decision::Constraints;
use sluice_govern::facts::SeenIn;
use std::collections::BTreeMap;

/// The fields of a payload, as a JSON Schema grows.
#[derive(Debug, Default)]
pub struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
    open: bool,
}

impl ObjectSchema {
    pub(in crate::journal) fn field<T, F: Form<T>>(&mut self, name: &'static str) {
        self.add(name, F::schema(), F::REQUIRED);
    }

    /// A field that always has the same word.
    pub(in crate::journal) fn word(&mut self, name: &'static str, word: &'static str) {
        self.add(name, json!({"type": "string", "const": word}), true);
    }

    pub(in crate::journal) fn add(&mut self, name: &'static str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required && !self.required.contains(&name) {
            self.required.push(name);
        }
    }

    /// Fields that are all optional here, even if `describe` requires them.
    pub(in crate::journal) fn optional(&mut self, describe: impl FnOnce(&mut ObjectSchema)) {
        let before = self.required.len();
        describe(self);
        self.required.truncate(before);
    }

    /// The payload has fields that are not listed.
    pub(in crate::journal) fn open(&mut self) {
        self.open = true;
    }

    /// Keeps only the requirements that another variant of the same event shares.
    pub(in crate::journal) fn merge(&mut self, other: ObjectSchema) {
        self.required.retain(|name| other.required.contains(name));
        for (name, schema) in other.properties {
            self.properties.entry(name).or_insert(schema);
        }
        self.open |= other.open;
    }

    /// The schema of the whole object.
    pub(crate) fn into_value(self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        if self.open {
            schema["additionalProperties"] = json!(true);
        }
        schema
    }
}

/// A type that a payload holds as serde writes it.
pub(in crate::journal) trait Described {
    fn schema() -> Value;
}

macro_rules! described {
    ($($type:ty => $schema:tt),* $(,)?) => {
        $(impl Described for $type {
            fn schema() -> Value {
                json!($schema)
            }
        })*
    };
}

described! {
    String => {"type": "string"},
    bool => {"type": "boolean"},
    u8 => {"type": "integer"},
    u32 => {"type": "integer"},
    i32 => {"type": "integer"},
    u64 => {"type": "integer"},
    Value => {},
    Map<String, Value> => {"type": "object"},
    Money => {"type": "integer"},
    Violation => {"type": "object", "properties": {
        "field": {"type": "string"}, "reason": {"type": "string"}, "message": {"type": "string"}
    }, "required": ["field", "reason", "message"]},
    ChangedValue => {"type": "object", "properties": {
        "path": {"type": "string"}, "before": {}, "after": {}
    }, "required": ["path", "before", "after"]},
    ShownArgument => {"type": "object", "properties": {
        "path": {"type": "string"},
        "seen": (Vec::<SeenIn>::schema()),
        "mentions": (Vec::<SeenIn>::schema()),
        "carries": (Vec::<SeenIn>::schema()),
    }, "required": ["path", "seen", "mentions", "carries"]},
    Constraints => {"type": "object"},
    SeenIn => {"type": "string", "enum": (SeenIn::NAMES)},
}

impl<T: OwnChoice> Described for T {
    fn schema() -> Value {
        json!({"type": "string", "enum": T::NAMES})
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

impl<A: Described, B: Described> Described for (A, B) {
    fn schema() -> Value {
        json!({"type": "array", "prefixItems": [A::schema(), B::schema()]})
    }
}
