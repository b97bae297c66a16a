//! Deserialises the parts of plans from JSON.
//!
//! Expressions, templates and similar types are written as their source and parsed again.
//! Values are not deserialised by `serde_json::Value`, because that gives an object whose first
//! key is one of its private markers another meaning, and documents are untrusted.

use crate::span::Fault;
use crate::visible::shorten;
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A text that `parse` accepts; `what` names the expected type in the message.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    what: &str,
    parse: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text)
        .map_err(|fault| D::Error::custom(format!("`{}` is not {what}: {fault}", shorten(&text))))
}

/// The first fault of a rejected text.
pub(crate) fn first(faults: Vec<Fault>) -> Fault {
    faults.into_iter().next().expect("what is refused has a fault")
}

/// A value, unchanged.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    deserializer.deserialize_any(Verbatim)
}

/// The value of an optional field that is present: null is a value.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    value(deserializer).map(Some)
}

/// A list of values, unchanged.
pub(crate) fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    match value(deserializer)? {
        Value::Array(items) => Ok(items),
        _ => Err(D::Error::custom("expected a list")),
    }
}

/// A map of values, unchanged and in order.
pub(crate) fn map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    match value(deserializer)? {
        Value::Object(map) => Ok(map),
        _ => Err(D::Error::custom("expected a map")),
    }
}

/// [`map`], for fields with another map type.
pub(crate) fn values_by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<IndexMap<String, Value>, D::Error> {
    map(deserializer).map(|map| map.into_iter().collect())
}

struct Verbatim;

/// A [`Value`] inside another.
struct NestedValue(Value);

impl<'de> Deserialize<'de> for NestedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NestedValue, D::Error> {
        value(deserializer).map(NestedValue)
    }
}

impl<'de> Visitor<'de> for Verbatim {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(NestedValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, NestedValue(value))) = entries.next_entry::<String, NestedValue>()? {
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
