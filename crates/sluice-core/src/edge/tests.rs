use super::key::OutputKey;
use super::test::Test;
use crate::contract::envelope::Envelope;
use serde_json::{Value, json};

fn at(key: &str, envelope: &Value) -> Value {
    let envelope = Envelope::from_value(envelope).unwrap();
    OutputKey::parse(key).resolve(&envelope).into_owned()
}

#[test]
fn a_key_is_looked_up_in_the_envelope_then_in_its_data() {
    let envelope = json!({
        "kind": "text",
        "artifactKind": "report",
        "output": "the whole text",
        "data": {
            "score": 5,
            "output": "never seen",
            "nothing": null,
            "empty": "",
            "kind": {"x": "of data"},
            "list": [{"name": "first"}, {"name": "second"}],
            "deep": {"1": "one", "a": {"b": [[7, 8]]}},
        },
        "media": [{"url": "http://a"}],
        "metadata": {"model": "m", "score": 9},
    });
    for (key, expected) in [
        // The envelope's own parts.
        ("", json!("the whole text")),
        ("output", json!("the whole text")),
        ("kind", json!("text")),
        ("artifactKind", json!("report")),
        ("media", json!([{"url": "http://a"}])),
        ("metadata", json!({"model": "m", "score": 9})),
        ("metadata.model", json!("m")),
        ("media.0.url", json!("http://a")),
        ("data.score", json!(5)),
        ("data.list.1.name", json!("second")),
        // Then its data.
        ("score", json!(5)),
        ("list.0.name", json!("first")),
        ("list.01.name", json!("second")),
        ("deep.a.b.0.1", json!(8)),
        ("deep.1", json!("one")),
        ("kind.x", json!("of data")),
        // A null or an empty text that is present is a value.
        ("nothing", json!(null)),
        ("empty", json!("")),
        ("data.nothing", json!(null)),
        // Not found: the whole output.
        ("nosuch", json!("the whole text")),
        ("nothing.x", json!("the whole text")),
        ("score.x", json!("the whole text")),
        ("list.2", json!("the whole text")),
        ("list.-1", json!("the whole text")),
        ("list.+1", json!("the whole text")),
        ("list.name", json!("the whole text")),
        ("list.99999999999999999999", json!("the whole text")),
        ("list.", json!("the whole text")),
        ("kind.y", json!("the whole text")),
        ("output.x", json!("the whole text")),
        ("artifact_kind", json!("the whole text")),
        (" score", json!("the whole text")),
    ] {
        assert_eq!(at(key, &envelope), expected, "{key:?}");
    }
}

#[test]
fn what_is_not_found_is_the_output_as_text() {
    let structured = json!({"output": {"a": [1]}, "data": [10, 20]});
    assert_eq!(at("x", &structured), json!("{\"a\":[1]}"));
    assert_eq!(at("output.a.0", &structured), json!(1));
    assert_eq!(at("output", &structured), json!({"a": [1]}));
    assert_eq!(at("1", &structured), json!(20));
    let bare = json!({});
    assert_eq!(at("output", &bare), json!(null));
    for key in ["kind", "artifactKind", "data", "media", "metadata", "x", "a.b"] {
        assert_eq!(at(key, &bare), json!(""), "{key}");
    }
    let nulls = json!({"output": "text", "data": null});
    assert_eq!(at("data", &nulls), json!(null));
    assert_eq!(at("media", &nulls), json!("text"));
}

#[test]
fn a_key_is_written_as_it_was_read() {
    for key in ["output", "a.b.0", "a..b", "."] {
        assert_eq!(OutputKey::parse(key).to_string(), key);
        assert_eq!(serde_json::to_value(OutputKey::parse(key)).unwrap(), key);
    }
    assert_eq!(OutputKey::parse(""), OutputKey::parse("output"));
    assert_eq!(OutputKey::default(), OutputKey::parse("output"));
}

fn table(test: &Test, holds: &[Value], fails: &[Value]) {
    for value in holds {
        assert!(test.holds(value), "{test:?} {value}");
    }
    for value in fails {
        assert!(!test.holds(value), "{test:?} {value}");
    }
}

#[test]
fn equals_compares_text_forms() {
    table(
        &Test::Equals(json!(5)),
        &[json!(5), json!("5")],
        &[json!("5.0"), json!("55"), json!(null), json!(" 5"), json!([5])],
    );
    table(&Test::Equals(json!("true")), &[json!(true), json!("true")], &[json!("True"), json!(1)]);
    table(&Test::Equals(json!(null)), &[json!(null), json!("")], &[json!("null"), json!(0)]);
    table(&Test::Equals(json!({"a": 1})), &[json!("{\"a\":1}"), json!({"a": 1})], &[json!({})]);
}

#[test]
fn contains_needs_two_strings() {
    table(
        &Test::Contains(json!("b")),
        &[json!("abc"), json!("b")],
        &[json!("ac"), json!(["b"]), json!({"b": 1}), json!(null)],
    );
    table(&Test::Contains(json!(5)), &[], &[json!("5"), json!(5), json!(55)]);
}

#[test]
fn present_is_neither_null_nor_empty() {
    table(
        &Test::Present,
        &[json!(0), json!(false), json!(" "), json!([]), json!({})],
        &[json!(null), json!("")],
    );
}

#[test]
fn truthy_is_as_in_json() {
    table(
        &Test::Truthy,
        &[json!(1), json!(true), json!("false"), json!([]), json!({})],
        &[json!(null), json!(false), json!(0), json!("")],
    );
}

#[test]
fn tests_are_written_as_authors_write_them() {
    for (test, written) in [
        (Test::Equals(json!(5)), json!({"type": "equals", "value": 5})),
        (Test::Contains(json!("x")), json!({"type": "contains", "value": "x"})),
        (Test::Present, json!({"type": "present"})),
        (Test::Truthy, json!({"type": "truthy"})),
    ] {
        assert_eq!(serde_json::to_value(test).unwrap(), written);
    }
}
