use super::*;

#[test]
fn the_strict_form_requires_everything_and_lets_the_optional_be_null() {
    let schema = json!({"type": "object", "description": "a person", "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
    }, "required": ["age"]});
    assert_eq!(strict(&schema), None, "a least length cannot be said");
    let schema = json!({"type": "object", "additionalProperties": true, "properties": {
        "age": {"type": "integer", "minimum": 0},
        "nick": {"type": ["string", "null"]},
        "pets": {"type": "array", "items": {"type": "object", "properties": {
            "kind": {"enum": ["cat", "dog"]},
        }}},
    }, "required": ["age"]});
    let pet = json!({"type": "object", "required": ["kind"], "properties": {
        "kind": {"anyOf": [{"enum": ["cat", "dog"]}, {"type": "null"}]},
    }, "additionalProperties": false});
    assert_eq!(
        strict(&schema),
        Some(json!({"type": "object", "required": ["age", "nick", "pets"], "properties": {
            "age": {"type": "integer", "minimum": 0},
            "nick": {"type": ["string", "null"]},
            "pets": {"anyOf": [{"type": "array", "items": pet}, {"type": "null"}]},
        }, "additionalProperties": false}))
    );
}

#[test]
fn a_schema_without_a_strict_form_has_none() {
    let within = |inner: Value| json!({"type": "object", "properties": {"x": inner}});
    for schema in [
        json!({"type": "string"}),
        json!({}),
        json!(true),
        json!({"type": "object"}),
        within(json!({"type": "object"})),
        within(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        within(json!({"oneOf": [{"type": "string"}]})),
        within(json!({"allOf": []})),
        within(json!({"$ref": "#/x"})),
        within(json!({})),
        within(json!(true)),
    ] {
        assert_eq!(strict(&schema), None, "{schema}");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..=DOCUMENT_DEPTH_MAX {
        deep = within(deep);
    }
    assert_eq!(strict(&deep), None, "too deep");
}

#[test]
fn only_nulls_of_optional_properties_are_removed() {
    let schema = json!({"type": "object", "properties": {
        "must": {"type": ["string", "null"]},
        "may": {"type": "string"},
        "nullable": {"type": ["string", "null"]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }, "required": ["must"]});
    let mut value = json!({"must": null, "may": null, "nullable": null, "other": null, "list": [{"a": null}, {"a": "x"}]});
    without_nulls(&mut value, &schema);
    assert_eq!(
        value,
        json!({"must": null, "nullable": null, "other": null, "list": [{}, {"a": "x"}]})
    );
}

#[test]
fn a_schema_is_reduced_to_geminis_subset() {
    let schema = json!({"$schema": "x", "type": "object", "additionalProperties": false, "properties": {
        "at": {"type": "string", "format": "date-time"},
        "mail": {"type": ["string", "null"], "format": "email", "minLength": 3},
        "kind": {"const": "cat"},
        "size": {"type": "integer", "enum": [1, 2]},
        "any": {"oneOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]},
    }, "required": ["at"]});
    // Gemini requires a single type: this schema is sent unchanged.
    assert_eq!(gemini(&schema), None);
    let mut typed = schema;
    typed["properties"]["kind"]["type"] = "string".into();
    assert_eq!(
        gemini(&typed),
        Some(json!({"type": "object", "properties": {
            "at": {"type": "string", "format": "date-time"},
            "mail": {"type": "string", "nullable": true, "minLength": 3},
            "kind": {"enum": ["cat"], "type": "string"},
            "size": {"type": "integer"},
            "any": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        }, "required": ["at"]}))
    );
}

#[test]
fn a_schema_that_would_change_its_meaning_is_not_reduced() {
    let within = |inner: Value| json!({"type": "object", "properties": {"x": inner}});
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        within(json!({"type": "object"})),
        within(json!({"type": ["string", "integer"]})),
        within(json!({"$ref": "#/x"})),
        within(json!({})),
        within(json!({"type": "array", "items": true})),
    ] {
        assert_eq!(gemini(&schema), None, "{schema}");
    }
}
