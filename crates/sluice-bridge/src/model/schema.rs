//! Adapts JSON Schemas to the restrictions of providers.
//!
//! OpenAI enforces a schema strictly only if every property is required and no other is
//! allowed. Optional properties are therefore made nullable, and those nulls are removed from
//! the answer. Gemini supports a subset of JSON Schema: an unknown keyword is dropped if that
//! only widens the schema; otherwise the original schema is sent in a separate field.
//!
//! The core validates every answer against the original schema.

use serde_json::{Map, Value, json};
use sluice_core::limits::DOCUMENT_DEPTH_MAX;

/// The strict form of a schema; `None` if it has none.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    is_object.then(|| strictly(schema, 0)).flatten()
}

fn strictly(schema: &Value, depth: usize) -> Option<Value> {
    let fields = schema.as_object().filter(|_| depth <= DOCUMENT_DEPTH_MAX)?;
    let mut out = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "type" | "description" | "title" | "enum" | "const" | "format" | "pattern"
            | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
            | "minItems" | "maxItems" => value.clone(),
            "items" => strictly(value, depth + 1)?,
            "anyOf" => value
                .as_array()?
                .iter()
                .map(|one| strictly(one, depth + 1))
                .collect::<Option<Vec<_>>>()?
                .into(),
            // The strict form implies these keywords.
            "additionalProperties" if value == &json!(false) || value == &json!(true) => continue,
            "properties" | "required" | "default" | "examples" | "$schema" | "$comment" => continue,
            _ => return None,
        };
        out.insert(name.clone(), value);
    }
    if is_object(fields) {
        let properties = fields.get("properties").and_then(Value::as_object);
        // An object with arbitrary properties has no strict form.
        let properties = properties.filter(|properties| !properties.is_empty())?;
        let mut all = Map::new();
        for (name, one) in properties {
            let one = strictly(one, depth + 1)?;
            all.insert(name.clone(), if requires(fields, name) { one } else { nullable(one) });
        }
        let names: Vec<&String> = all.keys().collect();
        out.insert("required".to_owned(), json!(names));
        out.insert("properties".to_owned(), all.into());
        out.insert("additionalProperties".to_owned(), false.into());
    } else if !fields
        .keys()
        .any(|name| matches!(name.as_str(), "type" | "enum" | "const" | "anyOf"))
    {
        // Any value at all: no strict form.
        return None;
    }
    Some(Value::Object(out))
}

fn is_object(fields: &Map<String, Value>) -> bool {
    has_type(fields, "object")
}

fn has_type(fields: &Map<String, Value>, wanted: &str) -> bool {
    match fields.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

fn requires(fields: &Map<String, Value>, name: &str) -> bool {
    let required = fields.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one == name))
}

/// Whether a schema allows null, as far as its own keywords say.
fn takes_null(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return true };
    let said = ["type", "enum", "const", "anyOf"].iter().any(|name| fields.contains_key(*name));
    let any = |name: &str| fields.get(name).and_then(Value::as_array);
    !said
        || has_type(fields, "null")
        || any("anyOf").is_some_and(|several| several.iter().any(takes_null))
        || (!fields.contains_key("type")
            && any("enum").is_some_and(|words| words.contains(&Value::Null)))
}

fn nullable(schema: Value) -> Value {
    if takes_null(&schema) {
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// Removes the nulls that stand for missing optional properties.
pub(super) fn without_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let Some(rules) = schema.as_object() else { return };
            let Some(properties) = rules.get("properties").and_then(Value::as_object) else {
                return;
            };
            fields.retain(|name, value| {
                let rule = properties.get(name);
                !value.is_null() || requires(rules, name) || rule.is_none_or(takes_null)
            });
            for (name, value) in fields.iter_mut() {
                if let Some(rule) = properties.get(name) {
                    without_nulls(value, rule);
                }
            }
        }
        Value::Array(items) => {
            if let Some(rule) = schema.get("items") {
                items.iter_mut().for_each(|item| without_nulls(item, rule));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A schema in Gemini's subset; `None` if that would change its meaning.
pub(super) fn gemini(schema: &Value) -> Option<Value> {
    reduced(schema, 0)
}

fn reduced(schema: &Value, depth: usize) -> Option<Value> {
    let fields = schema.as_object().filter(|_| depth <= DOCUMENT_DEPTH_MAX)?;
    let mut out = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            "description" | "title" | "nullable" | "required" | "minItems" | "maxItems"
            | "minimum" | "maximum" | "minLength" | "maxLength" | "pattern" | "minProperties"
            | "maxProperties" => {
                out.insert(name.clone(), value.clone());
            }
            "type" => kind(value, &mut out)?,
            "format" if known_format(value) => {
                out.insert(name.clone(), value.clone());
            }
            // Gemini's enums hold only strings.
            "enum" if are_words(value) => {
                out.insert(name.clone(), value.clone());
            }
            "const" if value.is_string() => {
                out.insert("enum".to_owned(), json!([value]));
            }
            "items" => {
                out.insert(name.clone(), reduced(value, depth + 1)?);
            }
            "anyOf" | "oneOf" => {
                let several = value.as_array()?.iter().map(|one| reduced(one, depth + 1));
                out.insert("anyOf".to_owned(), several.collect::<Option<Vec<_>>>()?.into());
            }
            "properties" => {
                let properties = value.as_object()?.iter();
                let all =
                    properties.map(|(name, one)| Some((name.clone(), reduced(one, depth + 1)?)));
                out.insert(name.clone(), Value::Object(all.collect::<Option<Map<_, _>>>()?));
            }
            "$ref" | "allOf" | "not" | "if" | "patternProperties" | "prefixItems" => return None,
            _ => {}
        }
    }
    let shapeless = has_type(&out, "object")
        && out.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let nothing = !out.contains_key("type") && !out.contains_key("anyOf");
    // Gemini rejects objects without properties and values of any type.
    (!shapeless && !nothing).then_some(Value::Object(out))
}

/// A single type, optionally nullable.
fn kind(value: &Value, out: &mut Map<String, Value>) -> Option<()> {
    let one = match value {
        Value::String(one) => one.as_str(),
        Value::Array(several) => {
            let mut named = several.iter().filter_map(Value::as_str).filter(|one| *one != "null");
            let one = named.next()?;
            if named.next().is_some() {
                return None;
            }
            if several.iter().any(|one| one == "null") {
                out.insert("nullable".to_owned(), true.into());
            }
            one
        }
        _ => return None,
    };
    out.insert("type".to_owned(), one.into());
    Some(())
}

fn are_words(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

fn known_format(value: &Value) -> bool {
    let known = ["date-time", "enum", "float", "double", "int32", "int64"];
    value.as_str().is_some_and(|word| known.contains(&word))
}

#[cfg(test)]
mod tests;
