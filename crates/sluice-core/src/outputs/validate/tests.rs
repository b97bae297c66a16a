use super::*;
use crate::limits::VIOLATIONS_MAX;
use crate::outputs::tests::{fields, map};
use serde_json::json;

fn check(schema: &Value, outputs: Value) -> Vec<(String, Reason, String)> {
    let found = validate(&fields(schema), &mut map(outputs), Membership::Tolerant);
    let parts = |one: Violation| (one.field, one.reason, one.message);
    found.into_iter().map(parts).collect()
}

/// The violations of one field `x`.
fn reasons(schema: &Value, value: &Value) -> Vec<Reason> {
    let found = check(&json!({ "x": schema }), json!({ "x": value }));
    found.into_iter().map(|(_, reason, _)| reason).collect()
}

fn message(schema: &Value, value: &Value) -> String {
    let mut found = check(&json!({ "x": schema }), json!({ "x": value }));
    assert_eq!(found.len(), 1, "{found:?}");
    let (field, _, message) = found.remove(0);
    assert_eq!(field, "x");
    message
}

#[test]
fn every_type_accepts_its_own_values_only() {
    let values = [
        ("string", json!("5")),
        ("number", json!(2.5)),
        ("integer", json!(5)),
        ("boolean", json!(false)),
        ("object", json!({})),
        ("array", json!([])),
    ];
    for (kind, _) in &values {
        for (other, value) in &values {
            let fits = kind == other || (*kind == "number" && *other == "integer");
            let expected = if fits { vec![] } else { vec![Reason::TypeMismatch] };
            assert_eq!(reasons(&json!({ "type": kind }), value), expected, "{kind} {value}");
        }
    }
    for (_, value) in &values {
        assert_eq!(reasons(&json!({}), value), [], "any type: {value}");
    }
}

#[test]
fn an_integer_has_no_fraction_and_fits_64_bits() {
    let schema = json!({"type": "integer"});
    for value in [json!(5.0), json!(i64::MIN), json!(u64::MAX), json!(1e18), json!(-0.0)] {
        assert_eq!(reasons(&schema, &value), [], "{value}");
    }
    for value in [json!(2.5), json!(1e300), json!(18446744073709551616.0), json!(-1e19)] {
        assert_eq!(reasons(&schema, &value), [Reason::TypeMismatch], "{value}");
    }
    assert_eq!(message(&schema, &json!(2.5)), "is 2.5, not a 64-bit integer");
    assert_eq!(message(&schema, &json!("x")), "is a string, not an integer");
    assert_eq!(message(&json!({"type": "string"}), &json!(2)), "is an integer, not a string");
}

#[test]
fn a_type_error_ends_that_fields_checks() {
    let schema = json!({"type": "string", "enum": ["a"], "minLength": 3, "maximum": 1});
    assert_eq!(reasons(&schema, &json!(5)), [Reason::TypeMismatch]);
    let schema = json!({"type": "object", "properties": {"a": {}}});
    assert_eq!(reasons(&schema, &json!([])), [Reason::TypeMismatch]);
}

#[test]
fn fields_are_required_unless_they_say_otherwise_and_null_is_absent() {
    let schema = json!({"must": {"type": "string"}, "may": {"type": "string", "required": false}});
    let missing = |name: &str| (name.to_owned(), Reason::MissingRequired, "is required".to_owned());
    assert_eq!(check(&schema, json!({})), [missing("must")]);
    assert_eq!(check(&schema, json!({"must": null, "may": null})), [missing("must")]);
    assert_eq!(check(&schema, json!({"must": ""})), []);
    let any = json!({"x": {}});
    assert_eq!(check(&any, json!({"x": null})), [missing("x")]);
}

#[test]
fn an_objects_list_decides_what_is_required_inside_it() {
    let schema = json!({"o": {"type": "object", "required": ["a", "z"], "properties": {
        "a": {"required": false},
        "b": {},
    }}});
    let missing = |outputs| -> Vec<String> {
        let found = check(&schema, outputs);
        found.into_iter().map(|(field, _, _)| field).collect()
    };
    assert_eq!(missing(json!({"o": {}})), ["o.a", "o.z"]);
    assert_eq!(missing(json!({"o": {"a": 1, "z": null}})), ["o.z"]);
    assert_eq!(missing(json!({"o": {"a": 1, "z": 2}})), [""; 0]);
    let none = json!({"o": {"type": "object", "required": [], "properties": {"b": {}}}});
    assert_eq!(check(&none, json!({"o": {}})), []);
    let each = json!({"o": {"type": "object", "properties": {"b": {}}}});
    assert_eq!(check(&each, json!({"o": {}})).len(), 1);
}

#[test]
fn an_enum_stores_the_canonical_value_nested_ones_too() {
    let schema = fields(&json!({
        "risk": {"type": "string", "enum": ["low", "high"]},
        "all": {"type": "array", "items": {"enum": ["low", "high", 3]}},
        "deep": {"type": "object", "properties": {"v": {"enum": ["ok"]}}},
    }));
    let mut outputs = map(json!({
        "risk": "low, since nothing moved",
        "all": ["high (very)", 3.0],
        "deep": {"v": "ok."},
    }));
    assert_eq!(validate(&schema, &mut outputs, Membership::Tolerant), []);
    assert_eq!(
        Value::Object(outputs).to_string(),
        r#"{"risk":"low","all":["high",3],"deep":{"v":"ok"}}"#
    );
}

#[test]
fn what_a_policy_reads_must_be_a_member_exactly() {
    let schema = fields(&json!({"risk": {"enum": ["low"]}}));
    let mut outputs = map(json!({"risk": "low, really"}));
    let found = validate(&schema, &mut outputs, Membership::Exact);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].reason, Reason::EnumMismatch);
    assert_eq!(found[0].message, r#"is "low, really", not one of "low""#);
    assert_eq!(outputs["risk"], "low, really");
}

#[test]
fn enum_tokens_end_at_a_boundary() {
    let schema = json!({"enum": ["COMPLETE", 5]});
    assert_eq!(reasons(&schema, &json!("COMPLETED")), [Reason::EnumMismatch]);
    assert_eq!(reasons(&schema, &json!("5")), [Reason::EnumMismatch]);
    assert_eq!(message(&schema, &json!("x")), r#"is "x", not one of "COMPLETE", 5"#);
}

#[test]
fn bounds_are_checked_on_the_canonical_value() {
    let schema = json!({"enum": ["low"], "maxLength": 3, "pattern": "^low$"});
    assert_eq!(reasons(&schema, &json!("low and a long story")), []);
}

#[test]
fn numbers_have_inclusive_bounds() {
    let schema = json!({"type": "number", "minimum": 1, "maximum": 2.5});
    assert_eq!(reasons(&schema, &json!(1)), []);
    assert_eq!(reasons(&schema, &json!(2.5)), []);
    assert_eq!(message(&schema, &json!(0.5)), "is 0.5, below the minimum 1");
    assert_eq!(message(&schema, &json!(12)), "is 12, above the maximum 2.5");
    assert_eq!(reasons(&schema, &json!(0)), [Reason::BelowMin]);
    assert_eq!(reasons(&schema, &json!(3)), [Reason::AboveMax]);
}

#[test]
fn lengths_count_characters_and_are_inclusive() {
    let schema = json!({"type": "string", "minLength": 2, "maxLength": 3});
    assert_eq!(reasons(&schema, &json!("éé")), []);
    assert_eq!(reasons(&schema, &json!("日本語")), []);
    assert_eq!(message(&schema, &json!("é")), "has 1 character, below the minimum 2");
    assert_eq!(message(&schema, &json!("日本語文")), "has 4 characters, above the maximum 3");
    assert_eq!(reasons(&schema, &json!("")), [Reason::TooShort]);
    assert_eq!(reasons(&schema, &json!("abcd")), [Reason::TooLong]);
}

#[test]
fn a_pattern_must_occur() {
    let schema = json!({"type": "string", "pattern": "^v[0-9]+$"});
    assert_eq!(reasons(&schema, &json!("v12")), []);
    assert_eq!(reasons(&schema, &json!("w12")), [Reason::PatternMismatch]);
    assert_eq!(message(&schema, &json!("w")), "does not match the pattern ^v[0-9]+$");
}

#[test]
fn one_field_can_break_several_rules() {
    let schema = json!({"type": "string", "enum": ["abc"], "minLength": 3, "pattern": "^a"});
    assert_eq!(
        reasons(&schema, &json!("x")),
        [Reason::EnumMismatch, Reason::TooShort, Reason::PatternMismatch]
    );
}

#[test]
fn bounds_apply_only_to_the_type_they_are_about() {
    let schema = json!({"minimum": 5, "minLength": 5, "pattern": "^a"});
    assert_eq!(reasons(&schema, &json!("abcde")), []);
    assert_eq!(reasons(&schema, &json!(5)), []);
    assert_eq!(reasons(&schema, &json!([])), []);
    assert_eq!(reasons(&schema, &json!(true)), []);
}

#[test]
fn nested_violations_name_their_place() {
    let schema = json!({"list": {"type": "array", "items": {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "t": {"type": "array", "items": {}}},
    }}});
    let found = check(&schema, json!({"list": [{"n": 0, "t": []}, "x", {"n": 1}, null]}));
    let places: Vec<_> = found.iter().map(|(field, reason, _)| (field.as_str(), *reason)).collect();
    assert_eq!(
        places,
        [
            ("list[0].n", Reason::BelowMin),
            ("list[1]", Reason::TypeMismatch),
            ("list[2].t", Reason::MissingRequired),
            ("list[3]", Reason::TypeMismatch),
        ]
    );
}

#[test]
fn a_null_item_is_allowed_where_any_type_is() {
    assert_eq!(reasons(&json!({"type": "array", "items": {}}), &json!([null])), []);
}

#[test]
fn outputs_nobody_declared_are_allowed() {
    assert_eq!(check(&json!({}), json!({"x": null, "y": 1})), []);
}

#[test]
fn violations_are_bounded_wherever_they_come_from() {
    let schema = json!({"list": {"type": "array", "items": {"type": "string"}}, "x": {}});
    let found = check(&schema, json!({"list": vec![1; VIOLATIONS_MAX + 50]}));
    assert_eq!(found.len(), VIOLATIONS_MAX);
    assert!(found.iter().all(|(_, reason, _)| *reason == Reason::TypeMismatch));
    let names: Vec<String> = (0..VIOLATIONS_MAX + 50).map(|n| format!("f{n}")).collect();
    let many: Map<String, Value> = names.iter().map(|n| (n.clone(), json!({}))).collect();
    assert_eq!(check(&Value::Object(many), json!({})).len(), VIOLATIONS_MAX);
    let listed = json!({"o": {"type": "object", "required": names}});
    assert_eq!(check(&listed, json!({"o": {}})).len(), VIOLATIONS_MAX);
}

#[test]
fn a_single_value_has_the_empty_place() {
    let schema =
        crate::outputs::tests::field(&json!({"type": "array", "items": {"type": "string"}}));
    let fields = |mut value: Value| -> Vec<String> {
        let found = super::value(&schema, &mut value, Membership::Exact);
        found.into_iter().map(|one| one.field).collect()
    };
    assert_eq!(fields(json!(1)), [""]);
    assert_eq!(fields(json!([1])), ["[0]"]);
    assert_eq!(fields(json!(["a"])), [""; 0]);
}
