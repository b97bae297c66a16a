use super::*;
use proptest::prelude::*;

fn key(name: &str) -> Segment {
    Segment::Key(name.to_owned())
}

/// The fault as `start..end message`.
fn fault(text: &str) -> String {
    match Path::parse(text) {
        Ok(path) => format!("accepted {path:?}"),
        Err(fault) => format!("{:?} {}", fault.span.range(), fault.message),
    }
}

#[test]
fn a_path_is_a_name_and_what_to_take_from_it() {
    for (text, head, rest) in [
        ("item", "item", vec![]),
        ("id.outputs.a.b", "id", vec![key("outputs"), key("a"), key("b")]),
        ("$id.stdout", "id", vec![key("stdout")]),
        ("list.0", "list", vec![Segment::Index(0)]),
        ("list[10]", "list", vec![Segment::Index(10)]),
        ("list[007]", "list", vec![Segment::Index(7)]),
        ("list.007", "list", vec![key("007")]),
        ("list.99999999999999999999", "list", vec![key("99999999999999999999")]),
        (r#"a["b c"]"#, "a", vec![key("b c")]),
        (r"a['b\'c'].d", "a", vec![key("b'c"), key("d")]),
        (r#"a["0"]"#, "a", vec![key("0")]),
        ("a[0][1].length", "a", vec![Segment::Index(0), Segment::Index(1), key("length")]),
        ("node-1.x-y", "node-1", vec![key("x-y")]),
        ("größe._x", "größe", vec![key("_x")]),
        ("$3f2a-9.output", "3f2a-9", vec![key("output")]),
        ("3f2a.output", "3f2a", vec![key("output")]),
        (r#"$["urn:a.b"].output"#, "urn:a.b", vec![key("output")]),
        ("a.in", "a", vec![key("in")]),
    ] {
        let path = Path::parse(text).unwrap();
        assert_eq!(path.head(), head, "{text}");
        assert_eq!(path.rest(), rest, "{text}");
        assert_eq!(path.has_sigil(), text.starts_with('$'), "{text}");
        assert_eq!(path.to_string(), text);
        assert_eq!(path.as_str(), text);
        assert_eq!(serde_json::to_value(&path).unwrap(), text);
    }
}

#[test]
fn only_a_path_of_dots_is_a_dotted_key() {
    for (text, dotted) in [
        ("a", Some("a")),
        ("a.b.0", Some("a.b.0")),
        ("$a.b", Some("a.b")),
        ("a[0]", None),
        (r#"a.b["c"]"#, None),
        (r#"$["a"]"#, None),
    ] {
        assert_eq!(Path::parse(text).unwrap().dotted(), dotted, "{text}");
    }
}

#[test]
fn what_is_not_a_path_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "0..0 expected a name, found the end"),
        ("$", "1..1 expected a name, found the end"),
        (" a", "0..1 expected a name, found a blank"),
        ("\na", "0..1 expected a name, found a line break"),
        ("-a", "0..1 expected a name, found `-`"),
        ("a b", "1..3 expected the end of the path, found a blank"),
        ("a-", "1..2 expected the end of the path, found `-`"),
        ("a--b", "1..4 expected the end of the path, found `-`"),
        ("a.", "1..2 expected a name or an index after `.`, found the end"),
        ("a..b", "1..3 expected a name or an index after `.`, found `.`"),
        ("a.é.ü ", "7..8 expected the end of the path, found a blank"),
        ("a.-b", "1..3 expected a name or an index after `.`, found `-`"),
        ("a[", "1..2 expected an index or a quoted key after `[`, found the end"),
        ("a[b]", "1..3 expected an index or a quoted key after `[`, found `b`"),
        ("a[-1]", "1..3 expected an index or a quoted key after `[`, found `-`"),
        ("a[0", "1..3 expected `]`, found the end"),
        ("a['x'", "1..5 expected `]`, found the end"),
        ("a[0 ]", "1..3 expected `]`, found a blank"),
        ("a['x]", "2..5 unclosed string"),
        ("a['\\", "3..4 unclosed string"),
        ("a[99999999999999999999]", "2..22 index is too large"),
        ("$[0]", "0..2 expected a quoted id after `$[`"),
    ] {
        assert_eq!(fault(text), expected, "{text:?}");
    }
    let hint = Path::parse("a[b]").unwrap_err().hint;
    assert_eq!(hint.as_deref(), Some("write `[0]` or `[\"key\"]`"));
}

#[test]
fn names_and_paths_are_bounded() {
    let name = "é".repeat(NAME_CHARS_MAX);
    assert!(Path::parse(&name).is_ok());
    assert_eq!(fault(&format!("{name}x")), "0..257 name is over 128 characters");

    let long = "a.a".repeat(EXPRESSION_BYTES_MAX / 3);
    assert!(Path::parse(&long).is_ok());
    let exact = format!("a{}", ".bcd".repeat(1023)) + ".bc";
    assert_eq!(exact.len(), EXPRESSION_BYTES_MAX);
    assert!(Path::parse(&exact).is_ok());
    assert_eq!(fault(&format!("{exact}d")), "0..4097 path is over 4096 bytes");

    let key = format!("a['{}", "x".repeat(EXPRESSION_BYTES_MAX));
    assert_eq!(fault(&key), "2..4099 unclosed string");
    let key = format!("a['{}", "x".repeat(EXPRESSION_BYTES_MAX + 2));
    assert_eq!(fault(&key), "2..4100 string is over 4096 bytes");
}

#[test]
fn quoted_text_knows_the_escapes_of_json() {
    for (source, meaning) in [
        (r#""a""#, "a"),
        ("''", ""),
        (r#"'"'"#, "\""),
        (r#""'""#, "'"),
        (r"'\\ \' \n\t\r'", "\\ ' \n\t\r"),
        (r#""\"""#, "\""),
        (r"'\u0041\u00e9\u20AC'", "Aé€"),
        (r"'\ud83d\uDE00!'", "😀!"),
        ("'ü😀'", "ü😀"),
    ] {
        assert_eq!(quoted::scan(source, 0).unwrap(), (meaning.to_owned(), source.len()));
    }
    assert_eq!(quoted::scan("x'a'b", 1).unwrap(), ("a".to_owned(), 4));
}

#[test]
fn bad_escapes_are_refused() {
    for (source, expected) in [
        ("'abc", "0..4 unclosed string, end it with '"),
        ("\"abc'", "0..5 unclosed string, end it with \""),
        (
            r"'a\x41'",
            r#"2..4 unknown escape `\x`, the escapes are \\ \' \" \n \t \r \uXXXX; write `\\` for a backslash"#,
        ),
        (r"'\u12'", r"1..3 `\u` needs four hexadecimal digits"),
        (r"'\u12g4'", r"1..3 `\u` needs four hexadecimal digits"),
        (r"'\u+123'", r"1..3 `\u` needs four hexadecimal digits"),
        (r"'\u12é'", r"1..3 `\u` needs four hexadecimal digits"),
        (r"'\ud83d'", r"1..7 `\ud83d` is half of a surrogate pair"),
        (r"'\ud83dx'", r"1..7 `\ud83d` is half of a surrogate pair"),
        (r"'\ud83d\u0041'", r"1..7 `\ud83d` is half of a surrogate pair"),
        (r"'\ude00\ud83d'", r"1..7 `\ude00` is half of a surrogate pair"),
        (r"'\ud83d\u00'", r"7..9 `\u` needs four hexadecimal digits"),
    ] {
        let fault = quoted::scan(source, 0).unwrap_err();
        let hint = fault.hint.map_or(String::new(), |hint| format!(", {hint}"));
        let shown = format!("{:?} {}{hint}", fault.span.range(), fault.message);
        assert_eq!(shown, expected, "{source}");
    }
}

#[test]
fn a_braced_path_may_have_blanks_around_it() {
    let (path, range, end) = scan_braced("x ${ a.b } y", 2).unwrap();
    assert_eq!((path.as_str(), range, end), ("a.b", 5..8, 10));
    let fault = scan_braced("${a b}", 0).unwrap_err();
    assert_eq!(fault.message, "expected `}` after the path, found `b`");
    assert_eq!(fault.span.range(), 4..5);
}

proptest! {
    #[test]
    fn any_text_is_a_path_or_a_fault_inside_it(text in "\\PC*") {
        match Path::parse(&text) {
            Ok(path) => prop_assert_eq!(path.to_string(), text),
            Err(fault) => prop_assert!(text.get(fault.span.range()).is_some()),
        }
    }

    #[test]
    fn text_that_looks_like_a_path_never_panics(text in r#"\$?[a-c0-9é.\[\]'"\\u_-]{0,20}"#) {
        match Path::parse(&text) {
            Ok(path) => prop_assert_eq!(Path::parse(path.as_str()).unwrap(), path),
            Err(fault) => prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault),
        }
    }
}
