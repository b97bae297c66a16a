//! Processing of outputs, and the properties that hold for all of them.

use super::schema::{FieldSchema, FieldType};
use super::*;
use crate::choice::{Choice as _, find};
use crate::pattern::Pattern;
use crate::violation::Reason;
use proptest::prelude::*;
use serde_json::json;

/// A schema as authors write it. For tests only: the readers of documents also keep positions
/// and report diagnostics.
pub(crate) fn field(written: &Value) -> FieldSchema {
    let number = |key: &str| written.get(key).and_then(Value::as_number).cloned();
    let length = |key: &str| written.get(key).and_then(Value::as_u64);
    let required = written.get("required");
    FieldSchema {
        kind: written["type"].as_str().map(|name| find::<FieldType>(name).unwrap()),
        required: required != Some(&json!(false)) && written.get("optional").is_none(),
        values: written["enum"].as_array().cloned().unwrap_or_default(),
        minimum: number("minimum"),
        maximum: number("maximum"),
        min_length: length("minLength"),
        max_length: length("maxLength"),
        pattern: written["pattern"].as_str().map(|source| Pattern::new(source).unwrap()),
        items: written.get("items").map(|items| Box::new(field(items))),
        properties: fields(&written["properties"]),
        required_properties: required.and_then(Value::as_array).map(|names| {
            let text = |name: &Value| name.as_str().unwrap().to_owned();
            names.iter().map(text).collect()
        }),
        description: written["description"].as_str().map(str::to_owned),
        ..FieldSchema::default()
    }
}

pub(crate) fn fields(written: &Value) -> IndexMap<String, FieldSchema> {
    let map = written.as_object().into_iter().flatten();
    map.map(|(name, written)| (name.clone(), field(written))).collect()
}

pub(crate) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

#[test]
fn settling_coerces_before_it_validates() {
    let schema = fields(&json!({
        "count": {"type": "integer", "maximum": 10},
        "verdict": {"type": "string", "enum": ["PASS", "FAIL"]},
    }));
    let answer = map(json!({"count": "9.6", "verdict": "PASS - all fine", "extra": [1]}));
    let settled = settle(&schema, answer, Membership::Tolerant).unwrap();
    assert_eq!(
        Value::Object(settled.outputs),
        json!({"count": 10, "verdict": "PASS", "extra": [1]})
    );
    assert_eq!(
        serde_json::to_value(&settled.coercions).unwrap(),
        json!([{"field": "count", "from": "string", "to": "integer"}])
    );
}

#[test]
fn settling_answers_every_violation() {
    let schema = fields(&json!({
        "count": {"type": "integer", "maximum": 10},
        "verdict": {"type": "string", "enum": ["PASS"]},
        "note": {},
    }));
    let answer = map(json!({"count": "11", "verdict": "PASS, yes"}));
    let violations = settle(&schema, answer, Membership::Exact).unwrap_err();
    let found: Vec<_> = violations.iter().map(|one| (one.field.as_str(), one.reason)).collect();
    assert_eq!(
        found,
        [
            ("count", Reason::AboveMax),
            ("verdict", Reason::EnumMismatch),
            ("note", Reason::MissingRequired),
        ]
    );
}

#[test]
fn inputs_that_are_no_outputs_pass_through_whatever_the_agent_said() {
    let declared = fields(&json!({"score": {"type": "number"}}));
    let inputs = map(json!({"score": 1, "url": "http://a", "lost": null, "kept": [1]}));
    let mut outputs = map(json!({"url": "http://evil", "score": 2, "lost": "x", "own": true}));
    let pairs = inputs.iter().map(|(name, value)| (name.as_str(), value));
    passthrough(pairs, &declared, &mut outputs);
    assert_eq!(
        Value::Object(outputs),
        json!({"url": "http://a", "score": 2, "lost": null, "own": true, "kept": [1]})
    );
}

/// Values of every type, with many that coercion changes.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-20i32..20).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        "[-+]?[0-9]{1,3}(\\.[0-9]{1,2})?(e[0-9])?".prop_map(Value::from),
        "( )?(true|YES|no|False|nope)( )?".prop_map(Value::from),
        Just(json!("{\"a\":\"1\",\"result\":\"yes\"}")),
        Just(json!("[1,2]")),
        "(low|high)( .*|[a-z]*)".prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    "(a|b|c|result|status)"
}

fn any_field() -> impl Strategy<Value = FieldSchema> {
    let kind = prop::option::of(prop::sample::select(
        FieldType::WORDS.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
    ));
    let values = prop_oneof![
        4 => Just(Vec::new()),
        1 => Just(vec![json!("low"), json!("low risk"), json!("high"), json!(1), json!(true)]),
    ];
    let bound = || prop::option::weighted(0.2, (-9i64..9).prop_map(Into::into));
    let length = || prop::option::weighted(0.2, 0u64..6);
    let pattern = prop::option::weighted(0.1, Just(Pattern::new("^[a-z0-9]").unwrap()));
    let leaf = (kind, any::<bool>(), values, bound(), bound(), length(), length(), pattern);
    let leaf = leaf.prop_map(|(kind, required, values, minimum, maximum, min, max, pattern)| {
        FieldSchema {
            kind,
            required,
            values,
            minimum,
            maximum,
            min_length: min,
            max_length: max,
            pattern,
            ..FieldSchema::default()
        }
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let listed = prop::option::of(prop::collection::vec(name(), 0..3));
        (
            inner.clone(),
            prop::option::of(inner.clone()),
            prop::collection::vec((name(), inner), 0..3),
            listed,
        )
            .prop_map(|(outer, items, properties, listed)| FieldSchema {
                items: items.map(Box::new),
                properties: properties.into_iter().collect(),
                required_properties: listed,
                ..outer
            })
    })
}

fn any_case() -> impl Strategy<Value = (IndexMap<String, FieldSchema>, Map<String, Value>)> {
    let schema = prop::collection::vec((name(), any_field()), 0..4)
        .prop_map(|pairs| pairs.into_iter().collect());
    let outputs = prop::collection::vec((name(), any_value()), 0..5)
        .prop_map(|pairs| pairs.into_iter().collect());
    (schema, outputs)
}

proptest! {
    #[test]
    fn coercing_twice_changes_nothing_more((schema, outputs) in any_case()) {
        let (once, _) = coerce::coerce(&schema, outputs);
        let (twice, made) = coerce::coerce(&schema, once.clone());
        prop_assert_eq!(once, twice);
        prop_assert_eq!(made, Vec::new());
    }

    #[test]
    fn what_is_settled_stays_valid((schema, outputs) in any_case()) {
        if let Ok(settled) = settle(&schema, outputs, Membership::Tolerant) {
            let mut again = settled.outputs.clone();
            prop_assert_eq!(validate::validate(&schema, &mut again, Membership::Exact), Vec::new());
            prop_assert_eq!(again, settled.outputs);
        }
    }

    #[test]
    fn validation_and_contradictions_never_panic((schema, mut outputs) in any_case()) {
        let found = validate::validate(&schema, &mut outputs, Membership::Tolerant);
        prop_assert!(found.len() <= crate::limits::VIOLATIONS_MAX);
        for field in schema.values() {
            field.contradictions();
        }
    }

    #[test]
    fn schemas_read_back_from_their_json(field_schema in any_field()) {
        let written = serde_json::to_value(&field_schema).unwrap();
        prop_assert_eq!(field(&written), field_schema);
    }
}
