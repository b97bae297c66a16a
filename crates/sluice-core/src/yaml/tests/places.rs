//! The places of problems.

use super::*;

#[test]
fn a_path_leads_to_the_value() {
    check(
        "a: 1e999\nsteps:\n- x\n- 2\n- - 1e999\n- outputs:\n    r: {s: [0, 1e999]}\n",
        expect![[r#"
            {"a":"1e999","steps":["x",2,["1e999"],{"outputs":{"r":{"s":[0,"1e999"]}}}]}
            1:4 number_out_of_range a: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
            5:5 number_out_of_range steps[2][0]: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
            7:16 number_out_of_range steps[3].outputs.r.s[1]: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
        "#]],
    );
    check(
        "1e999",
        expect![[r#"
        "1e999"
        1:1 number_out_of_range: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
    check(
        "[[0, 1e999]]",
        expect![[r#"
        [[0,"1e999"]]
        1:6 number_out_of_range [0][1]: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
}

#[test]
fn a_syntax_error_has_a_path_as_far_as_is_known() {
    check(
        "steps:\n- id: a\n- id: [1, 2\nx: 1\n",
        expect![[r#"
        none
        4:2 syntax_error steps[1].id[1]: illegal placement of ':' indicator
    "#]],
    );
}

#[test]
fn a_tab_is_shown_where_it_stands() {
    for text in [
        "name: a\nsteps:\n  - id: one\n\tcommand: go\n",
        "name: a\nsteps:\n\t- id: one\n",
        "name: a\nsteps:\n  - id: one\n  \t command: go\n",
    ] {
        let told = transcript(text);
        let line = 1 + text[..text.find('\t').unwrap()].matches('\n').count();
        let expected = "a tab where only blanks are allowed (indent with blanks, never with tabs)";
        assert!(
            told.contains(&format!("\n{line}:")) && told.contains(expected),
            "{text:?}: {told}"
        );
    }
    // Inside a text, a tab is a tab.
    check(
        "a: |\n  one\n  \ttwo\nb: \"x\ty\"\n",
        expect![[r#"
            {"a":"one\n\ttwo\n","b":"x\ty"}
        "#]],
    );
}

#[test]
fn lines_and_columns_are_those_of_an_editor() {
    // After letters of two, three and four bytes.
    check(
        "äöü: 1e999\n",
        expect![[r#"
        {"äöü":"1e999"}
        1:6 number_out_of_range äöü: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
    check(
        "{€: 1, 😀: [😀, 1e999]}\n",
        expect![[r#"
        {"€":1,"😀":["😀","1e999"]}
        1:15 number_out_of_range 😀[1]: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
    // With Windows line endings.
    check(
        "a: 1\r\nb:\r\n  - 1e999\r\nc: 1e999\r\n",
        expect![[r#"
        {"a":1,"b":["1e999"],"c":"1e999"}
        3:5 number_out_of_range b[0]: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
        4:4 number_out_of_range c: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
    // After a byte order mark, which editors do not show.
    check(
        "\u{feff}a: 1e999\nb: 1e999\n",
        expect![[r#"
        {"a":"1e999","b":"1e999"}
        1:4 number_out_of_range a: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
        2:4 number_out_of_range b: `1e999` does not fit a 64-bit number (quote it if it is meant as text)
    "#]],
    );
}

#[test]
fn windows_line_ends_are_no_part_of_any_value() {
    assert_eq!(
        value("a: x\r\nb: |\r\n  one\r\n  two\r\nc: 'p\r\n  q'\r\nd: 5\r\n"),
        json!({"a": "x", "b": "one\ntwo\n", "c": "p q", "d": 5})
    );
}

#[test]
fn a_map_or_list_stands_at_its_bracket_or_its_first_part() {
    let text = "a:\n  b: 1\nc: {d: 1}\ne:\n- 1\nf: {}\n";
    let mut problems = Problems::default();
    let node = parse(text, &mut problems).expect("a tree");
    let start = |key: &str| {
        let span = node.get(key).expect("a key").span;
        text[span.start as usize..].lines().next().unwrap_or_default()
    };
    assert_eq!(node.span.start, 0);
    assert_eq!([start("a"), start("c"), start("e"), start("f")], ["b: 1", "{d: 1}", "1", "{}"]);
}
