//! `sluice eval`.

use crate::session::Session;
use expect_test::{Expect, expect};

fn check(args: &[&str], stdin: &str, expected: &Expect) {
    expected.assert_eq(&Session::new().run_with(&[&["eval"], args].concat(), stdin));
}

#[test]
fn a_value_is_printed_as_json() {
    check(
        &["1 < 2 and 'b' in ['a', 'b']"],
        "",
        &expect![[r#"
        stdout:
        true
        exit 0
    "#]],
    );
    check(
        &["1 < 2", "--json"],
        "",
        &expect![[r#"
        stdout:
        {"ok":true,"value":true}
        exit 0
    "#]],
    );
    check(
        &["-1 < 2"],
        "",
        &expect![[r#"
        stdout:
        true
        exit 0
    "#]],
    );
    check(
        &["gone.x", "--json"],
        "",
        &expect![[r#"
        stdout:
        {"ok":true,"value":null}
        exit 0
    "#]],
    );
}

#[test]
fn values_come_from_a_file_in_json_or_yaml() {
    let json =
        r#"{"steps": {"review": {"outputs": {"score": 7, "tags": ["a", "é"]}}}, "args": {"n": 5}}"#;
    check(
        &["review.outputs.score >= args.n", "--with", "-"],
        json,
        &expect![[r#"
        stdout:
        true
        exit 0
    "#]],
    );
    check(
        &["review.outputs", "--with", "-"],
        json,
        &expect![[r#"
        stdout:
        {
          "score": 7,
          "tags": [
            "a",
            "é"
          ]
        }
        exit 0
    "#]],
    );
    check(
        &["review.outputs", "--with", "-", "--json"],
        json,
        &expect![[r#"
        stdout:
        {"ok":true,"value":{"score":7,"tags":["a","é"]}}
        exit 0
    "#]],
    );
    let yaml = "letter: |\n  Dear all\nitem: {id: 3}\n";
    check(
        &["letter contains 'all' or item.id == 3", "--with", "-"],
        yaml,
        &expect![[r#"
        stderr:
        error[bad_expression]: expected an operator or the end, found `contains`
         --> expression:1:8
          |
        1 | letter contains 'all' or item.id == 3
          |        ^^^^^^^^
          |
          = help: correct it at the column named. The guide's page on expressions has the grammar; `sluice eval` lets you try one
        exit 2
    "#]],
    );
    check(
        &["contains(letter, 'all') and item.id == 3", "--with", "-"],
        yaml,
        &expect![[r#"
        stdout:
        true
        exit 0
    "#]],
    );
}

#[test]
fn an_expression_that_cannot_be_read_is_drawn() {
    check(
        &["größe.x >= and 2"],
        "",
        &expect![[r#"
        stderr:
        error[bad_expression]: expected a value, found `and`
         --> expression:1:12
          |
        1 | größe.x >= and 2
          |            ^^^
          |
          = help: correct it at the column named. The guide's page on expressions has the grammar; `sluice eval` lets you try one
        exit 2
    "#]],
    );
    check(
        &["größe.x >= and 2", "--json"],
        "",
        &expect![[r#"
        stdout:
        {"ok":false,"errors":[{"code":"bad_expression","message":"expected a value, found `and`","path":"","line":1,"column":12,"hint":null}]}
        exit 2
    "#]],
    );
    check(
        &["a == '\u{1b}[31m' ==="],
        "",
        &expect![[r#"
        stderr:
        error[bad_expression]: unexpected `=`
         --> expression:1:16
          |
        1 | a == '␛[31m' ===
          |                ^
          |
          = help: use `==`
        exit 2
    "#]],
    );
}

#[test]
fn values_that_cannot_be_read_are_drawn() {
    check(
        &["x", "--with", "gone.json"],
        "",
        &expect![[r#"
        stderr:
        error[document_unreadable]: cannot read `gone.json`
         |
         = note: caused by: No such file or directory (os error 2)
         = help: check the path
        exit 2
    "#]],
    );
    check(
        &["x", "--with", "gone.json", "--json"],
        "",
        &expect![[r#"
        stdout:
        {"ok":false,"errors":[{"code":"document_unreadable","message":"cannot read `gone.json`: No such file or directory (os error 2)","path":"","line":1,"column":1,"hint":"check the path"}]}
        exit 2
    "#]],
    );
    check(
        &["x", "--with", "-"],
        "[1, 2]",
        &expect![[r#"
        stderr:
        error[wrong_type]: the scope must be an object, not array
         --> <stdin>:1:1
          |
        1 | [1, 2]
          | ^
          |
          = help: write a value of the type named. In YAML, quotes make text of anything
        exit 2
    "#]],
    );
    check(
        &["x", "--with", "-"],
        "{\"steps\": ",
        &expect![[r#"
        stderr:
        error[syntax_error]: unclosed bracket '{'
         --> <stdin>:1:1
          |
        1 | {"steps":
          | ^
          |
          = help: look at the line named, and at the one before it: an open bracket or quote is often noticed only later. In YAML, indent with blanks, never with tabs
        exit 2
    "#]],
    );
}

#[test]
fn running_out_of_fuel_is_a_failure() {
    let large = format!("{{\"list\": [{}]}}", vec!["7"; 120_000].join(","));
    check(
        &["8 in list", "--with", "-"],
        &large,
        &expect![[r#"
        stderr:
        error[condition_error]: expression took more than 100000 units of work
         --> expression:1:1
          |
        1 | 8 in list
          | ^^^^^^^^^
          |
          = help: let it read smaller values
        exit 1
    "#]],
    );
    check(
        &["8 in list", "--with", "-", "--json"],
        &large,
        &expect![[r#"
        stdout:
        {"ok":false,"errors":[{"code":"condition_error","message":"expression took more than 100000 units of work","path":"","line":1,"column":1,"hint":"let it read smaller values"}]}
        exit 1
    "#]],
    );
}
