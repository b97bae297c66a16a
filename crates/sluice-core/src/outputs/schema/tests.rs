use super::*;
use crate::outputs::tests::field;
use serde_json::json;

fn contradictions(schema: &Value) -> Vec<(String, String)> {
    let found = field(schema).contradictions().into_iter();
    found.map(|one| (one.path.join("/"), one.message)).collect()
}

fn contradiction(schema: &Value, path: &str, message: &str) {
    let expected = [(path.to_owned(), message.to_owned())];
    assert_eq!(contradictions(schema), expected, "{schema}");
}

#[test]
fn schemas_that_make_sense_have_no_contradictions() {
    for schema in [
        json!({}),
        json!({"type": "number", "minimum": 1, "maximum": 1}),
        json!({"type": "integer", "minimum": -1.5, "maximum": 5, "enum": [0, 5.0]}),
        json!({"type": "string", "minLength": 2, "maxLength": 2, "pattern": "a", "enum": ["ab"]}),
        json!({"minimum": 1, "minLength": 1, "pattern": "a"}),
        json!({"enum": [1, "a", null, [], {}]}),
        json!({"type": "array", "items": {"type": "string"}, "enum": [["a"], []]}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}),
        json!({"type": "boolean", "enum": [true]}),
    ] {
        assert_eq!(contradictions(&schema), [], "{schema}");
    }
}

#[test]
fn bounds_that_exclude_each_other_are_contradictions() {
    contradiction(
        &json!({"type": "number", "minimum": 2, "maximum": 1.5}),
        "minimum",
        "`minimum` 2 is above `maximum` 1.5",
    );
    contradiction(
        &json!({"type": "string", "minLength": 3, "maxLength": 2}),
        "minLength",
        "`minLength` 3 is above `maxLength` 2",
    );
}

#[test]
fn bounds_on_a_type_they_cannot_apply_to_are_contradictions() {
    for kind in ["string", "boolean", "object", "array"] {
        for key in ["minimum", "maximum"] {
            let found = contradictions(&json!({"type": kind, key: 1}));
            assert_eq!(found.len(), 1, "{kind} {key}");
            assert_eq!(found[0].0, key);
        }
    }
    for kind in ["number", "integer", "boolean", "object", "array"] {
        for (key, value) in
            [("minLength", json!(1)), ("maxLength", json!(1)), ("pattern", json!("a"))]
        {
            let found = contradictions(&json!({"type": kind, key: value}));
            assert_eq!(found.len(), 1, "{kind} {key}");
            assert_eq!(found[0].0, key);
        }
    }
    contradiction(
        &json!({"type": "array", "minimum": 1}),
        "minimum",
        "`minimum` applies to numbers, not to an array",
    );
    contradiction(
        &json!({"type": "integer", "pattern": "a"}),
        "pattern",
        "`pattern` applies to text, not to an integer",
    );
}

#[test]
fn inner_schemas_need_the_type_that_has_an_inside() {
    contradiction(&json!({"items": {}}), "items", "`items` needs `type: array`");
    contradiction(&json!({"type": "object", "items": {}}), "items", "`items` needs `type: array`");
    contradiction(
        &json!({"properties": {"a": {}}}),
        "properties",
        "`properties` needs `type: object`",
    );
    contradiction(
        &json!({"type": "array", "required": ["a"]}),
        "required",
        "a list under `required` needs `type: object`",
    );
}

#[test]
fn allowed_values_must_fit_the_rest_of_the_schema() {
    contradiction(
        &json!({"type": "string", "enum": ["a", 5]}),
        "enum/1",
        "allowed value is an integer, not a string",
    );
    contradiction(
        &json!({"type": "integer", "maximum": 3, "enum": [3, 4]}),
        "enum/1",
        "allowed value is 4, above the maximum 3",
    );
    contradiction(
        &json!({"type": "string", "enum": [null]}),
        "enum/0",
        "allowed value is null, not a string",
    );
    contradiction(
        &json!({"type": "array", "items": {"type": "string"}, "enum": [[1]]}),
        "enum/0",
        "allowed value [0] is an integer, not a string",
    );
}

#[test]
fn contradictions_are_found_inside_with_their_place() {
    let wrong = json!({"type": "number", "minimum": 2, "maximum": 1});
    let found = contradictions(&json!({"type": "object", "properties": {
        "a": wrong,
        "b": {"type": "array", "items": wrong},
    }}));
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["properties/a/minimum", "properties/b/items/minimum"]);
}

#[test]
fn a_schema_is_written_as_authors_write_it() {
    let written = json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "required": false, "enum": [1], "minimum": 0, "maximum": 2},
            "b": {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "x"},
            "c": {"type": "array", "items": {}, "description": "all of them"},
        },
    });
    let text = serde_json::to_string(&field(&written)).unwrap();
    assert_eq!(text, written.to_string());
    assert_eq!(serde_json::to_value(FieldSchema::default()).unwrap(), json!({}));
    assert_eq!(
        serde_json::to_value(FieldSchema::of(FieldType::Array)).unwrap(),
        json!({"type": "array"})
    );
}

#[test]
fn an_optional_object_with_a_list_is_written_apart_from_a_required_one() {
    let required = FieldSchema {
        required_properties: Some(vec!["a".to_owned()]),
        ..FieldSchema::of(FieldType::Object)
    };
    let optional = FieldSchema { required: false, ..required.clone() };
    assert_eq!(
        serde_json::to_value(required).unwrap(),
        json!({"type": "object", "required": ["a"]})
    );
    assert_eq!(
        serde_json::to_value(optional).unwrap(),
        json!({"type": "object", "required": ["a"], "optional": true})
    );
}
