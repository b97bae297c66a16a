mod sense;

use super::field::ContractType;
use super::*;
use crate::limits::VIOLATIONS_MAX;
use crate::outputs::tests::map;
use crate::pattern::Pattern;
use serde_json::json;

/// A contract field as authors write it. Tests only.
fn field(written: &Value) -> ContractField {
    let kind = |key: &str| {
        written[key].as_str().map(|name| crate::choice::find::<ContractType>(name).unwrap())
    };
    let number = |key: &str| written.get(key).and_then(Value::as_number).cloned();
    let length = |key: &str| written.get(key).and_then(Value::as_u64);
    let pattern = written["pattern"].as_str();
    ContractField {
        kind: kind("type").unwrap_or_default(),
        required: written["required"] != false,
        min_length: length("minLength"),
        max_length: length("maxLength"),
        pattern: pattern.map(|source| Pattern::new(source).unwrap()),
        min: number("min"),
        max: number("max"),
        item_type: kind("itemType"),
        values: written["enum"].as_array().cloned().unwrap_or_default(),
        ..ContractField::default()
    }
}

fn fields(written: Value) -> IndexMap<String, ContractField> {
    let pairs = map(written).into_iter();
    pairs.map(|(name, written)| (name, field(&written))).collect()
}

fn inputs(contract: &InputContract, given: Value) -> Vec<String> {
    let given = map(given);
    let pairs = given.iter().map(|(name, value)| (name.as_str(), value));
    shown(contract.check(pairs))
}

fn shown(found: Vec<Violation>) -> Vec<String> {
    let line = |one: Violation| format!("{}: {one}", one.reason);
    found.into_iter().map(line).collect()
}

/// All violations of one input `x`.
fn one(written: &Value, value: &Value) -> Vec<String> {
    let contract =
        InputContract { fields: fields(json!({ "x": written })), ..InputContract::default() };
    inputs(&contract, json!({ "x": value }))
}

#[test]
fn every_type_accepts_its_own_values_only() {
    let values = [
        json!("text"),
        json!("5"),
        json!("http://a.b/c"),
        json!(5),
        json!(5.0),
        json!(2.5),
        json!(1e300),
        json!(true),
        json!([1]),
        json!({}),
    ];
    for (kind, accepted) in [
        ("string", &[0, 1, 2][..]),
        ("number", &[3, 4, 5, 6]),
        ("integer", &[3, 4]),
        ("boolean", &[7]),
        ("url", &[2]),
        ("json", &[1, 8, 9]),
        ("array", &[8]),
        ("any", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        let written = json!({ "type": kind });
        let fits = |at: &usize| one(&written, &values[*at]).is_empty();
        let found: Vec<usize> = (0..values.len()).filter(fits).collect();
        assert_eq!(found, accepted, "{kind}");
    }
}

#[test]
fn a_mismatch_says_what_was_given() {
    for (kind, value, message) in [
        ("string", json!(5), "type_mismatch: x is an integer, not a string"),
        ("integer", json!(2.5), "type_mismatch: x is 2.5, not a 64-bit integer"),
        ("integer", json!("2"), "type_mismatch: x is a string, not an integer"),
        ("url", json!("ftp://a"), "type_mismatch: x is \"ftp://a\", not an http or https address"),
        ("url", json!(5), "type_mismatch: x is an integer, not a URL"),
        ("json", json!("{"), "type_mismatch: x is text that is not valid JSON"),
        ("json", json!(5), "type_mismatch: x is an integer, not JSON"),
        ("json", json!(true), "type_mismatch: x is a boolean, not JSON"),
    ] {
        assert_eq!(one(&json!({ "type": kind }), &value), [message]);
    }
    // Any valid JSON text is accepted.
    for text in ["null", "[1, {\"a\": 2}]", " {} ", "1.5e3"] {
        assert_eq!(one(&json!({"type": "json"}), &json!(text)), [""; 0]);
    }
}

#[test]
fn missing_null_and_empty_are_absent() {
    let contract = InputContract {
        fields: fields(
            json!({"must": {"type": "string"}, "may": {"type": "integer", "required": false}}),
        ),
        ..InputContract::default()
    };
    let missing = "missing_required: must is required";
    assert_eq!(inputs(&contract, json!({})), [missing]);
    assert_eq!(inputs(&contract, json!({"must": null, "may": null})), [missing]);
    assert_eq!(inputs(&contract, json!({"must": "", "may": ""})), [missing]);
    assert_eq!(inputs(&contract, json!({"must": " "})), [""; 0]);
    let any = json!({});
    assert_eq!(one(&any, &json!("")), ["missing_required: x is required"]);
    assert_eq!(one(&any, &json!(0)), [""; 0]);
    assert_eq!(one(&any, &json!(false)), [""; 0]);
}

#[test]
fn bounds_name_their_figures() {
    for (written, value, expected) in [
        (
            json!({"type": "number", "min": 1}),
            json!(0.5),
            "below_min: x is 0.5, below the minimum 1",
        ),
        (
            json!({"type": "integer", "max": 10}),
            json!(12),
            "above_max: x is 12, above the maximum 10",
        ),
        (
            json!({"type": "string", "minLength": 3}),
            json!("éé"),
            "too_short: x has 2 characters, below the minimum 3",
        ),
        (
            json!({"type": "url", "maxLength": 8}),
            json!("http://ab"),
            "too_long: x has 9 characters, above the maximum 8",
        ),
        (
            json!({"type": "string", "pattern": "^a"}),
            json!("b"),
            "pattern_mismatch: x does not match the pattern ^a",
        ),
        (
            json!({"enum": ["a", 5]}),
            json!("a - sure"),
            "enum_mismatch: x is \"a - sure\", not one of \"a\", 5",
        ),
    ] {
        assert_eq!(one(&written, &value), [expected]);
    }
    let within =
        json!({"type": "string", "minLength": 2, "maxLength": 2, "pattern": "^a", "enum": ["ab"]});
    assert_eq!(one(&within, &json!("ab")), [""; 0]);
    assert_eq!(one(&json!({"min": 1, "max": 1, "enum": [1]}), &json!(1.0)), [""; 0]);
}

#[test]
fn a_type_error_ends_that_fields_checks_and_others_add_up() {
    let written = json!({"type": "string", "minLength": 3, "pattern": "^a", "enum": ["abc"]});
    assert_eq!(one(&written, &json!(5)).len(), 1);
    assert_eq!(one(&written, &json!("x")).len(), 3);
}

#[test]
fn items_are_checked_and_named() {
    let written = json!({"type": "array", "itemType": "integer"});
    assert_eq!(
        one(&written, &json!([1, "2", 3, null, 4.5])),
        [
            "type_mismatch: x[1] is a string, not an integer",
            "type_mismatch: x[3] is null, not an integer",
            "type_mismatch: x[4] is 4.5, not a 64-bit integer",
        ]
    );
    assert_eq!(one(&written, &json!([])), [""; 0]);
    assert_eq!(one(&json!({"type": "array"}), &json!([1, "2", null])), [""; 0]);
    let many = json!(vec!["x"; VIOLATIONS_MAX + 10]);
    assert_eq!(one(&written, &many).len(), VIOLATIONS_MAX);
}

#[test]
fn labels_meet_in_normal_form() {
    let contract = InputContract {
        fields: fields(json!({"Main Topic": {"type": "string"}})),
        require_any_of: vec![vec!["URL".to_owned(), "Raw Text".to_owned()]],
        strict: true,
        ..InputContract::default()
    };
    assert_eq!(inputs(&contract, json!({" main_topic": "x", "raw text": "y"})), [""; 0]);
    assert_eq!(
        inputs(&contract, json!({"Main Topic": 5, "raw_text": "", "Extra": 1})),
        [
            "type_mismatch: Main Topic is an integer, not a string",
            "missing_required: URL|Raw Text needs at least one of these inputs",
            "unknown_field: extra is not an input of this lens",
        ]
    );
}

#[test]
fn each_group_needs_one_of_its_labels() {
    let group = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let contract = InputContract {
        require_any_of: vec![group(&["a", "b"]), group(&["b", "c"])],
        ..InputContract::default()
    };
    assert_eq!(inputs(&contract, json!({"b": 1})), [""; 0]);
    assert_eq!(inputs(&contract, json!({"a": 1, "c": 0})), [""; 0]);
    assert_eq!(inputs(&contract, json!({"a": 1, "c": null})).len(), 1);
    assert_eq!(
        inputs(&contract, json!({})),
        [
            "missing_required: a|b needs at least one of these inputs",
            "missing_required: b|c needs at least one of these inputs",
        ]
    );
}

#[test]
fn only_a_strict_contract_refuses_what_it_does_not_name() {
    let mut contract =
        InputContract { fields: fields(json!({"a": {}})), ..InputContract::default() };
    assert_eq!(inputs(&contract, json!({"a": 1, "b": 2})), [""; 0]);
    contract.strict = true;
    assert_eq!(
        inputs(&contract, json!({"a": 1, "b": 2})),
        ["unknown_field: b is not an input of this lens"]
    );
}

fn output(contract: &OutputContract, envelope: &Value) -> Vec<String> {
    shown(contract.check(&Envelope::from_value(envelope).unwrap()))
}

#[test]
fn an_envelope_of_another_kind_is_invalid() {
    let contract = OutputContract {
        kind: Some("text".to_owned()),
        artifact_kind: Some("report".to_owned()),
        ..OutputContract::default()
    };
    let fine = json!({"kind": "text", "artifactKind": "report", "output": "x"});
    assert_eq!(output(&contract, &fine), [""; 0]);
    assert_eq!(
        output(&contract, &json!({"kind": "image", "output": "x"})),
        [
            "invalid_envelope: kind is `image`, not `text`",
            "invalid_envelope: artifactKind is absent, not `report`",
        ]
    );
    let open = OutputContract::default();
    assert_eq!(output(&open, &json!({"kind": "image", "output": "x"})), [""; 0]);
}

#[test]
fn a_schema_needs_data_that_is_an_object() {
    let contract = OutputContract {
        schema: Some(fields(json!({"score": {"type": "integer"}, "note": {"required": false}}))),
        ..OutputContract::default()
    };
    let unfit = "schema_violation: data must be an object, since the contract has a schema";
    assert_eq!(output(&contract, &json!({"output": "x"})), [unfit]);
    for data in [json!(null), json!([1]), json!("{}")] {
        let envelope = json!({"output": "x", "data": data});
        assert_eq!(output(&contract, &envelope), [unfit]);
    }
    assert_eq!(output(&contract, &json!({"output": "x", "data": {"score": 1}})), [""; 0]);
    assert_eq!(
        output(&contract, &json!({"output": "x", "data": {"score": "1"}})),
        ["type_mismatch: score is a string, not an integer"]
    );
    // Keys of data are compared exactly.
    assert_eq!(
        output(&contract, &json!({"output": "x", "data": {"Score": 1}})),
        ["missing_required: score is required"]
    );
}

#[test]
fn an_empty_output_is_a_violation_even_without_a_contract() {
    let empty = "missing_required: output is empty";
    for envelope in [
        json!({}),
        json!({"kind": "text", "metadata": {"a": 1}}),
        json!({"output": null}),
        json!({"output": "", "data": null, "media": null}),
        json!({"output": "", "data": {}, "media": []}),
        json!({"output": "", "data": [], "media": ""}),
    ] {
        let read = Envelope::from_value(&envelope).unwrap();
        assert_eq!(shown(check_output(None, &read)), [empty], "{envelope}");
        let open = OutputContract::default();
        assert_eq!(shown(check_output(Some(&open), &read)), [empty], "{envelope}");
    }
    for envelope in [
        json!({"output": " "}),
        json!({"output": false}),
        json!({"output": []}),
        json!({"data": {"a": null}}),
        json!({"data": 0}),
        json!({"media": ["http://a"]}),
        json!({"media": "http://a"}),
    ] {
        let read = Envelope::from_value(&envelope).unwrap();
        assert_eq!(shown(check_output(None, &read)), [""; 0], "{envelope}");
    }
}

#[test]
fn a_malformed_envelope_is_refused() {
    for (value, message) in [
        (json!("text"), "invalid_envelope: envelope is a string, not an object"),
        (json!([]), "invalid_envelope: envelope is an array, not an object"),
        (json!(null), "invalid_envelope: envelope is null, not an object"),
        (json!({"kind": 5}), "invalid_envelope: kind is an integer, not a string"),
        (json!({"artifactKind": {}}), "invalid_envelope: artifactKind is an object, not a string"),
        (json!({"metadata": []}), "invalid_envelope: metadata is an array, not an object"),
    ] {
        let violation = Envelope::from_value(&value).unwrap_err();
        assert_eq!(shown(vec![violation]), [message]);
    }
}

#[test]
fn an_envelope_is_written_as_it_was_read() {
    for envelope in [
        json!({"kind": "text", "artifactKind": "a", "output": 1, "data": {}, "media": [], "metadata": {}}),
        json!({"output": null, "data": null, "metadata": null}),
    ] {
        let read = Envelope::from_value(&envelope).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), envelope);
    }
    let read = Envelope::from_value(&json!({"kind": null, "more": 1})).unwrap();
    assert_eq!(read, Envelope::default());
}

#[test]
fn contracts_are_written_as_authors_write_them() {
    let full = json!({
        "type": "array", "required": false, "minLength": 1, "maxLength": 2, "pattern": "a",
        "min": 1, "max": 2, "itemType": "url", "enum": [1],
    });
    let input = InputContract {
        kind: Some("text".to_owned()),
        fields: fields(json!({"a": full, "b": {"type": "any"}})),
        require_any_of: vec![vec!["a".to_owned()]],
        strict: true,
    };
    assert_eq!(
        serde_json::to_value(input).unwrap(),
        json!({"kind": "text", "fields": {"a": full, "b": {}}, "requireAnyOf": [["a"]], "strict": true})
    );
    assert_eq!(serde_json::to_value(InputContract::default()).unwrap(), json!({}));
    let output = OutputContract {
        kind: Some("text".to_owned()),
        artifact_kind: Some("report".to_owned()),
        schema: Some(IndexMap::new()),
        ..OutputContract::default()
    };
    assert_eq!(
        serde_json::to_value(output).unwrap(),
        json!({"kind": "text", "artifactKind": "report", "schema": {}})
    );
    assert_eq!(serde_json::to_value(OutputContract::default()).unwrap(), json!({}));
    assert_eq!(
        serde_json::to_value(ContractField::of(ContractType::Url)).unwrap(),
        json!({"type": "url"})
    );
}
