//! Anchors and aliases, and what they may expand to.

use super::*;

#[test]
fn an_alias_is_a_copy_of_what_was_anchored() {
    assert_eq!(
        value("a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\ne: &y text\nf: *y\n"),
        json!({"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": [{"b": [1, 2]}, {"b": [1, 2]}], "e": "text", "f": "text"})
    );
    assert_eq!(value("[&a 1, &a 2, *a]"), json!([1, 2, 2]), "the last anchor of a name counts");
    assert_eq!(value("a: &x\nb: *x\n"), json!({"a": null, "b": null}));
}

#[test]
fn an_alias_stands_where_it_is_written() {
    let mut problems = Problems::default();
    let text = "a: &x {b: 1}\nc: *x\n";
    let node = parse(text, &mut problems).expect("a tree");
    assert_eq!(&text[node.get("c").expect("c").span.range()], "*x");
}

#[test]
fn an_alias_needs_an_anchor_before_it() {
    check(
        "a: *x\nb: &x 1\n",
        expect![[r#"
        none
        1:4 syntax_error a: while parsing node, found unknown anchor
    "#]],
    );
    check(
        "a: &x [1, *x]\n",
        expect![[r#"
        none
        1:11 syntax_error a[1]: an alias cannot be inside its own anchor
    "#]],
    );
    check(
        "a: &x\n  b:\n    c: *x\n",
        expect![[r#"
        none
        3:8 syntax_error a.b.c: an alias cannot be inside its own anchor
    "#]],
    );
}

/// `count` anchored items in one list: each is itself and a copy, the list one more.
fn anchored(count: usize) -> String {
    format!("[{}]", "&a 1,".repeat(count))
}

#[test]
fn a_document_expands_to_so_many_nodes_and_no_more() {
    let max = DOCUMENT_NODES_MAX;
    let flat = |count: usize| format!("[{}]", "1,".repeat(count));
    assert_eq!(codes(&flat(max - 1)), [""; 0]);
    assert_eq!(codes(&flat(max)), ["too_many_nodes"]);
    assert_eq!(codes(&anchored(max / 2 - 1)), [""; 0], "{} nodes", max - 1);
    assert_eq!(codes(&anchored(max / 2)), ["too_many_nodes"], "{} nodes", max + 1);
    // The anchored list is 3 nodes, its copy 3, the outer list 1, each alias 3.
    let aliases = |count: usize| format!("[&a [1, 2],{}]", "*a,".repeat(count));
    let most = (max - 7) / 3;
    assert_eq!(codes(&aliases(most)), [""; 0]);
    assert_eq!(codes(&aliases(most + 1)), ["too_many_nodes"]);
}

#[test]
fn an_alias_bomb_of_nodes_is_refused_where_it_passes_the_bound() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for n in 1..9 {
        let inner = format!("*a{},", n - 1).repeat(9);
        text.push_str(&format!("a{n}: &a{n} [{inner}]\n"));
    }
    check(
        &text,
        expect![[r#"
        none
        6:14 too_many_nodes a5[1]: the document expands to over 262144 values (aliases count each time they are used)
    "#]],
    );
}

#[test]
fn long_texts_count_for_more_than_one_node() {
    let max = DOCUMENT_NODES_MAX;
    // 31 bytes are one node, 32 are two.
    let texts = |bytes: usize, count: usize| {
        format!("[&a '{}',{}]", "x".repeat(bytes), "*a,".repeat(count))
    };
    assert_eq!(codes(&texts(31, max - 3)), [""; 0]);
    assert_eq!(codes(&texts(31, max - 2)), ["too_many_nodes"]);
    assert_eq!(codes(&texts(32, max / 2 - 3)), [""; 0]);
    assert_eq!(codes(&texts(32, max / 2 - 2)), ["too_many_nodes"]);
    let keys = |count: usize| format!("[&a {{{}: 1}},{}]", "k".repeat(64), "*a,".repeat(count));
    assert_eq!(codes(&keys((max - 11) / 5)), [""; 0]);
    assert_eq!(codes(&keys((max - 11) / 5 + 1)), ["too_many_nodes"]);
}

#[test]
fn aliases_cannot_nest_deeper_than_text_may() {
    let nest =
        |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
    let text = |first: usize, second: usize| {
        format!("a: &a {}\nb: {}\n", nest(first, "1"), nest(second, "*a"))
    };
    assert_eq!(codes(&text(30, 33)), [""; 0], "1 + 33 + 30");
    assert_eq!(codes(&text(30, 34)), ["too_deep"]);
    assert_eq!(codes(&text(63, 0)), [""; 0]);
    assert_eq!(codes(&text(63, 1)), ["too_deep"]);
    // An alias of a scalar adds no level.
    assert_eq!(codes(&format!("a: &a 1\nb: {}\n", nest(63, "*a"))), [""; 0]);
    // The height of a list is that of its highest item, at any position.
    let uneven =
        |outer: usize| format!("a: &a [[[1]], 2]\nb: &b [*a, 3]\nc: {}\n", nest(outer, "*b"));
    assert_eq!(codes(&uneven(59)), [""; 0]);
    assert_eq!(codes(&uneven(60)), ["too_deep"]);
}
