//! The meaning of expressions; [`refusals`] tests invalid ones, [`fuel`] the bounds.

mod fuel;
mod refusals;

use super::*;
use crate::scope::names::Names;
use proptest::prelude::*;
use serde_json::json;

fn names() -> Names {
    Names::new()
        .with_step(
            "init",
            json!({
                "vendor_type": "saas", "score": 7, "text": "10", "list": [1, "two", {"a": [1]}],
                "map": {"k": 1}, "empty": "", "zero": 0, "no": false, "nothing": null,
                "prose": "  COMPLETE -- all good",
            }),
            Some("raw text\n"),
        )
        .with_skipped_step("gone")
        .with_variable("risk_score", json!(7.0))
        .with_variable("ok", json!(true))
        .with_variable("in", json!("keyword"))
        .with_local("outputs", json!({"x": "Ünicode"}))
        .with_args(json!({"n": 3}))
}

fn eval(source: &str) -> Value {
    let expr = Expr::parse(source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
    expr.eval(&names(), Membership::Tolerant).unwrap()
}

fn all_true(sources: &[&str]) {
    for source in sources {
        assert_eq!(eval(source), json!(true), "{source}");
    }
}

fn all_false(sources: &[&str]) {
    for source in sources {
        assert_eq!(eval(source), json!(false), "{source}");
    }
}

#[test]
fn literals_are_values() {
    for (source, value) in [
        ("'a'", json!("a")),
        (r#""a\n\u00e9""#, json!("a\né")),
        ("5", json!(5)),
        ("-5", json!(-5)),
        ("1.5", json!(1.5)),
        ("-0.25", json!(-0.25)),
        ("1e3", json!(1000.0)),
        ("1E+3", json!(1000.0)),
        ("25e-1", json!(2.5)),
        ("1.5e1", json!(15.0)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("true", json!(true)),
        ("false", json!(false)),
        ("null", json!(null)),
        ("[]", json!([])),
        ("[1, 'a', [true, null],]", json!([1, "a", [true, null]])),
        ("[1, args.n, [init.score], 1 == 1]", json!([1, 3, [7], true])),
        ("[init.list, lower('A'), gone.x]", json!([[1, "two", {"a": [1]}], "a", null])),
        (" ( 5 ) ", json!(5)),
    ] {
        assert_eq!(eval(source), value, "{source}");
    }
}

#[test]
fn paths_read_the_scope_and_missing_is_null() {
    for (source, value) in [
        ("init.outputs.vendor_type", json!("saas")),
        ("init.score", json!(7)),
        ("$init.stdout", json!("raw text\n")),
        ("$init.stdout.length", json!(9)),
        ("init.list.length", json!(3)),
        ("init.list[2].a.0", json!(1)),
        ("init.map", json!({"k": 1})),
        ("outputs.x", json!("Ünicode")),
        ("args.n", json!(3)),
        ("n", json!(3)),
        ("unknown", json!(null)),
        ("init.unknown.deeper", json!(null)),
        ("gone.anything", json!(null)),
        ("${ok}", json!(true)),
        ("${ in }", json!("keyword")),
        ("$in", json!("keyword")),
    ] {
        assert_eq!(eval(source), value, "{source}");
    }
}

#[test]
fn a_braced_name_is_the_name() {
    all_true(&[
        "${ok} == true",
        "${init.score} > 6 and ${ok}",
        "contains(${init.vendor_type}, 'aa')",
    ]);
}

#[test]
fn missing_equals_null_only_and_has_no_order() {
    all_true(&[
        "unknown == null",
        "unknown != 'x'",
        "gone.x == null",
        "init.nothing == null",
        "null == null",
        "not (unknown > 1)",
    ]);
    all_false(&[
        "unknown == 0",
        "unknown == ''",
        "unknown == false",
        "unknown != null",
        "unknown < 1",
        "unknown > 1",
        "unknown <= 1",
        "unknown >= 1",
        "null <= null",
        "null >= null",
        "1 > unknown",
    ]);
}

#[test]
fn comparisons_of_different_types_are_false_but_for_numeric_text() {
    all_true(&[
        "init.text == 10",
        "10 == init.text",
        "init.text >= 10",
        "init.text > 9",
        "9 < init.text",
        "11 > init.text",
        "' 7.0 ' == init.score",
        "1 == 1.0",
        "'a' != 1",
        "'saas' == init.vendor_type",
        "true == true",
        "false != true",
        "[1, 2] == [1.0, 2]",
        "[init.score] == [7]",
        "[7] == [init.score]",
        "[init.score] == [init.score]",
        "init.map == init.map",
        "init.list != init.map",
    ]);
    all_false(&[
        "'a' == 1",
        "'a' < 1",
        "'a' >= 1",
        "1 <= 'a'",
        "true == 1",
        "true == 'true'",
        "true > false",
        "false <= false",
        "[1] == 1",
        "[] < [1]",
        "init.map >= init.map",
        "['1'] == [1]",
        "[init.text] == [10]",
        "[init.score, 1] == [7]",
        "[init.map] == init.map",
        "init.map == [init.map]",
        "init.list == []",
        "init.map == init",
        "init.text != 10",
        "'saas' != init.vendor_type",
        "'' == null",
    ]);
}

#[test]
fn numbers_and_texts_are_ordered() {
    for (operator, below, equal, above) in [
        ("<", true, false, false),
        ("<=", true, true, false),
        (">", false, false, true),
        (">=", false, true, true),
        ("==", false, true, false),
        ("!=", true, false, true),
    ] {
        for (low, high) in
            [("1", "2"), ("'a'", "'b'"), ("'10'", "'9'"), ("'9'", "10"), ("-1", "'0'")]
        {
            assert_eq!(eval(&format!("{low} {operator} {high}")), below, "{low} {operator} {high}");
            assert_eq!(eval(&format!("{low}{operator}{low}")), equal, "{low}{operator}{low}");
            assert_eq!(eval(&format!("{high} {operator} {low}")), above, "{high} {operator} {low}");
        }
    }
}

#[test]
fn logic_uses_truth_and_gives_booleans() {
    all_true(&[
        "1 and 'x'",
        "0 or 'x'",
        "not 0",
        "not ''",
        "not null",
        "!init.no",
        "not not 1",
        "[] and true",
        "[init.score] and true",
        "init.map and init.list",
        "true && true || false",
        "false || 1",
        "lower('X') and 1",
    ]);
    all_false(&[
        "0 or ''",
        "1 and null",
        "not 'false'",
        "not []",
        "not [n]",
        "!init.list",
        "false or false or false",
        "true and true and false",
        "init.empty or init.zero or init.no or init.nothing or unknown",
        "lower('') or 0",
    ]);
}

#[test]
fn or_is_looser_than_and_than_not_than_comparisons() {
    all_true(&[
        "true or false and false",
        "true || false && false",
        "false and false or true",
        "not 1 == 2",
        "!1 == 2",
        "not false and true",
        "not false or true",
        "not 1 in [2]",
        "1 == 1 and 2 == 2 or false",
        "(1 < 2) == true",
        "(not false) == true",
    ]);
    all_false(&["(true or false) and false", "not (false or true)", "not true or false"]);
}

#[test]
fn membership_ignores_trailing_prose_at_a_token_boundary() {
    all_true(&[
        "\"COMPLETE -- all good\" in ['COMPLETE']",
        "init.prose in ['x', 'COMPLETE']",
        "init.prose in [n, 'COMPLETE']",
        "init.vendor_type in ['saas', 'paas']",
        "init.vendor_type in [init.vendor_type]",
        "2 in [1, 2]",
        "'2' in [1, 2]",
        "init.text in [10]",
        "10 in [init.text]",
        "null in [null]",
        "[1] in [[1]]",
        "'x' not in ['y']",
        "'two' in init.list",
        "'' in ['']",
        "1 in[1]",
    ]);
    all_false(&[
        "'COMPLETED' in ['COMPLETE']",
        "'COMPLETED' in [lower(n), lower('COMPLETE'), 'COMPLETE']",
        "'COMPLETE-ish' in ['COMPLETE']",
        "'NOT COMPLETE' in ['COMPLETE']",
        "' x' in ['']",
        "' x' in ['', unknown]",
        "1 in []",
        "init.vendor_type not in ['saas']",
        "'k' in init.map",
        "'a' in unknown",
        "'aa' in init.vendor_type",
        "['COMPLETE'] in ['COMPLETE']",
        "10 in ['10 apples']",
    ]);
}

#[test]
fn exact_membership_never_ignores_prose() {
    let exact = |source: &str| Expr::parse(source).unwrap().holds(&names(), Membership::Exact);
    assert_eq!(exact("'COMPLETE -- all good' in ['COMPLETE']"), Ok(false));
    assert_eq!(exact("'COMPLETE.' in [n, 'COMPLETE']"), Ok(false));
    assert_eq!(exact("'COMPLETE' in ['COMPLETE']"), Ok(true));
    assert_eq!(exact("'COMPLETE' in [n, 'COMPLETE']"), Ok(true));
    assert_eq!(exact("'2' in [2]"), Ok(true));
}

#[test]
fn functions_answer_for_every_kind_of_value() {
    all_true(&[
        "contains('abc', 'b')",
        "contains('abc', '')",
        "contains(init.list, 'two')",
        "contains(init.list, '1')",
        "contains([1, n], 3)",
        "contains(init.map, 'k')",
        "starts_with('abc', 'ab')",
        "starts_with('abc', '')",
        "matches('abc', 'b')",
        "matches($init.stdout, \"^raw\\\\s\")",
        "exists(init.score)",
        "exists(init.zero)",
        "exists(${init.empty})",
        "exists($init.stdout)",
        "exists(init.list.length)",
        "lower('ABC É') == 'abc é'",
        "lower(outputs.x) == 'ünicode'",
        "lower(7) == 7",
        "lower(init.list) == init.list",
        "contains(lower('ABC',), 'b',)",
        "matches('x', 'x') and not matches('y', 'x')",
    ]);
    all_false(&[
        "contains('abc', 'x')",
        "contains('15', 5)",
        "contains(15, '5')",
        "contains(init.list, 'tw')",
        "contains(init.list, 'two -- and prose')",
        "contains(init.map, 1)",
        "contains(init.map, 'x')",
        "contains(null, 'x')",
        "contains(unknown, null)",
        "starts_with('abc', 'b')",
        "starts_with('a', 'ab')",
        "starts_with(init.list, 'two')",
        "starts_with('12', 1)",
        "matches('abc', '^b')",
        "matches(5, '5')",
        "exists(init.nothing)",
        "exists(init.unknown)",
        "exists(gone.x)",
        "exists(unknown)",
    ]);
}

#[test]
fn references_are_every_path_with_its_place() {
    let source = "a.b == 1 and exists(${ c }) or x in [d[0], $e.stdout] or lower(f) == 'g'";
    let expr = Expr::parse(source).unwrap();
    let found: Vec<(String, &str)> = expr
        .references()
        .map(|reference| (reference.path.to_string(), &source[reference.span.range()]))
        .collect();
    let paths = ["a.b", "c", "x", "d[0]", "$e.stdout", "f"];
    assert_eq!(found, paths.map(|path| (path.to_owned(), path)));
}

#[test]
fn an_expression_is_its_source() {
    let expr = Expr::parse(" a ==  1").unwrap();
    assert_eq!(expr.source(), " a ==  1");
    assert_eq!(expr.to_string(), " a ==  1");
    assert_eq!(serde_json::to_value(&expr).unwrap(), json!(" a ==  1"));
    assert_eq!(expr, Expr::parse(" a ==  1").unwrap());
    assert_ne!(expr, Expr::parse("a == 1").unwrap());
}

/// Expressions over the names of [`names`] and some that do not exist.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("init.score"),
        Just("init.text"),
        Just("init.list"),
        Just("init.map"),
        Just("init"),
        Just("gone.x"),
        Just("unknown"),
        Just("$init.stdout"),
        Just("init.list.length"),
        Just("'saas'"),
        Just("'10'"),
        Just("''"),
        Just("7"),
        Just("-1.5"),
        Just("null"),
        Just("true"),
        Just("[1, 'two']"),
        Just("[n, 'x']"),
    ]
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 24, 3, |inner| {
        let operator = prop_oneof![
            Just("=="),
            Just("!="),
            Just("<"),
            Just("<="),
            Just(">"),
            Just(">="),
            Just("and"),
            Just("or"),
            Just("&&"),
            Just("||"),
        ];
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} in [{b}, n])")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("contains({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("starts_with({a}, {b})")),
            inner.clone().prop_map(|a| format!("matches({a}, '^[a-z]+')")),
            inner.clone().prop_map(|a| format!("lower({a})")),
            inner.prop_map(|a| format!("(not {a})")),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        "-?[0-9]{1,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_a_fault_inside_it(text in "\\PC*") {
        if let Err(fault) = Expr::parse(&text) {
            prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault);
        }
    }

    #[test]
    fn text_like_an_expression_never_panics(text in r#"([a-z.$()\[\]{},'"\\=!<>&|0-9 -]|and|or|not|in|é){0,30}"#) {
        match Expr::parse(&text) {
            Ok(expr) => { let _ = expr.eval(&names(), Membership::Tolerant); }
            Err(fault) => prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault),
        }
    }

    #[test]
    fn what_is_printed_parses_to_the_same(source in expressions()) {
        let expr = Expr::parse(&source).unwrap();
        let again = Expr::parse(&expr.to_string()).unwrap();
        prop_assert_eq!(&again, &expr);
        prop_assert_eq!(
            again.eval(&names(), Membership::Tolerant),
            expr.eval(&names(), Membership::Tolerant)
        );
    }

    #[test]
    fn operators_agree_with_one_another(a in values(), b in values()) {
        let scope = Names::new().with_variable("a", a.clone()).with_variable("b", b.clone());
        let holds = |source: &str| {
            Expr::parse(source).unwrap().holds(&scope, Membership::Exact).unwrap()
        };
        prop_assert_eq!(holds("a == b"), holds("b == a"));
        prop_assert_eq!(holds("a != b"), !holds("a == b"));
        prop_assert_eq!(holds("a < b"), holds("b > a"));
        prop_assert_eq!(holds("a <= b"), holds("b >= a"));
        prop_assert_eq!(holds("a < b"), holds("a <= b") && !holds("a >= b"));
        prop_assert_eq!(holds("a in [b]"), holds("a == b"));
        prop_assert_eq!(holds("contains([b], a)"), holds("a == b"));
        prop_assert_eq!(holds("a not in [b]"), !holds("a in [b]"));
        prop_assert_eq!(holds("a and b"), crate::value::truthy(&a) && crate::value::truthy(&b));
        prop_assert_eq!(holds("a or b"), crate::value::truthy(&a) || crate::value::truthy(&b));
        if crate::value::same(&a, &b) {
            prop_assert!(holds("a == b"));
        }
    }
}
