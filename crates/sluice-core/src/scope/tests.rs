use super::names::Names;
use super::*;
use serde_json::json;

fn names() -> Names {
    Names::new()
        .with_step(
            "init",
            json!({"risk": 7, "tags": ["a", "b"], "map": {"0": "zero"}}),
            Some("héy"),
        )
        .with_step("shadow", json!({"stdout": "field", "json": "text", "outputs": 1}), Some("raw"))
        .with_step("quiet", json!({"length": 5}), None)
        .with_step("many", json!([{"x": 1}, {"x": 2}]), None)
        .with_skipped_step("skipped")
        .with_pending_step("pending")
        .with_local("item", json!({"name": "n"}))
        .with_local("shadow2", json!({"risk": "local"}))
        .with_step("shadow2", json!({"risk": "step"}), Some("step text"))
        .with_variable("risk", json!("variable"))
        .with_variable("a.b", json!("dotted"))
        .with_variable("a", json!({"b": "walked", "c": "walked c"}))
        .with_variable("a.b.c", json!(null))
        .with_variable("init", json!("never seen"))
        .with_args(json!({"risk": "arg", "only": {"x": 1}, "a": {"d": 1}, "none": null}))
}

/// The result of a path: JSON, `skipped` or `missing`.
fn find(path: &str) -> String {
    match resolve(&Path::parse(path).unwrap(), &names()) {
        Found::Value(value) => value.to_string(),
        Found::Skipped => "skipped".to_owned(),
        Found::Missing => "missing".to_owned(),
    }
}

#[test]
fn a_head_that_is_a_step_means_its_outputs() {
    let all = r#"{"risk":7,"tags":["a","b"],"map":{"0":"zero"}}"#;
    for (path, expected) in [
        ("init.outputs.risk", "7"),
        ("init.risk", "7"),
        ("$init.risk", "7"),
        ("$init.outputs.risk", "7"),
        ("init", all),
        ("init.outputs", all),
        ("$init.json", all),
        ("init.json", all),
        ("$init.json.risk", "7"),
        ("init.missing", "missing"),
        ("init.risk.deeper", "missing"),
        ("init.outputs.outputs", "missing"),
        ("pending.x", "missing"),
        ("pending", "missing"),
        ("many[1].x", "2"),
        ("many.0.x", "1"),
        ("many.length", "2"),
        ("many.outputs.1.x", "2"),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
}

#[test]
fn stdout_is_the_raw_text_unless_an_output_has_that_name() {
    for (path, expected) in [
        ("$init.stdout", "\"héy\""),
        ("init.stdout", "\"héy\""),
        ("$init.stdout.length", "3"),
        ("$init.stdout.x", "missing"),
        ("$init.stdout.length.x", "missing"),
        ("init.outputs.stdout", "missing"),
        ("$shadow.stdout", "\"raw\""),
        ("shadow.stdout", "\"field\""),
        ("shadow.outputs.stdout", "\"field\""),
        ("$shadow.outputs.stdout", "\"field\""),
        ("shadow.json", "\"text\""),
        ("$shadow.json", r#"{"stdout":"field","json":"text","outputs":1}"#),
        ("shadow.outputs.outputs", "1"),
        ("$quiet.stdout", "missing"),
        ("quiet.stdout", "missing"),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
}

#[test]
fn everything_under_a_skipped_step_is_skipped() {
    for path in ["skipped", "skipped.a.b", "$skipped.stdout", "skipped.outputs.x", "$skipped.json"]
    {
        assert_eq!(find(path), "skipped", "{path}");
    }
}

#[test]
fn locals_come_first_except_that_a_sigil_asks_for_the_step() {
    assert_eq!(find("item.name"), "\"n\"");
    assert_eq!(find("$item.name"), "\"n\"");
    assert_eq!(find("item.other"), "missing");
    assert_eq!(find("shadow2.risk"), "\"local\"");
    assert_eq!(find("shadow2.stdout"), "missing");
    assert_eq!(find("$shadow2.risk"), "\"step\"");
    assert_eq!(find("$shadow2.stdout"), "\"step text\"");
}

#[test]
fn a_variable_is_its_full_key_then_a_walk_then_an_argument() {
    for (path, expected) in [
        ("risk", "\"variable\""),
        ("a.b", "\"dotted\""),
        (r#"a["b"]"#, "\"walked\""),
        ("a.c", "\"walked c\""),
        ("a.b.c", "null"),
        ("a.d", "missing"),
        ("only.x", "1"),
        ("only.y", "missing"),
        ("none", "null"),
        ("none.x", "missing"),
        ("unknown", "missing"),
        ("args.risk", "\"arg\""),
        ("args.a.d", "1"),
        ("args.unknown", "missing"),
        ("args.length", "4"),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
    let empty = Names::new();
    assert_eq!(resolve(&Path::parse("args.x").unwrap(), &empty), Found::Missing);
    assert_eq!(resolve(&Path::parse("x").unwrap(), &empty), Found::Missing);
}

#[test]
fn indexes_and_lengths_follow_the_kind_of_value() {
    for (path, expected) in [
        ("init.tags[1]", "\"b\""),
        ("init.tags.1", "\"b\""),
        ("init.tags.2", "missing"),
        (r#"init.tags["1"]"#, "missing"),
        ("init.tags.length", "2"),
        ("init.tags.length.x", "missing"),
        ("init.map.0", "\"zero\""),
        ("init.map[0]", "\"zero\""),
        ("init.map[1]", "missing"),
        ("init.length", "3"),
        ("init.tags[0].length", "1"),
        ("init.risk.length", "missing"),
        ("quiet.length", "5"),
        ("risk[0]", "missing"),
        ("risk.length", "8"),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
}

#[test]
fn values_are_borrowed_not_copied() {
    let names = names();
    let found = resolve(&Path::parse("init.outputs").unwrap(), &names);
    assert!(matches!(found, Found::Value(Cow::Borrowed(_))));
}

#[test]
fn lengths_tell_how_much_was_read() {
    let names = names();
    let at = |path| locate(&Path::parse(path).unwrap(), &names);
    assert_eq!(at("$init.stdout.length"), Located::Length { count: 3, bytes: 4 });
    assert_eq!(at("init.tags.length"), Located::Length { count: 2, bytes: 0 });
}

#[test]
fn names_are_read_from_an_object() {
    let names = Names::from_value(json!({
        "steps": {
            "a": {"outputs": {"x": 1}, "stdout": "text"},
            "b": {"skipped": true},
            "c": {"skipped": false},
            "d": {"outputs": [1]},
        },
        "args": {"x": "arg"},
        "variables": {"v": 1, "item.x": 2},
        "outputs": {"o": 1},
        "item": "i",
        "index": 3,
        "value": "val",
        "other": "variable",
    }));
    let expected = Names::new()
        .with_step("a", json!({"x": 1}), Some("text"))
        .with_skipped_step("b")
        .with_step("c", json!({}), None)
        .with_step("d", json!([1]), None)
        .with_args(json!({"x": "arg"}))
        .with_variable("v", json!(1))
        .with_variable("item.x", json!(2))
        .with_variable("other", json!("variable"))
        .with_local("outputs", json!({"o": 1}))
        .with_local("item", json!("i"))
        .with_local("index", json!(3))
        .with_local("value", json!("val"));
    assert_eq!(names, Ok(expected));
}

#[test]
fn names_of_the_wrong_shape_are_refused() {
    for (value, expected) in [
        (json!([]), "the scope must be an object, not array"),
        (json!({"steps": []}), "`steps` must be an object, not array"),
        (json!({"steps": {"a": 1}}), "step `a` must be an object, not integer"),
        (json!({"args": "x"}), "`args` must be an object, not string"),
        (json!({"variables": null}), "`variables` must be an object, not null"),
        (json!({"steps": {"a": {"outputs": "x"}}}), "`outputs` of step `a` cannot be string"),
        (json!({"steps": {"a": {"stdout": 1}}}), "`stdout` of step `a` cannot be integer"),
        (json!({"steps": {"a": {"skipped": "no"}}}), "`skipped` of step `a` cannot be string"),
        (
            json!({"steps": {"a": {"x": 1}}}),
            "step `a` takes `outputs`, `stdout` and `skipped`, not `x`",
        ),
    ] {
        assert_eq!(Names::from_value(value).unwrap_err().to_string(), expected);
    }
}
