//! JSON Schemas of the formats for editors, generated from the types that read them.

use crate::doc::read::{Spelling, camel_case};
use serde_json::{Map, Value, json};

/// The definitions collected so far.
pub(crate) struct Defs {
    spelling: Spelling,
    found: Map<String, Value>,
}

/// One field of a map.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) about: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: Value,
}

impl Defs {
    pub(crate) fn new(spelling: Spelling) -> Defs {
        Defs { spelling, found: Map::new() }
    }

    pub(crate) fn spelling(&self) -> Spelling {
        self.spelling
    }

    /// A reference to the definition `name`, which `make` creates at the first call. The
    /// name is registered before, so that a type may contain itself.
    pub(crate) fn define(&mut self, name: &str, make: impl FnOnce(&mut Defs) -> Value) -> Value {
        if !self.found.contains_key(name) {
            self.found.insert(name.to_owned(), Value::Null);
            let schema = make(self);
            self.found.insert(name.to_owned(), schema);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// A definition that exists already.
    pub(crate) fn found(&self, name: &str) -> Value {
        self.found.get(name).cloned().unwrap_or_default()
    }

    /// The whole schema of a format whose top level is `root`.
    pub(crate) fn into_schema(mut self, title: &str, root: &str) -> Value {
        let mut schema = Map::new();
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!(title));
        if let Some(Value::Object(top)) = self.found.shift_remove(root) {
            schema.extend(top);
        }
        schema.insert("$defs".to_owned(), Value::Object(self.found));
        Value::Object(schema)
    }
}

/// The schema with null allowed: a null field is treated as absent.
fn nullable(schema: Map<String, Value>) -> Map<String, Value> {
    let either = vec![Value::Object(schema), json!({ "type": "null" })];
    Map::from_iter([("anyOf".to_owned(), Value::Array(either))])
}

/// The schema of a map with these fields and no others.
pub(crate) fn object(spelling: Spelling, about: &str, fields: Vec<Field>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for Field { key, about, required: needed, schema } in fields {
        let mut schema = match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        if !needed {
            schema = nullable(schema);
        }
        schema.insert("description".to_owned(), json!(about.trim()));
        let schema = Value::Object(schema);
        let camel = camel_case(key);
        if needed {
            required.push(key);
        }
        if spelling == Spelling::Either && camel != key {
            properties.insert(camel, schema.clone());
        }
        properties.insert(key.to_owned(), schema);
    }
    // With two spellings, `required` alone cannot say which one is present.
    let required: Vec<Value> = required
        .into_iter()
        .map(|key| match (spelling, camel_case(key)) {
            (Spelling::Either, camel) if camel != key => {
                json!({ "anyOf": [{ "required": [key] }, { "required": [camel] }] })
            }
            _ => json!({ "required": [key] }),
        })
        .collect();
    let mut schema = json!({
        "type": "object",
        "description": about.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["allOf"] = Value::Array(required);
    }
    schema
}
