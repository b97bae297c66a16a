//! Depth, length, and texts with no document or several.

use super::*;

fn nest(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_ends_at_64_levels() {
    let block_lists = |depth: usize| format!("{}1\n", "- ".repeat(depth));
    let block_maps = |depth: usize| {
        let lines = (0..depth).map(|at| format!("{}a:\n", " ".repeat(at)));
        format!("{}{}1\n", lines.collect::<String>(), " ".repeat(depth))
    };
    let mixed = |depth: usize| format!("a:\n- {}\n", nest("[", "]", depth - 2));
    for depth in [1, 2, 63, 64] {
        assert_eq!(codes(&nest("[", "]", depth)), [""; 0], "{depth}");
        assert_eq!(codes(&nest("{a: ", "}", depth)), [""; 0], "{depth}");
        assert_eq!(codes(&block_lists(depth)), [""; 0], "{depth}");
        assert_eq!(codes(&block_maps(depth)), [""; 0], "{depth}");
        assert_eq!(codes(&mixed(depth.max(2))), [""; 0], "{depth}");
    }
    for depth in [65, 66, 1000, 5000] {
        assert_eq!(codes(&nest("[", "]", depth)), ["too_deep"], "{depth}");
        assert_eq!(codes(&nest("{a: ", "}", depth)), ["too_deep"], "{depth}");
        assert_eq!(codes(&block_lists(depth)), ["too_deep"], "{depth}");
        assert_eq!(codes(&mixed(depth)), ["too_deep"], "{depth}");
    }
    assert_eq!(codes(&block_maps(65)), ["too_deep"]);
}

#[test]
fn too_deep_is_told_where_it_begins() {
    check(
        &format!("a: {}", nest("[", "]", 64)),
        expect![[r#"
        none
        1:67 too_deep a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nesting is deeper than 64 levels
    "#]],
    );
}

#[test]
fn brackets_without_end_are_refused_at_once() {
    for piece in ["[", "{", "- ", "? ", "[{", "{a: ", "&a [", "- - "] {
        let told = codes(&piece.repeat(DOCUMENT_BYTES_MAX / piece.len()));
        assert_eq!(told.len(), 1, "{piece}: {told:?}");
    }
}

#[test]
fn a_document_of_one_mebibyte_is_read_and_of_a_byte_more_refused() {
    let text = |bytes: usize| format!("'{}'", "x".repeat(bytes - 2));
    assert_eq!(codes(&text(DOCUMENT_BYTES_MAX)), [""; 0]);
    check(
        &text(DOCUMENT_BYTES_MAX + 1),
        expect![[r#"
        none
        1:1 document_too_large: the document has 1048577 bytes; the limit is 1048576
    "#]],
    );
}

#[test]
fn a_text_holds_one_document() {
    for empty in ["", " ", "\n\n", "# nothing\n", "\u{feff}", "\t\n", "%YAML 1.2\n"] {
        assert!(!codes(empty).is_empty(), "{empty:?}");
    }
    check(
        "",
        expect![[r#"
        none
        1:1 empty_document: the file contains no document
    "#]],
    );
    check(
        "# nothing\n",
        expect![[r#"
        none
        1:1 empty_document: the file contains no document
    "#]],
    );
    check(
        "--- \n...\n",
        expect![[r#"
        null
    "#]],
    );
    check(
        "---\na: 1\n...\n",
        expect![[r#"
        {"a":1}
    "#]],
    );
    check(
        "a: 1\n---\nb: 2\n",
        expect![[r#"
        none
        2:1 multiple_documents: a second document begins here (put each workflow in a file of its own)
    "#]],
    );
    check(
        "a: 1\n...\n---\nb: 2\n---\nc: 3\n",
        expect![[r#"
        none
        3:1 multiple_documents: a second document begins here (put each workflow in a file of its own)
    "#]],
    );
    check(
        "{\"a\": 1}\n{\"b\": 2}\n",
        expect![[r#"
        none
        2:1 syntax_error: did not find expected <document start>
    "#]],
    );
}

#[test]
fn texts_that_are_neither_yaml_nor_json_are_refused() {
    for text in [
        "a: [1, 2\n",
        "a: {b: 1\n",
        "a: 'x\n",
        "a: \"x\n",
        "]",
        "a: b: c\n",
        "a:\n\t- 1\n",
        "a: 1\n b: 2\n",
        "a: @x\n",
        "a: `x`\n",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud83dx\"",
        "\"\\u12\"",
        "\"\\q\"",
        "a: \0\n",
        "\"a\0b\"",
        "{\"a\" 1}",
        "&a &b x",
    ] {
        assert_eq!(codes(text), ["syntax_error"], "{text:?}");
    }
}
