//! A step's outputs as JSON Schema, for the agent that must produce them.

use super::{FieldSchema, FieldType};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

/// The JSON Schema of an object with these fields; `None` without fields.
pub fn of(fields: &IndexMap<String, FieldSchema>) -> Option<Value> {
    (!fields.is_empty()).then(|| object(fields, None))
}

fn object(fields: &IndexMap<String, FieldSchema>, listed: Option<&[String]>) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, field)| (name.clone(), value(field))).collect();
    let required: Vec<&str> = match listed {
        Some(listed) => listed.iter().map(String::as_str).collect(),
        None => {
            let required = fields.iter().filter(|(_, field)| field.required);
            required.map(|(name, _)| name.as_str()).collect()
        }
    };
    json!({"type": "object", "properties": properties, "required": required})
}

fn value(field: &FieldSchema) -> Value {
    let mut schema = if field.kind == Some(FieldType::Object) && !field.properties.is_empty() {
        object(&field.properties, field.required_properties.as_deref())
    } else {
        field.kind.map_or_else(|| json!({}), |kind| json!({"type": kind}))
    };
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema[name] = value;
        }
    };
    put("description", field.description.clone().map(Value::from));
    put("enum", (!field.values.is_empty()).then(|| Value::from(field.values.clone())));
    put("minimum", field.minimum.clone().map(Value::from));
    put("maximum", field.maximum.clone().map(Value::from));
    put("minLength", field.min_length.map(Value::from));
    put("maxLength", field.max_length.map(Value::from));
    put("pattern", field.pattern.as_ref().map(|pattern| json!(pattern)));
    put("items", field.items.as_deref().map(value));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_fields_become_an_object_with_what_each_must_be() {
        let fields: IndexMap<String, FieldSchema> = serde_json::from_value(json!({
            "grade": {"type": "string", "enum": ["a", "b"], "description": "how good"},
            "score": {"type": "number", "minimum": 0, "maximum": 1, "required": false},
            "parts": {"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string", "minLength": 1, "pattern": "^x"},
                "note": {"type": "string", "required": false},
            }}},
            "any": {},
        }))
        .expect("a schema");
        let expected = json!({
            "type": "object",
            "properties": {
                "grade": {"type": "string", "description": "how good", "enum": ["a", "b"]},
                "score": {"type": "number", "minimum": 0, "maximum": 1},
                "parts": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "pattern": "^x"},
                        "note": {"type": "string"},
                    },
                    "required": ["name"],
                }},
                "any": {},
            },
            "required": ["grade", "parts", "any"],
        });
        assert_eq!(of(&fields), Some(expected));
        assert_eq!(of(&IndexMap::new()), None);
    }
}
