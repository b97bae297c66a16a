//! The rules of the tree: a text in, its value and its problems out.

mod aliases;
mod bounds;
mod keys;
mod places;

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The value of a text, or `none`, and each problem on a line of its own.
fn transcript(text: &str) -> String {
    let mut problems = Problems::default();
    let value = parse(text, &mut problems).map(|node| node.to_value());
    let mut out = value.map_or("none".to_owned(), |value| value.to_string());
    out.push('\n');
    for told in problems.into_diagnostics(text) {
        let path = if told.path.is_empty() { String::new() } else { format!(" {}", told.path) };
        let hint = told.hint.map_or(String::new(), |hint| format!(" ({hint})"));
        let (line, column, code, message) = (told.line, told.column, told.code, told.message);
        writeln!(out, "{line}:{column} {code}{path}: {message}{hint}").expect("text grows");
    }
    out
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&transcript(text));
}

/// The value of a text without problems.
fn value(text: &str) -> Value {
    let mut problems = Problems::default();
    let node = parse(text, &mut problems);
    let told = problems.into_diagnostics(text);
    assert!(told.is_empty(), "{text:?}: {told:#?}");
    node.expect("a tree").to_value()
}

/// The codes of a text's problems.
fn codes(text: &str) -> Vec<&'static str> {
    let mut problems = Problems::default();
    parse(text, &mut problems);
    problems.into_diagnostics(text).iter().map(|told| told.code.as_str()).collect()
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, expected) in [
        ("~", json!(null)),
        ("null", json!(null)),
        ("Null", json!(null)),
        ("NULL", json!(null)),
        ("nUll", json!("nUll")),
        ("true", json!(true)),
        ("True", json!(true)),
        ("TRUE", json!(true)),
        ("false", json!(false)),
        ("False", json!(false)),
        ("FALSE", json!(false)),
        ("tRUE", json!("tRUE")),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("5", json!(5)),
        ("+5", json!(5)),
        ("-5", json!(-5)),
        ("007", json!(7)),
        ("-007", json!(-7)),
        ("0x1F", json!(31)),
        ("0xff", json!(255)),
        ("0o17", json!(15)),
        ("0.5", json!(0.5)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        ("+.5", json!(0.5)),
        ("5.", json!(5.0)),
        ("1e5", json!(1e5)),
        ("1E+5", json!(1e5)),
        ("1.5e-3", json!(0.0015)),
        (".5e1", json!(5.0)),
        ("5.e1", json!(50.0)),
        ("1e-400", json!(0.0)),
    ] {
        assert_eq!(value(text), expected, "{text}");
        assert_eq!(value(&format!("- {text}")), json!([expected]), "- {text}");
    }
}

#[test]
fn what_only_looks_like_another_type_is_text() {
    for text in [
        "yes",
        "Yes",
        "no",
        "on",
        "off",
        "OFF",
        "y",
        "n",
        "1_000",
        "1,000",
        "0b11",
        "0x",
        "0o",
        "0xg",
        "0o8",
        "+0x1",
        "-0o7",
        "0X1F",
        "1e",
        "1e+",
        "e5",
        ".",
        "+",
        "-.",
        "+.e1",
        ".e5",
        "1.2.3",
        "1e5.5",
        "1e5e5",
        "--5",
        "+-5",
        "5-",
        "2026-11-15",
        "12:30:45",
        "10:30",
        "1 000",
        "infinity",
        "inf",
        "NaN",
        "nan",
        ".infinity",
        "٣",
        "½",
        "5%",
        "=",
    ] {
        assert_eq!(value(text), json!(text), "{text}");
    }
}

#[test]
fn quoted_and_tagged_scalars_are_text() {
    for (text, expected) in [
        ("'5'", "5"),
        ("\"5\"", "5"),
        ("\"true\"", "true"),
        ("''", ""),
        ("'~'", "~"),
        ("!!str 5", "5"),
        ("!!str true", "true"),
        ("!!str", ""),
        ("!!str 99999999999999999999999999", "99999999999999999999999999"),
        ("|\n  5\n", "5\n"),
        (">-\n  5\n", "5"),
    ] {
        assert_eq!(value(text), json!(expected), "{text}");
    }
}

#[test]
fn every_number_that_64_bits_hold_is_exact() {
    for text in [
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "9007199254740993",
        "-9007199254740993",
    ] {
        assert_eq!(value(text).to_string(), text);
    }
    assert_eq!(value("+18446744073709551615"), json!(u64::MAX));
    assert_eq!(value("0xffffffffffffffff"), json!(u64::MAX));
    assert_eq!(value("0o1777777777777777777777"), json!(u64::MAX));
    assert_eq!(value("1.7976931348623157e308"), json!(f64::MAX));
}

#[test]
fn numbers_that_64_bits_cannot_hold_are_told_once() {
    for text in [
        ".inf",
        "-.inf",
        "+.Inf",
        ".INF",
        ".nan",
        ".NaN",
        ".NAN",
        "1e400",
        "-1e400",
        "18446744073709551616",
        "-9223372036854775809",
        "0x10000000000000000",
        "0o2000000000000000000000",
        "1234567890123456789012345678901234567890",
    ] {
        assert_eq!(codes(text), ["number_out_of_range"], "{text}");
    }
    check(
        "a: [1, {b: 1234567890123456789012345678901234567890123}]",
        expect![[r#"
        {"a":[1,{"b":"1234567890123456789012345678901234567890123"}]}
        1:12 number_out_of_range a[1].b: `1234567890123456789012345678901234567890…` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
}

#[test]
fn only_the_tag_of_text_has_a_meaning() {
    check(
        "a: !!int 5\nb: !mine x\nc: !!map {d: !!bool yes}\ne: !<tag:x> []\nf: ! 5\n",
        expect![[r#"
            {"a":"5","b":"x","c":{"d":"yes"},"e":[],"f":"5"}
            1:10 unsupported_tag a: the tag `tag:yaml.org,2002:int` is not supported (leave the tag out)
            2:10 unsupported_tag b: the tag `!mine` is not supported (leave the tag out)
            3:10 unsupported_tag c: the tag `tag:yaml.org,2002:map` is not supported (leave the tag out)
            3:21 unsupported_tag c.d: the tag `tag:yaml.org,2002:bool` is not supported (leave the tag out)
            4:13 unsupported_tag e: the tag `tag:x` is not supported (leave the tag out)
            5:6 unsupported_tag f: the tag `!` is not supported (leave the tag out)
        "#]],
    );
    let long = format!("a: !{} 5", "x".repeat(5000));
    assert!(transcript(&long).len() < 300, "a long tag is shortened");
}

#[test]
fn json_is_read_as_it_is_written() {
    for (text, expected) in [
        (r#"{"a":1,"b":[true,null,"x"],"c":{}}"#, json!({"a": 1, "b": [true, null, "x"], "c": {}})),
        ("{\n\t\"a\":\t1,\n\t\"b\": [\n\t\t2\n\t]\n}\n", json!({"a": 1, "b": [2]})),
        (r#""\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\""#, json!("é😀/\u{8}\u{c}\n\r\t\"\\")),
        (r##"["a: b", "- c", "#d", " e ", ""]"##, json!(["a: b", "- c", "#d", " e ", ""])),
        (r#"{"":1}"#, json!({"": 1})),
        (r#"[1.0,1E2,-0.0]"#, json!([1.0, 100.0, -0.0])),
        ("[\"\u{85}\u{2028}\u{feff}\u{fffd}\"]", json!(["\u{85}\u{2028}\u{feff}\u{fffd}"])),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    // YAML bounds keys at 1024 characters, and so does the parser, in JSON too.
    let long = |count: usize| format!(r#"{{"{}":1}}"#, "k".repeat(count));
    assert_eq!(codes(&long(1000)), [""; 0]);
    assert_eq!(codes(&long(1100)), ["syntax_error"]);
}

#[test]
fn every_character_but_controls_and_noncharacters_may_stand_in_quotes() {
    let refused: Vec<u32> = ('\u{20}'..='\u{10fff}')
        .filter(|c| !['"', '\\'].contains(c))
        .filter(|c| codes(&format!("\"{c}\"")) != [""; 0])
        .map(u32::from)
        .collect();
    let controls = (0x7f..=0x9f).filter(|c| *c != 0x85);
    let expected: Vec<u32> = controls.chain([0xfffe, 0xffff]).collect();
    assert_eq!(refused, expected);
}

fn arb_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-:#?{}\\[\\], '\"|>&*!%@`~0-9a-z\\\\\n\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A piece of YAML: alone or in a row, pieces reach odd corners of the parser.
fn arb_token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b: ",
        ": ",
        ":",
        "- ",
        "-",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\n",
        "\n  ",
        "\n    ",
        "&x ",
        "*x",
        "*x ",
        "!!str ",
        "!t ",
        "|\n",
        ">-\n",
        "|2\n",
        "'",
        "\"",
        "\\",
        "#",
        " #c",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "%TAG ! x\n",
        "\t",
        "\r\n",
        "\r",
        "1e400",
        "0x1",
        "~",
        "é",
        "😀",
        "\u{feff}",
        "\0",
        "<<: ",
        "\\ud800",
        "\\udc00",
        "@",
        "`",
        "%",
    ])
}

proptest! {
    #[test]
    fn every_json_value_reads_back(value in arb_json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let mut problems = Problems::default();
            let node = parse(&text, &mut problems);
            let told = problems.into_diagnostics(&text);
            prop_assert!(told.is_empty(), "{text:?}: {told:?}");
            prop_assert_eq!(&node.unwrap().to_value(), &value);
        }
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        transcript(&text);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        transcript(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_soup_of_tokens_is_answered(tokens in prop::collection::vec(arb_token(), 0..40)) {
        transcript(&tokens.concat());
    }
}
