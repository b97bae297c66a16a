use super::*;
use crate::outputs::tests::{fields, map};
use serde_json::json;

/// Coerces one field `x` of this schema.
fn one(schema: &Value, value: Value) -> (Value, Vec<Coercion>) {
    let outputs = Map::from_iter([("x".to_owned(), value)]);
    let (mut outputs, made) = coerce(&fields(&json!({ "x": schema })), outputs);
    (outputs.remove("x").unwrap(), made)
}

fn becomes(kind: &str, value: Value, expected: Value, from: &'static str) {
    let shown = format!("{kind} <- {value}");
    let record = Coercion {
        field: "x".to_owned(),
        from,
        to: crate::choice::find::<FieldType>(kind).unwrap(),
    };
    let result = one(&json!({ "type": kind }), value);
    assert_eq!(result, (expected, vec![record]), "{shown}");
}

fn stays(kind: &str, value: Value) {
    let shown = format!("{kind} <- {value}");
    let result = one(&json!({ "type": kind }), value.clone());
    assert_eq!(result, (value, Vec::new()), "{shown}");
}

#[test]
fn a_string_is_made_of_everything_but_null() {
    becomes("string", json!({"b": [1], "a": null}), json!(r#"{"b":[1],"a":null}"#), "object");
    becomes("string", json!([1, "x"]), json!(r#"[1,"x"]"#), "array");
    becomes("string", json!(5), json!("5"), "integer");
    becomes("string", json!(2.50), json!("2.5"), "number");
    becomes("string", json!(true), json!("true"), "boolean");
    stays("string", json!("5"));
    stays("string", json!(null));
}

#[test]
fn a_number_is_made_of_a_numeric_string_only() {
    becomes("number", json!("2.5"), json!(2.5), "string");
    becomes("number", json!(" 7 "), json!(7), "string");
    becomes("number", json!("1e3"), json!(1000.0), "string");
    for value in [
        json!(7),
        json!(7.5),
        json!("seven"),
        json!("7 apples"),
        json!(""),
        json!("NaN"),
        json!(true),
        json!([7]),
        json!({"value": 7}),
        json!(null),
    ] {
        stays("number", value);
    }
}

#[test]
fn an_integer_is_made_of_a_numeric_string_rounded_half_away_from_zero() {
    for (text, expected) in [
        ("5", json!(5)),
        (" -5\n", json!(-5)),
        ("2.4", json!(2)),
        ("2.5", json!(3)),
        ("3.5", json!(4)),
        ("-2.5", json!(-3)),
        ("-2.4", json!(-2)),
        ("-0.4", json!(0)),
        ("0.49999999999999999999", json!(0)),
        ("1.25e2", json!(125)),
        ("1e18", json!(1_000_000_000_000_000_000_i64)),
        ("9007199254740993.4", json!(9_007_199_254_740_993_i64)),
        ("-9223372036854775808.4", json!(i64::MIN)),
        ("18446744073709551615.4", json!(u64::MAX)),
    ] {
        becomes("integer", json!(text), expected, "string");
    }
    for value in [
        json!("18446744073709551615.5"),
        json!("18446744073709551616"),
        json!("-9223372036854775808.5"),
        json!("1e30"),
        json!("1e300"),
        json!("five"),
        json!(""),
        json!(true),
        json!([5]),
        json!({"value": 5}),
        json!(null),
        // Only numeric strings are rounded.
        json!(2.5),
        json!(1e300),
    ] {
        stays("integer", value);
    }
}

#[test]
fn an_integer_written_with_a_point_is_respelt_without_a_record() {
    for (value, text) in [
        (json!(5.0), "5"),
        (json!(-5.0), "-5"),
        (json!(-0.0), "0"),
        (json!(1e18), "1000000000000000000"),
        (json!(1.8e19), "18000000000000000000"),
        (json!(7), "7"),
    ] {
        let (result, made) = one(&json!({"type": "integer"}), value.clone());
        assert_eq!(result.to_string(), text, "{value}");
        assert_eq!(made, []);
    }
    stays("number", json!(5.0));
}

#[test]
fn a_boolean_is_made_of_four_words() {
    for (word, expected) in [
        ("true", true),
        ("True", true),
        ("YES", true),
        (" yes\n", true),
        ("false", false),
        ("No", false),
    ] {
        becomes("boolean", json!(word), json!(expected), "string");
    }
    for value in [
        json!("y"),
        json!("1"),
        json!("yes, all of it"),
        json!("on"),
        json!(""),
        json!(1),
        json!(0),
        json!([true]),
        json!(null),
        json!(true),
    ] {
        stays("boolean", value);
    }
}

#[test]
fn a_boolean_is_made_of_an_object_that_says_so() {
    for (object, expected) in [
        (json!({"result": true}), true),
        (json!({"value": false}), false),
        (json!({"verified": "yes"}), true),
        (json!({"passed": "no"}), false),
        (json!({"status": "TRUE"}), true),
        // The order of keys is fixed, not the agent's.
        (json!({"status": false, "passed": false, "result": true}), true),
        (json!({"passed": true, "status": false}), true),
        (json!({"verified": true, "passed": false}), true),
        (json!({"value": true, "verified": false}), true),
        // A key with another value is skipped.
        (json!({"result": "three claims checked", "passed": false}), false),
    ] {
        becomes("boolean", object, json!(expected), "object");
    }
    for value in [
        json!({}),
        json!({"ok": true}),
        json!({"result": 1}),
        json!({"result": {"value": true}}),
        json!({"Result": true}),
    ] {
        stays("boolean", value);
    }
}

#[test]
fn an_array_is_made_by_wrapping_a_single_value() {
    becomes("array", json!("a"), json!(["a"]), "string");
    becomes("array", json!(0), json!([0]), "integer");
    becomes("array", json!({"a": 1}), json!([{"a": 1}]), "object");
    becomes("array", json!("[1,2]"), json!(["[1,2]"]), "string");
    stays("array", json!([]));
    stays("array", json!([null]));
    stays("array", json!(null));
}

#[test]
fn an_object_is_made_of_a_json_string_of_one() {
    becomes("object", json!(" {\"a\": [1]} "), json!({"a": [1]}), "string");
    for value in [
        json!("[1]"),
        json!("5"),
        json!("{"),
        json!("{\"a\":1} done"),
        json!([{"a": 1}]),
        json!(5),
        json!(null),
        json!({"a": "1"}),
    ] {
        stays("object", value);
    }
}

#[test]
fn a_json_string_that_nests_too_deep_is_left_alone() {
    let nested = |levels: usize| {
        let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        one(&json!({"type": "object"}), json!(text)).0
    };
    // The field itself is one level, the number inside another.
    assert!(nested(DOCUMENT_DEPTH_MAX - 2).is_object());
    assert!(nested(DOCUMENT_DEPTH_MAX - 1).is_string());

    let listed = |levels: usize| {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        one(&json!({"type": "object"}), json!(text)).0
    };
    assert!(listed(DOCUMENT_DEPTH_MAX - 2).is_object());
    assert!(listed(DOCUMENT_DEPTH_MAX - 1).is_string());

    // Deeper in the outputs, fewer levels are left.
    let inside = |levels: usize| {
        let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let schema = json!({"type": "array", "items": {"type": "object"}});
        one(&schema, json!([text])).0[0].take()
    };
    assert!(inside(DOCUMENT_DEPTH_MAX - 3).is_object());
    assert!(inside(DOCUMENT_DEPTH_MAX - 2).is_string());
}

#[test]
fn coercion_reaches_into_items_and_properties_and_names_the_place() {
    let schema = fields(&json!({
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "n": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }}},
        "loose": {"items": {"type": "boolean"}, "properties": {"ok": {"type": "boolean"}}},
        "absent": {"type": "integer"},
    }));
    let answer = map(json!({
        "list": "{\"n\":\"1.5\",\"tags\":7,\"more\":\"8\"}",
        "loose": ["yes", true],
        "undeclared": "5",
    }));
    let (outputs, made) = coerce(&schema, answer);
    assert_eq!(
        Value::Object(outputs),
        json!({
            "list": [{"n": 2, "tags": ["7"], "more": "8"}],
            "loose": [true, true],
            "undeclared": "5",
        })
    );
    assert_eq!(
        serde_json::to_value(made).unwrap(),
        json!([
            {"field": "list", "from": "string", "to": "array"},
            {"field": "list[0]", "from": "string", "to": "object"},
            {"field": "list[0].n", "from": "string", "to": "integer"},
            {"field": "list[0].tags", "from": "integer", "to": "array"},
            {"field": "list[0].tags[0]", "from": "integer", "to": "string"},
            {"field": "loose[0]", "from": "string", "to": "boolean"},
        ])
    );
}

#[test]
fn a_field_without_a_type_is_not_coerced_but_its_properties_are() {
    let schema = json!({"properties": {"ok": {"type": "boolean"}}});
    let (value, made) = one(&schema, json!({"ok": "no"}));
    assert_eq!(value, json!({"ok": false}));
    assert_eq!(made[0].field, "x.ok");
    assert_eq!(one(&json!({}), json!("5")).0, json!("5"));
}
