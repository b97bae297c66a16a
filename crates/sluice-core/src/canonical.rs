//! One way to write a value as bytes, for hashing and comparing.
//!
//! Canonical JSON: keys sorted by code point, no blanks, everything else as
//! compact JSON. Anyone can recompute a hash with a standard library.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The canonical JSON of a value.
pub fn to_string(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("plain data always serialises");
    let mut out = String::new();
    write(&value, &mut out);
    out
}

/// SHA-256 of the canonical JSON, in hexadecimal.
pub fn sha256_hex(value: &impl Serialize) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(to_string(value).as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write(item, out);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_at_every_level_and_lists_keep_their_order() {
        let value = json!({"b": {"z": 1, "a": [3, {"d": null, "c": "é\n"}]}, "a": 1.5, "A": true});
        assert_eq!(to_string(&value), r#"{"A":true,"a":1.5,"b":{"a":[3,{"c":"é\n","d":null}],"z":1}}"#);
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_text() {
        // printf '{"a":1}' | sha256sum
        assert_eq!(
            sha256_hex(&json!({"a": 1})),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
    }
}
