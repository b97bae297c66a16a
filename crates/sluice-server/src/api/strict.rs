//! Strict parsing of JSON from clients.
//!
//! INVARIANT: a body has only one meaning. A body with a duplicate key is refused;
//! serde_json itself refuses invalid numbers, unpaired surrogates and endless nesting.

use crate::limits::JSON_DEPTH_MAX;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parses a body.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Strict, E> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(E::custom(format!("nested more than {JSON_DEPTH_MAX} deep")));
        }
        Ok(Strict { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(deeper)?;
            if map.contains_key(&key) {
                let key = sluice_core::visible::brief(&key).into_owned();
                return Err(de::Error::custom(format!("the key `{key}` is duplicated")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn valid_json_is_parsed_exactly() {
        let text = r#"{"a": [1, -2, 2.5, "é\n", null, true], "b": {"c": {}}}"#;
        assert_eq!(
            parse(text.as_bytes()),
            Ok(json!({"a": [1, -2, 2.5, "é\n", null, true], "b": {"c": {}}}))
        );
        assert_eq!(parse(b"9007199254740993"), Ok(json!(9_007_199_254_740_993_u64)));
        assert_eq!(parse(b"18446744073709551615"), Ok(json!(u64::MAX)));
    }

    #[test]
    fn ambiguous_or_invalid_json_is_refused() {
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": {"b": 1, "\u0062": 2}}"#,
            "NaN",
            "1e400",
            r#""\ud800""#,
            "{} {}",
            "",
            "{'a': 1}",
            &deep,
            "\"\u{1}\"",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&[b'"', 0xff, b'"']).is_err());
        let fits = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        assert!(parse(fits.as_bytes()).is_ok());
    }
}
