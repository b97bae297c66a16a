use super::*;
use crate::diagnostic::Problems;
use crate::yaml::parse;
use proptest::prelude::*;

/// The source text of `part` of the text at key `a`, as `locate` finds it.
fn located(source: &str, part: &str) -> String {
    let mut problems = Problems::default();
    let root = parse(source, &mut problems).expect("a tree");
    let node = root.get("a").expect("a key `a`");
    let Kind::Text(text) = &node.kind else { panic!("no text: {node:?}") };
    let start = text.find(part).expect("the part");
    let span = node.locate(source, Span::new(start, start + part.len()));
    let line = 1 + source[..span.start as usize].matches('\n').count();
    format!("{line}: {}", &source[span.range()])
}

#[test]
fn a_part_of_plain_or_quoted_text_has_its_place() {
    assert_eq!(located("a: one ${x} two\n", "${x}"), "1: ${x}");
    assert_eq!(located("b: 1\na: 'one ${x} two'\n", "${x}"), "2: ${x}");
    assert_eq!(located("a: \"one ${x} two\"\n", "${x}"), "1: ${x}");
    assert_eq!(located("{\"a\":\"ä€ ${x}\"}", "${x}"), "1: ${x}");
    assert_eq!(located("a: '${x}'\n", "${x}"), "1: ${x}");
}

#[test]
fn a_part_of_a_literal_block_has_its_place() {
    assert_eq!(located("a: |\n  one\n  two ${x} y\n  three\n", "${x}"), "3: ${x}");
    assert_eq!(located("a: |-\n  ${x}\n", "${x}"), "2: ${x}");
    assert_eq!(located("b:\n- 1\na: |\n    one\n      two ${x}\n", "${x}"), "5: ${x}");
    assert_eq!(located("a: |\n\n  one\n\n  ${x}\n", "${x}"), "5: ${x}");
    assert_eq!(located("a: |2\n    deep\n  ${x}\n", "${x}"), "3: ${x}");
    assert_eq!(located("a: | # note\n  one\n  ${x}\n", "${x}"), "3: ${x}");
    assert_eq!(located("a: |\r\n  one\r\n  ${x}\r\n", "${x}"), "3: ${x}");
    assert_eq!(located("a: |\n  ä\n  € ${x}\n", "${x}"), "3: ${x}");
    assert_eq!(located("a: |\n  one ${x\n  y}\n", "${x\ny}"), "2: ${x", "up to the line's end");
}

#[test]
fn a_part_of_the_first_line_of_folded_text_has_its_place() {
    assert_eq!(located("a: >\n  one ${x}\n  two\n", "${x}"), "2: ${x}");
}

/// Whether the whole text is returned for `part`.
fn whole(source: &str, part: &str) -> bool {
    let mut problems = Problems::default();
    let root = parse(source, &mut problems).expect("a tree");
    let node = root.get("a").expect("a key `a`");
    let Kind::Text(text) = &node.kind else { panic!("no text: {node:?}") };
    let start = text.rfind(part).expect("the part");
    node.locate(source, Span::new(start, start + part.len())) == node.span
}

#[test]
fn a_part_without_a_simple_place_is_the_whole_text() {
    assert!(whole("a: 'it''s ${x}'\n", "${x}"), "an escape");
    assert!(whole("a: \"\\t${x}\"\n", "${x}"), "an escape");
    assert!(whole("a: one\n  two ${x}\n", "${x}"), "folded plain text");
    assert!(whole("a: 'one\n  ${x}'\n", "${x}"), "folded quoted text");
    assert!(whole("a: >\n  one\n  two ${x}\n", "${x}"), "folded text");
    assert!(whole("b: &b ${x}\na: *b\n", "${x}"), "an alias");
}

#[test]
fn a_part_is_never_found_in_another_text_that_looks_alike() {
    // Each of these has the same part at the position where a literal block would have it.
    assert!(whole("a: \"\\n${x}\"\nb: ${x}\n", "${x}"), "the next line's text");
    assert!(whole("a: >\n  p\n  q\n\n  q\n", "q"), "a folded line");
    assert!(whole("a: \"x\\n\"\n", ""), "nothing, at the end");
}

#[test]
fn an_empty_line_without_indentation_is_a_place_of_its_own() {
    let source = "a: |+\n\n  \n  \n  b\n\n\n";
    let root = parse(source, &mut Problems::default()).expect("a tree");
    let node = root.get("a").expect("a");
    let Kind::Text(text) = &node.kind else { panic!("a text") };
    for from in 0..=text.len() {
        let span = node.locate(source, Span::new(from, from));
        assert!(source.get(span.range()).is_some(), "{from}: {span:?}");
    }
}

#[test]
fn what_is_no_text_is_its_own_place() {
    let source = "a: [1]\n";
    let root = parse(source, &mut Problems::default()).expect("a tree");
    let node = root.get("a").expect("a");
    assert_eq!(node.locate(source, Span::new(0, 1)), node.span);
}

#[test]
fn nodes_answer_what_they_are() {
    let source = "n: ~\nb: true\ni: 1\nt: x\nl: [1, 2]\nm: {k: v}\n";
    let root = parse(source, &mut Problems::default()).expect("a tree");
    let describe = |key: &str| root.get(key).expect("a key").describe();
    assert_eq!(
        ["n", "b", "i", "t", "l", "m"].map(describe),
        ["nothing", "a boolean", "a number", "a string", "a list", "a map"]
    );
    assert!(root.get("n").expect("n").is_null());
    assert!(!root.get("b").expect("b").is_null());
    let list = root.get("l").expect("l");
    assert_eq!(list.item(1).map(Node::to_value), Some(2.into()));
    assert_eq!(list.item(2), None);
    assert_eq!(list.get("k"), None);
    assert_eq!(list.entries(), None);
    assert_eq!(root.item(0), None);
    assert_eq!(root.get("zz"), None);
    assert_eq!(root.clone().into_owned(), root);
}

proptest! {
    #[test]
    fn a_place_is_always_inside_the_source(
        style in prop::sample::select(vec!["a: ", "a: |\n  ", "a: >\n  ", "a: '", "a: \"", "a: |2\n   ", "a: |+\n\n  ", "- a: "]),
        text in "[a \\n\\\\'\"é]{0,20}",
        end in prop::sample::select(vec!["", "'", "\"", "\n", "\nb: 1\n", "\n\n\n"]),
        from in 0usize..40,
        length in 0usize..40,
    ) {
        let source = format!("{style}{}{end}", text.replace('\n', "\n  "));
        let Some(root) = parse(&source, &mut Problems::default()) else { return Ok(()) };
        for node in root.entries().into_iter().flatten().map(|entry| &entry.value) {
            let span = node.locate(&source, Span::new(from, from + length));
            prop_assert!(source.get(span.range()).is_some(), "{source:?} {span:?}");
            prop_assert!(span.start >= node.span.start, "{source:?} {span:?}");
        }
    }
}
