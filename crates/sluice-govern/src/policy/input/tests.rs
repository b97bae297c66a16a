use super::*;
use expect_test::expect;
use serde_json::json;

fn refund() -> Value {
    json!({
        "type": "object",
        "properties": {
            "order": {"type": "string", "maxLength": 20},
            "amount": {"type": "number"},
            "count": {"type": "integer"},
            "notify": {"type": ["boolean", "null"]},
            "to": {"type": "array", "items": {"$ref": "#/$defs/address"}},
            "reason": {"anyOf": [{"enum": ["late", "broken"]}, {"type": "null"}]},
            "of": {
                "type": "object",
                "properties": {"the \"bank\"": {"type": "string"}, "any": {}},
                "required": ["the \"bank\""],
            },
            "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        },
        "required": ["order", "amount", "notify"],
        "$defs": {"address": {"type": "string"}},
    })
}

#[test]
fn a_schema_becomes_a_record_of_what_cedar_has_types_for() {
    let kind = InputType::from_schema(&refund()).unwrap();
    expect![[r#"
        {
            "amount": decimal,
            "count"?: Long,
            "notify"?: Bool,
            "of"?: {
                "the \"bank\"": String,
            },
            "order": String,
            "reason"?: String,
            "to"?: Set<String>,
        }"#]]
    .assert_eq(&kind.cedar(0));
    for schema in [json!(true), json!({"type": "string"}), json!({"$ref": "#"})] {
        assert_eq!(InputType::from_schema(&schema), None, "{schema}");
    }
    // A schema that contains itself ends.
    let knot = json!({"properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}});
    assert!(InputType::from_schema(&knot).is_some());
}

#[test]
fn arguments_become_values_of_their_types() {
    let kind = InputType::from_schema(&refund()).unwrap();
    let value = |input: Value| {
        let Value::Object(input) = input else { panic!("an object") };
        kind.value(&input).map(|_| ())
    };
    for (more, fits) in [
        (json!({}), true),
        (json!({"notify": null, "to": ["ada", "bob"], "of": {"the \"bank\"": "x"}}), true),
        (json!({"amount": "12.5", "count": 5.0}), true),
        (json!({"unknown": {"a": [1]}, "either": 5}), true),
        (json!({"amount": "much"}), false),
        (json!({"amount": null}), false),
        (json!({"count": 5.5}), false),
        (json!({"count": u64::MAX}), false),
        (json!({"to": "ada"}), false),
        (json!({"to": ["ada", 5]}), false),
        (json!({"of": {}}), false),
        (json!({"reason": ["late"]}), false),
    ] {
        let mut input = json!({"order": "o-1", "amount": 5});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        assert_eq!(value(input.clone()).is_ok(), fits, "{input}");
    }
    assert_eq!(
        value(json!({"order": 5, "amount": 5})).unwrap_err().message(),
        "argument `order` is not a text, as the tool's definition says"
    );
    assert!(value(json!({"order": "o-1"})).unwrap_err().message().contains("`amount`"));
}

#[test]
fn the_paths_of_a_schema_are_those_of_a_call() {
    let file = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let paths = Paths::from_schema(&json!({"type": "object", "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "files": {"type": "array", "items": file},
        "any": {},
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
    }}));
    for path in ["to", "files", "files.id", "any", "any.x", "any.x.y", "more.x"] {
        assert!(paths.may_have(path), "{path}");
    }
    for path in ["t", "to.x", "files.name", "anyx", "id"] {
        assert!(!paths.may_have(path), "{path}");
    }
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}, "additionalProperties": true}),
        json!({"anyOf": [{"properties": {}}, {"type": "string"}]}),
    ] {
        assert!(Paths::from_schema(&schema).may_have("x"), "{schema}");
    }
}
