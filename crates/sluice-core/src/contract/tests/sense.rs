//! Contracts that contradict themselves.

use super::*;

fn lines(found: Vec<Contradiction>) -> Vec<String> {
    let line = |one: Contradiction| format!("{}: {}", one.path.join("/"), one.message);
    found.into_iter().map(line).collect()
}

#[test]
fn fields_that_make_sense_have_no_contradictions() {
    for written in [
        json!({}),
        json!({"type": "number", "min": 1, "max": 1}),
        json!({"type": "integer", "min": 1, "enum": [1, 2.0]}),
        json!({"type": "string", "minLength": 1, "maxLength": 1, "pattern": "a", "enum": ["a"]}),
        json!({"type": "url", "minLength": 1, "maxLength": 9, "pattern": "a"}),
        json!({"min": 1, "max": 2, "minLength": 1}),
        json!({"type": "array", "itemType": "any"}),
        json!({"required": false, "enum": ["", null]}),
    ] {
        assert_eq!(lines(field(&written).contradictions()), [""; 0], "{written}");
    }
}

#[test]
fn fields_that_cannot_be_meant_are_told() {
    for (written, expected) in [
        (json!({"type": "number", "min": 2, "max": 1}), "min: `min` 2 is above `max` 1"),
        (
            json!({"type": "string", "minLength": 2, "maxLength": 1}),
            "minLength: `minLength` 2 is above `maxLength` 1",
        ),
        (json!({"type": "string", "min": 1}), "min: `min` applies to numbers, not to a string"),
        (json!({"type": "url", "max": 1}), "max: `max` applies to numbers, not to a URL"),
        (
            json!({"type": "json", "minLength": 1}),
            "minLength: `minLength` applies to text, not to JSON",
        ),
        (
            json!({"type": "boolean", "maxLength": 1}),
            "maxLength: `maxLength` applies to text, not to a boolean",
        ),
        (
            json!({"type": "integer", "pattern": "a"}),
            "pattern: `pattern` applies to text, not to an integer",
        ),
        (json!({"type": "array", "min": 1}), "min: `min` applies to numbers, not to an array"),
        (json!({"type": "json", "itemType": "any"}), "itemType: `itemType` needs `type: array`"),
        (json!({"itemType": "any"}), "itemType: `itemType` needs `type: array`"),
        (
            json!({"type": "integer", "enum": [1, "x"]}),
            "enum/1: allowed value is a string, not an integer",
        ),
        (
            json!({"type": "integer", "max": 1, "enum": [2]}),
            "enum/0: allowed value is 2, above the maximum 1",
        ),
        (json!({"enum": [""]}), "enum/0: allowed value is required"),
    ] {
        assert_eq!(lines(field(&written).contradictions()), [expected], "{written}");
    }
}

#[test]
fn contracts_name_the_place_of_a_contradiction() {
    let wrong = fields(json!({"fine": {}, "Bad One": {"type": "number", "min": 2, "max": 1}}));
    let input = InputContract {
        fields: wrong.clone(),
        require_any_of: vec![vec!["a".to_owned()], vec![]],
        ..InputContract::default()
    };
    assert_eq!(
        lines(input.contradictions()),
        [
            "fields/Bad One/min: `min` 2 is above `max` 1",
            "requireAnyOf/1: an empty group can never be given",
        ]
    );
    let output = OutputContract { schema: Some(wrong), ..OutputContract::default() };
    assert_eq!(lines(output.contradictions()), ["schema/Bad One/min: `min` 2 is above `max` 1"]);
    assert_eq!(lines(OutputContract::default().contradictions()), [""; 0]);
}

#[test]
fn one_label_cannot_be_declared_twice() {
    let contract = InputContract {
        fields: fields(json!({"Main Topic": {}, "main_topic": {}, "other": {}})),
        ..InputContract::default()
    };
    assert_eq!(
        lines(contract.contradictions()),
        ["fields/main_topic: `main_topic` is declared twice: labels ignore case and blanks"]
    );
}
