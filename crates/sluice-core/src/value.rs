//! Rules of values: their text, comparison and truth.
//!
//! Expressions, edge conditions, enums, merges and templates use the same rules, so that a
//! value never means two things.

use serde_json::{Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value as text: strings unchanged, null as the empty text, other values as compact JSON.
pub fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

/// Everything is true but null, false, zero and the empty string.
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// The number that a string contains: decimal, finite, surrounding blanks ignored.
pub fn numeric(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    // Rust also parses "inf", "nan" and "infinity"; only digits are accepted.
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if !plain {
        return None;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Compares numbers by value, whatever their representation: 1 equals 1.0.
pub(crate) fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let float = |number: &Number| number.as_f64().unwrap_or(0.0);
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_with_float(a, float(b)),
        (None, Some(b)) => compare_with_float(b, float(a)).reverse(),
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

/// Compares exactly: as a float, 2^53 + 1 would be 2^53 and pass a maximum of 2^53.
fn compare_with_float(integer: i128, float: f64) -> Ordering {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and no 64-bit integer is near the ends of 128 bits"
    )]
    let whole = float.trunc() as i128;
    let by_fraction = 0.0.partial_cmp(&float.fract());
    integer.cmp(&whole).then(by_fraction.unwrap_or(Ordering::Equal))
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Deep equality, with numbers compared by value and objects in any key order.
///
/// Values of different types differ, and a numeric string differs from its number: only the
/// comparison operators are tolerant about that.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Whether `answer` is `token`, possibly followed by prose.
///
/// Agents append explanations: `COMPLETE -- all good` is `COMPLETE`. The token must end at a
/// boundary, so `COMPLETED` and `COMPLETE-ish` are different.
pub(crate) fn is_token(answer: &str, token: &str) -> bool {
    if token.is_empty() {
        return answer.is_empty();
    }
    let Some(rest) = answer.trim_start().strip_prefix(token) else {
        return false;
    };
    let mut rest = rest.chars();
    match rest.next() {
        None => true,
        Some(next) if next.is_whitespace() => true,
        // `v1.2` is not `v1`, and `12:30` is not `12`.
        Some('.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '"' | '\'') => {
            !rest.next().is_some_and(char::is_alphanumeric)
        }
        Some(next) => matches!(next, '(' | '[' | '{' | '\u{2013}' | '\u{2014}'),
    }
}

/// How strictly an answer must match one of the allowed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Trailing prose at a token boundary is ignored: for outputs of agents.
    Tolerant,
    /// The value must be equal: for policies and approvals.
    Exact,
}

/// The allowed value that `answer` matches: an equal one, else (if tolerant) the longest one
/// that it begins with.
pub fn member<'a>(
    answer: &Value,
    allowed: &'a [Value],
    membership: Membership,
) -> Option<&'a Value> {
    if let Some(equal) = allowed.iter().find(|candidate| same(answer, candidate)) {
        return Some(equal);
    }
    let (Membership::Tolerant, Value::String(answer)) = (membership, answer) else {
        return None;
    };
    let tokens = allowed.iter().filter(|candidate| {
        candidate.as_str().is_some_and(|token| !token.is_empty() && is_token(answer, token))
    });
    tokens.max_by_key(|token| token.as_str().map_or(0, str::len))
}

/// The name of a value's JSON type.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if integer(number).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The static name of a JSON type, for a text with that name.
pub(crate) fn known_type_name(word: &str) -> Option<&'static str> {
    let names = ["null", "boolean", "integer", "number", "string", "array", "object"];
    names.into_iter().find(|name| *name == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_keeps_strings_drops_null_and_compacts_the_rest() {
        assert_eq!(text(&json!("a b")), "a b");
        assert_eq!(text(&json!(null)), "");
        assert_eq!(text(&json!(true)), "true");
        assert_eq!(text(&json!(1.5)), "1.5");
        assert_eq!(text(&json!({"b": [1, null], "a": "x"})), r#"{"b":[1,null],"a":"x"}"#);
    }

    #[test]
    fn only_null_false_zero_and_empty_text_are_false() {
        for value in [json!(null), json!(false), json!(0), json!(0.0), json!(-0.0), json!("")] {
            assert!(!truthy(&value), "{value}");
        }
        for value in
            [json!(true), json!(-1), json!(0.1), json!(" "), json!("false"), json!([]), json!({})]
        {
            assert!(truthy(&value), "{value}");
        }
    }

    #[test]
    fn numeric_strings_are_decimal_and_finite() {
        for (text, number) in [
            ("5", json!(5)),
            (" -7 ", json!(-7)),
            ("+3", json!(3)),
            ("1.50", json!(1.5)),
            (".5", json!(0.5)),
            ("2e3", json!(2000.0)),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(numeric(text).map(Value::Number), Some(number), "{text:?}");
        }
        for text in [
            "", " ", "inf", "NaN", "1e400", "0x10", "1_000", "5 apples", "1,5", "e", "-",
            "infinity",
        ] {
            assert_eq!(numeric(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_compare_by_value_and_large_integers_exactly() {
        let number = |value: Value| match value {
            Value::Number(number) => number,
            _ => unreachable!(),
        };
        let compare = |a, b| compare_numbers(&number(a), &number(b));
        assert_eq!(compare(json!(1), json!(1.0)), Ordering::Equal);
        assert_eq!(compare(json!(2), json!(10)), Ordering::Less);
        assert_eq!(
            compare(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
            Ordering::Greater
        );
        assert_eq!(compare(json!(-1), json!(u64::MAX)), Ordering::Less);
        assert_eq!(compare(json!(0.5), json!(0)), Ordering::Greater);
        assert_eq!(compare(json!(0), json!(-0.5)), Ordering::Greater);
        assert_eq!(compare(json!(0), json!(0.5)), Ordering::Less);
        assert_eq!(compare(json!(-1), json!(-0.5)), Ordering::Less);
        assert_eq!(compare(json!(2.5), json!(1.5)), Ordering::Greater);
        assert_eq!(compare(json!(u64::MAX), json!(1e300)), Ordering::Less);
        assert_eq!(compare(json!(-1e300), json!(i64::MIN)), Ordering::Less);
        let (float, above) = (json!(9_007_199_254_740_992.0), json!(9_007_199_254_740_993_u64));
        assert_eq!(compare(above.clone(), float.clone()), Ordering::Greater);
        assert_eq!(compare(float, above), Ordering::Less);
    }

    #[test]
    fn sameness_is_deep_and_ignores_key_order() {
        assert!(same(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!same(&json!({"a": 1}), &json!({"b": 1})));
        assert!(!same(&json!([1, 2]), &json!([1])));
        assert!(!same(&json!([1]), &json!([2])));
        assert!(!same(&json!("1"), &json!(1)));
        assert!(same(&json!(null), &json!(null)));
    }

    #[test]
    fn a_token_ends_at_a_boundary() {
        for answer in [
            "COMPLETE",
            "COMPLETE -- all good",
            "COMPLETE.",
            "COMPLETE: yes",
            "COMPLETE\nfine",
            " COMPLETE",
            "COMPLETE (mostly)",
            "COMPLETE(mostly)",
            "COMPLETE\u{2014}ok",
            "COMPLETE!\"",
        ] {
            assert!(is_token(answer, "COMPLETE"), "{answer:?}");
        }
        for answer in [
            "COMPLETED",
            "COMPLETE_2",
            "COMPLETE-ish",
            "complete",
            "NOT COMPLETE",
            "COMPLETE.d",
            "COMPLETE/x",
            "",
        ] {
            assert!(!is_token(answer, "COMPLETE"), "{answer:?}");
        }
        assert!(is_token("", ""));
        assert!(!is_token("x", ""));
        assert!(!is_token("v1.2", "v1"));
        assert!(!is_token("12:30", "12"));
    }

    #[test]
    fn membership_prefers_equal_then_longest() {
        let allowed = [json!("no"), json!("no action"), json!(3), json!("")];
        let find = |answer: Value| member(&answer, &allowed, Membership::Tolerant).cloned();
        assert_eq!(find(json!("no")), Some(json!("no")));
        assert_eq!(find(json!("no action needed")), Some(json!("no action")));
        assert_eq!(find(json!("no, thanks")), Some(json!("no")));
        assert_eq!(find(json!(3.0)), Some(json!(3)));
        assert_eq!(find(json!("3")), None);
        assert_eq!(find(json!("")), Some(json!("")));
        assert_eq!(find(json!("other")), None);
        assert_eq!(member(&json!("no, thanks"), &allowed, Membership::Exact), None);
        assert_eq!(member(&json!("no"), &allowed, Membership::Exact), Some(&json!("no")));
    }
}
