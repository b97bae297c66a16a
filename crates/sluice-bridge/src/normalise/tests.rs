use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, json};
use std::time::{Duration, Instant};

fn check(text: &str, expected: &Value) {
    let found = object_in(text).map_or(Value::Null, Value::Object);
    assert_eq!(&found, expected, "{text}");
}

#[test]
fn an_object_is_found_alone_in_a_fence_and_in_prose() {
    for text in [
        r#"{"a":1}"#,
        " \n{\"a\": 1}\n",
        "```json\n{\"a\": 1}\n```",
        "```\n{\"a\": 1}\n```\n",
        "Here you are:\n\n```json\n{\n  \"a\": 1\n}\n```\nAnything else?",
        r#"The answer is {"a":1}."#,
        r#"{"a":1} is the answer"#,
        r#"In {braces} and [brackets], or { and ", but at last {"a":1}"#,
        r#"<answer>{"a":1}</answer>"#,
        "\u{feff}{\"a\":1}",
        "größer {\"a\":1} größer",
    ] {
        check(text, &json!({"a": 1}));
    }
}

#[test]
fn strings_may_hold_anything() {
    check(r#"x {"a":"} ``` { \" \\"} y"#, &json!({"a": "} ``` { \" \\"}));
    check(r#"{"a":"\u00e9\ud83d\ude00 ü"}"#, &json!({"a": "é😀 ü"}));
}

#[test]
fn of_several_objects_the_most_likely_one_is_returned() {
    check(r#"not {"a":1} but {"a":2}"#, &json!({"a": 2}));
    check(r#"{"a":1} and then {}"#, &json!({"a": 1}));
    check("{\"a\":1}\n```json\n{\"a\":2}\n```\nas {\"a\":3} says", &json!({"a": 2}));
    check("```\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```", &json!({"a": 2}));
    check("fn main() {}", &json!({}));
    // A lone surrogate is not valid text, and a number beyond 64 bits not a valid number.
    check(r#"{"a":1} {"a":"\ud800"} {"a":1e999}"#, &json!({"a": 1}));
}

#[test]
fn a_part_is_not_returned_for_the_whole() {
    for text in [
        "",
        "no object",
        "{",
        "}{",
        r#"[{"a":1}]"#,
        r#"{"items":[{"a":1},{"a":2},{"a""#,
        r#"{"items":{"a":1}"#,
        r#""{\"a\":1}""#,
        "{a: 1}",
        "{'a': 1}",
        r#"{"a":01}"#,
        r#"{"a":1,}"#,
        r#"{"a":.5}"#,
        r#"{"a":+1}"#,
        r#"{"a":NaN}"#,
        "{\"a\":\"raw\nline\"}",
    ] {
        check(text, &Value::Null);
    }
}

#[test]
fn depth_is_bounded_and_parts_of_a_too_deep_object_are_ignored() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(object_in(&nested(DOCUMENT_DEPTH_MAX)).is_some());
    assert!(object_in(&nested(DOCUMENT_DEPTH_MAX + 1)).is_none());
    assert!(object_of(&nested(DOCUMENT_DEPTH_MAX)).is_some());
    assert!(object_of(&nested(DOCUMENT_DEPTH_MAX + 1)).is_none());
}

#[test]
fn hostile_text_takes_linear_time() {
    const BYTES: usize = 1024 * 1024;
    for piece in [
        "{",
        "[",
        "{\"",
        "{}",
        "[]",
        "{\"a\":",
        "[{\"a\":",
        "{\"a\":[",
        "```{}",
        "```\n{",
        "\"",
        "\\",
        "{\"a\":\"",
        "{\"a\":1,",
        "{}\t",
        "{ ",
        "[1,",
        "-",
        "{\"\\u",
        "{\"a\":{}",
    ] {
        let text = piece.repeat(BYTES / piece.len());
        let begin = Instant::now();
        let _ = (object_in(&text), object_of(&text));
        let taken = begin.elapsed();
        assert!(taken < Duration::from_secs(5), "{piece} took {taken:?}");
    }
}

#[test]
fn the_whole_text_is_an_object_or_not() {
    assert_eq!(object_of(" {\"a\":1}\n"), json!({"a": 1}).as_object().cloned());
    for text in ["", "x", r#"{"a":1} x"#, r#"x {"a":1}"#, r#"[{"a":1}]"#, r#"{"a":1}{"b":2}"#, "{"]
    {
        assert_eq!(object_of(text), None, "{text}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_object_among_prose_is_found(
        object in prop::collection::vec((".{0,6}", json_value()), 1..4),
        before in "[^\\[{]{0,30}",
        after in "[^\\[{]{0,30}",
    ) {
        let object: Map<String, Value> = object.into_iter().collect();
        for written in [serde_json::to_string(&object)?, serde_json::to_string_pretty(&object)?] {
            let text = format!("{before}{written}{after}");
            prop_assert_eq!(object_in(&text), Some(object.clone()));
        }
    }

    #[test]
    fn the_scanner_agrees_with_the_json_parser(text in r#"[{\[][{}\[\]:,"\\\-+.0-9aeEtrufnlse \n]{0,12}"#) {
        let mut stream = Deserializer::from_str(&text).into_iter::<IgnoredAny>();
        let parsed = stream.next().is_some_and(|value| value.is_ok());
        let end = parsed.then(|| stream.byte_offset());
        let found = scan::values(&text).next().filter(|found| found.range.start == 0);
        prop_assert_eq!(found.map(|found| found.range.end), end);
    }

    #[test]
    fn any_text_has_a_result(text in ".{0,200}", braces in "[{}\\[\\]\",:a`\\n ]{0,200}") {
        let _ = (object_in(&text), object_in(&braces), object_of(&braces));
    }
}
