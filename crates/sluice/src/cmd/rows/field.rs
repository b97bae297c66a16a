//! Fields as arguments: `rate.limit=5`.

use serde_json::{Map, Value};
use sluice_core::diagnostic::Problems;
use sluice_core::yaml;

/// Parses a value as a setup file would; anything but a list or map may be text.
pub(super) fn value(text: &str) -> Value {
    let mut problems = Problems::default();
    let read = yaml::parse(text, &mut problems).map(|node| node.to_value());
    match read {
        _ if text.trim().is_empty() => Value::Null,
        Some(value) if !problems.has_errors() => match value {
            Value::Array(_) | Value::Object(_) if !text.starts_with(['[', '{']) => text.into(),
            Value::Null => text.into(),
            value => value,
        },
        _ => text.into(),
    }
}

/// Sets a field by its path; null removes it.
pub(super) fn put(body: &mut Map<String, Value>, path: &str, value: Value) {
    let (field, rest) = match path.split_once('.') {
        Some((field, rest)) => (field, Some(rest)),
        None => (path, None),
    };
    match rest {
        None if value.is_null() => {
            body.shift_remove(field);
        }
        None => {
            body.insert(field.to_owned(), value);
        }
        Some(rest) => {
            let below = body.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            if let Value::Object(below) = below {
                put(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_like_those_of_a_setup() {
        for (text, read) in [
            ("5", json!(5)),
            ("true", json!(true)),
            ("[a, b]", json!(["a", "b"])),
            ("{a: 1}", json!({"a": 1})),
            ("be kind: always", json!("be kind: always")),
            ("- item", json!("- item")),
            ("~", json!("~")),
            ("[open", json!("[open")),
            ("'5'", json!("5")),
            ("", Value::Null),
        ] {
            assert_eq!(value(text), read, "{text}");
        }
    }

    #[test]
    fn a_path_leads_into_maps() {
        let mut body = Map::new();
        put(&mut body, "rate.limit", json!(5));
        put(&mut body, "rate.window_s", json!(60));
        put(&mut body, "model", json!("x"));
        put(&mut body, "model", Value::Null);
        assert_eq!(Value::Object(body), json!({"rate": {"limit": 5, "window_s": 60}}));
    }
}
