//! Canonical JSON, for hashing and comparing values.
//!
//! Keys are sorted by code point, without blanks; everything else is compact JSON. A
//! hash can be recomputed with any standard library.

mod serializer;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The canonical JSON of a value.
pub fn to_string(value: &impl Serialize) -> String {
    write(value, 128)
}

/// Appends a quoted text. `before` is the text before it, including its opening quote.
/// Most texts need no escaping.
pub(crate) fn push_text(out: &mut String, before: &str, text: &str) {
    debug_assert!(before.ends_with('"'), "a text begins with a quote");
    out.push_str(before);
    if is_plain(text) {
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&to_string(&text)[1..]);
    }
}

/// Whether a text needs no escaping.
fn is_plain(text: &str) -> bool {
    // No early exit, so that the compiler can process many bytes at a time.
    let plain = |byte: u8| (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    text.bytes().fold(true, |all, byte| all & plain(byte))
}

/// Appends a list of texts.
pub(crate) fn push_list(out: &mut String, list: &[impl AsRef<str>]) {
    out.push('[');
    for (at, text) in list.iter().enumerate() {
        push_text(out, if at == 0 { "\"" } else { ",\"" }, text.as_ref());
    }
    out.push(']');
}

/// Appends a number.
pub(crate) fn push_number(out: &mut String, mut number: u64) {
    // The length of the largest number.
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] += u8::try_from(number % 10).expect("a digit is small");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[start..]).expect("digits are ASCII"));
}

/// `bytes` is an estimate of the length, to avoid reallocation.
fn write(value: &impl Serialize, bytes: usize) -> String {
    let mut writer = serializer::CanonicalSerializer::with_capacity(bytes);
    value.serialize(&mut writer).expect("plain data with text keys always serialises");
    writer.into_string()
}

/// SHA-256 of bytes, in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    // Without a lookup table, so that the compiler can process many bytes at once.
    let digit = |four: u8| four + if four > 9 { b'a' - 10 } else { b'0' };
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    let mut hex = [0; 64];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(hash) {
        pair[0] = digit(byte >> 4);
        pair[1] = digit(byte & 15);
    }
    std::str::from_utf8(&hex).expect("digits are ASCII").to_owned()
}

/// SHA-256 of the canonical JSON, in hexadecimal. `bytes` is an estimate of the length
/// of the JSON.
pub fn sha256_hex(value: &impl Serialize, bytes: usize) -> String {
    hex(write(value, bytes).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn keys_are_sorted_at_every_level_and_lists_keep_their_order() {
        let value =
            json!({"b": {"z": 1, "a": [3, {"d": null, "c": "é\n"}]}, "a": 1.5, "A": true, "": []});
        assert_eq!(
            to_string(&value),
            r#"{"":[],"A":true,"a":1.5,"b":{"a":[3,{"c":"é\n","d":null}],"z":1}}"#
        );
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_text() {
        // printf '{"a":1}' | sha256sum
        assert_eq!(
            sha256_hex(&json!({"a": 1}), 0),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
    }

    #[test]
    fn a_text_is_written_as_json_writes_it() {
        for text in ["", "plain é", "a\"b", "a\\b", "a\nb", "\u{7f}\u{1}"] {
            let mut out = "x".to_owned();
            push_text(&mut out, ",\"", text);
            assert_eq!(out, format!("x,{}", json!(text)));
        }
    }

    #[test]
    fn a_list_is_written_as_json_writes_it() {
        for list in [&[][..], &["a"], &["a", "b\"", ""]] {
            let list: Vec<String> = list.iter().map(|&text| text.to_owned()).collect();
            let mut out = "x".to_owned();
            push_list(&mut out, &list);
            assert_eq!(out, format!("x{}", json!(list)));
        }
    }

    #[test]
    fn a_number_is_written_as_json_writes_it() {
        for number in [0, 7, 10, 1_790_000_000_123, u64::MAX] {
            let mut out = "x".to_owned();
            push_number(&mut out, number);
            assert_eq!(out, format!("x{number}"));
        }
    }

    #[derive(Serialize)]
    struct Everything {
        unit: (),
        some: Option<u8>,
        none: Option<u8>,
        pair: (i64, f64),
        variant: TestKind,
        list: Vec<TestKind>,
        text: char,
        flat: Newtype,
    }

    #[derive(Serialize)]
    struct Newtype(&'static str);

    #[derive(Serialize)]
    enum TestKind {
        Unit,
        New(bool),
        Tuple(u8, u8),
        Struct { z: u8, a: u8 },
    }

    #[test]
    fn every_shape_of_plain_data_is_written_as_json_writes_it() {
        let everything = Everything {
            unit: (),
            some: Some(1),
            none: None,
            pair: (-1, 0.1),
            variant: TestKind::Struct { z: 1, a: 2 },
            list: vec![TestKind::Unit, TestKind::New(true), TestKind::Tuple(1, 2)],
            text: 'x',
            flat: Newtype("y"),
        };
        let plain = serde_json::to_value(&everything).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&to_string(&everything)).unwrap(), plain);
        assert_eq!(
            to_string(&everything),
            r#"{"flat":"y","list":["Unit",{"New":true},{"Tuple":[1,2]}],"none":null,"pair":[-1,0.1],"some":1,"text":"x","unit":null,"variant":{"Struct":{"a":2,"z":1}}}"#
        );
    }

    /// Sorts by building everything anew: slow, and plainly right.
    fn sorted(value: &Value) -> String {
        match value {
            Value::Array(items) => {
                format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(","))
            }
            Value::Object(map) => {
                let mut keys: Vec<_> = map.keys().collect();
                keys.sort();
                let pair = |key: &String| format!("{}:{}", json!(key), sorted(&map[key]));
                format!("{{{}}}", keys.into_iter().map(pair).collect::<Vec<_>>().join(","))
            }
            scalar => scalar.to_string(),
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,3}", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_written_with_its_keys_sorted(value in any_value()) {
            prop_assert_eq!(to_string(&value), sorted(&value));
        }
    }
}
