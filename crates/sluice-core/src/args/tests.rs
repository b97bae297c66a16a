use super::*;
use crate::limits::VIOLATIONS_MAX;
use crate::outputs::tests::map;
use serde_json::json;

fn decl(written: &Value) -> ArgDecl {
    ArgDecl {
        kind: written["type"].as_str().and_then(crate::choice::find::<FieldType>),
        required: written["required"] == true,
        default: written.get("default").cloned(),
        values: written["enum"].as_array().cloned().unwrap_or_default(),
        description: written["description"].as_str().map(str::to_owned),
        ..ArgDecl::default()
    }
}

fn decls(written: Value) -> IndexMap<String, ArgDecl> {
    let pairs = map(written).into_iter();
    pairs.map(|(name, written)| (name, decl(&written))).collect()
}

/// The value of one argument `x`, or the reason why it is rejected.
fn one(written: Value, value: Value) -> Result<Value, Reason> {
    let given = Map::from_iter([("x".to_owned(), value)]);
    match check(&decls(Map::from_iter([("x".to_owned(), written)]).into()), &given) {
        Ok(mut args) => Ok(args.remove("x").unwrap()),
        Err(violations) => {
            assert_eq!(violations.len(), 1);
            assert_eq!(violations[0].field, "x");
            Err(violations[0].reason)
        }
    }
}

#[test]
fn every_declared_argument_is_there_in_order() {
    let declared = decls(json!({
        "plain": {},
        "filled": {"type": "integer", "default": 3},
        "given": {"type": "integer", "default": 3},
        "nulled": {"default": "x"},
        "must": {"required": true},
    }));
    let args = check(&declared, &map(json!({"must": 1, "given": 4, "nulled": null})));
    assert_eq!(
        serde_json::to_string(&args.unwrap()).unwrap(),
        r#"{"plain":null,"filled":3,"given":4,"nulled":"x","must":1}"#
    );
}

#[test]
fn a_required_argument_must_be_given_unless_it_has_a_default() {
    let declared = decls(json!({"a": {"required": true}, "b": {"required": true}}));
    let found = check(&declared, &map(json!({"a": null}))).unwrap_err();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["a is required", "b is required"]);
    let filled = json!({"required": true, "default": 5});
    assert_eq!(one(filled, json!(null)), Ok(json!(5)));
    let nothing = json!({"required": true, "default": null});
    assert_eq!(one(nothing, json!(null)), Err(Reason::MissingRequired));
}

#[test]
fn unknown_arguments_are_refused_with_a_suggestion() {
    let declared = decls(json!({"topic": {}, "depth": {"required": true}}));
    let found = check(&declared, &map(json!({"Topics": 1, "zzz": 2}))).unwrap_err();
    let shown: Vec<_> = found.iter().map(|one| format!("{}: {one}", one.reason)).collect();
    assert_eq!(
        shown,
        [
            "missing_required: depth is required",
            "unknown_field: Topics is not an argument of this workflow; did you mean `topic`?",
            "unknown_field: zzz is not an argument of this workflow",
        ]
    );
}

#[test]
fn text_is_read_as_the_declared_type() {
    for (kind, text, expected) in [
        ("integer", "5", json!(5)),
        ("integer", "2.5", json!(3)),
        ("number", "2.5", json!(2.5)),
        ("boolean", "Yes", json!(true)),
        ("object", "{\"a\":1}", json!({"a": 1})),
        ("array", "[1,2]", json!([1, 2])),
        ("array", "a.txt", json!(["a.txt"])),
        ("array", "{\"a\":1}", json!(["{\"a\":1}"])),
        ("string", "5", json!("5")),
    ] {
        assert_eq!(one(json!({ "type": kind }), json!(text)), Ok(expected), "{kind} {text}");
    }
    for (kind, text) in
        [("integer", "five"), ("number", ""), ("boolean", "maybe"), ("object", "[1]")]
    {
        let refused = one(json!({ "type": kind }), json!(text));
        assert_eq!(refused, Err(Reason::TypeMismatch), "{kind} {text}");
    }
    assert_eq!(one(json!({}), json!("5")), Ok(json!("5")));
}

#[test]
fn a_list_in_text_nests_only_so_deep() {
    let nested = |levels: usize| {
        let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        one(json!({"type": "array"}), json!(text))
    };
    assert!(nested(DOCUMENT_DEPTH_MAX).is_ok());
    assert_eq!(nested(DOCUMENT_DEPTH_MAX + 1), Err(Reason::TypeMismatch));
}

#[test]
fn numbers_and_booleans_become_text_and_nothing_else_is_bent() {
    assert_eq!(one(json!({"type": "string"}), json!(5)), Ok(json!("5")));
    assert_eq!(one(json!({"type": "string"}), json!(true)), Ok(json!("true")));
    assert_eq!(one(json!({"type": "integer"}), json!(5.0)), Ok(json!(5)));
    for (kind, value) in [
        ("string", json!([1])),
        ("string", json!({})),
        ("boolean", json!({"result": true})),
        ("boolean", json!(1)),
        ("array", json!(5)),
        ("array", json!({})),
        ("integer", json!(2.5)),
        ("integer", json!(true)),
        ("object", json!([])),
    ] {
        let refused = one(json!({ "type": kind }), value);
        assert_eq!(refused, Err(Reason::TypeMismatch), "{kind}");
    }
}

#[test]
fn an_allowed_value_must_match_exactly() {
    let environment = json!({"type": "string", "enum": ["prod", "test"]});
    assert_eq!(one(environment.clone(), json!("prod")), Ok(json!("prod")));
    let refused = one(environment, json!("prod - I think"));
    assert_eq!(refused, Err(Reason::EnumMismatch));
    let count = json!({"type": "integer", "enum": [1, 2]});
    assert_eq!(one(count.clone(), json!("2")), Ok(json!(2)));
    assert_eq!(one(count, json!("3")), Err(Reason::EnumMismatch));
}

#[test]
fn violations_of_arguments_are_bounded() {
    let names = (0..VIOLATIONS_MAX + 1).map(|n| (format!("n{n}"), json!(1)));
    let found = check(&IndexMap::new(), &names.collect()).unwrap_err();
    assert_eq!(found.len(), VIOLATIONS_MAX);
}

#[test]
fn a_declaration_that_cannot_be_meant_is_told() {
    let found = |written: Value| -> Vec<(String, String)> {
        let all = decl(&written).contradictions().into_iter();
        all.map(|one| (one.path.join("/"), one.message)).collect()
    };
    let of = |path: &str, message: &str| vec![(path.to_owned(), message.to_owned())];
    assert_eq!(found(json!({"type": "integer", "default": 5, "enum": [5, 6]})), []);
    assert_eq!(found(json!({"type": "integer", "default": null})), []);
    assert_eq!(
        found(json!({"type": "integer", "default": "5"})),
        of("default", "the default is a string, not an integer")
    );
    assert_eq!(
        found(json!({"enum": ["a"], "default": "a, b"})),
        of("default", r#"the default is "a, b", not one of "a""#)
    );
    assert_eq!(
        found(json!({"type": "string", "enum": [1]})),
        of("enum/0", "allowed value is an integer, not a string")
    );
}

#[test]
fn a_declaration_is_written_as_authors_write_it() {
    let written = json!({
        "type": "integer", "required": true, "default": 1, "enum": [1, 2], "description": "how many",
    });
    assert_eq!(serde_json::to_value(decl(&written)).unwrap(), written);
    assert_eq!(serde_json::to_value(ArgDecl::default()).unwrap(), json!({}));
}
