//! Input that must be refused quickly.
//!
//! Each case runs as a process of its own, which the shell gives a second of
//! processor time and 80 MiB of address space, a good part of which the program itself
//! takes. Resident memory is never more than
//! address space, and neither depends on what else the machine does. A process that
//! wants more is killed or aborts, and then its exit code is not 2.

use crate::session::Session;
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Stdio};

// The program itself, unoptimised, is mapped with almost 60 MB, and counts too.
const BOUNDED: &str = "ulimit -t 1 && ulimit -v 122880 && exec \"$0\" \"$@\"";

/// Refuses the file `name`, in both forms, with `code`.
fn check(session: &Session, name: &str, code: &str) {
    let stdin = || Stdio::null();
    check_with(session, name, code, stdin);
}

fn check_with(session: &Session, name: &str, code: &str, stdin: impl Fn() -> Stdio) {
    let people = bounded(session, &["validate", name], stdin());
    let told = format!("error[{code}]: ");
    assert!(people.contains(&told), "{name}: no {told} in\n{}", start(&people));
    assert!(people.lines().all(|line| line.chars().count() < 700), "{name}: a line is too long");

    let program = bounded(session, &["validate", "--json", name], stdin());
    let report: Value = serde_json::from_str(program.trim_end()).unwrap();
    assert_eq!(report["ok"], false);
    let errors = report["errors"].as_array().unwrap();
    assert!(errors.iter().any(|error| error["code"] == code), "{name}: {}", start(&program));
    assert!(
        errors.iter().all(|e| e["line"].as_u64() >= Some(1) && e["column"].as_u64() >= Some(1))
    );
}

/// Both streams of a command that was refused within the bounds.
fn bounded(session: &Session, args: &[&str], stdin: Stdio) -> String {
    let output = Command::new("sh")
        .args(["-c", BOUNDED, env!("CARGO_BIN_EXE_sluice")])
        .args(args)
        .current_dir(session.path())
        .env_remove("CLICOLOR_FORCE")
        .stdin(stdin)
        .output()
        .unwrap();
    let told = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}\n{}", output.status, start(&told));
    told
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(2000)]
}

fn refused(name: &str, content: impl AsRef<[u8]>, code: &str) {
    check(&Session::new().file(name, content), name, code);
}

const STEP: &str = "steps:\n  - {id: a, command: x}\n";

#[test]
fn an_alias_bomb_is_not_expanded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..30 {
        let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{aliases}]\n");
    }
    refused("bomb.lobsterx.yaml", bomb, "too_many_nodes");
}

#[test]
fn a_huge_file_is_not_read() {
    let session = Session::new();
    let file = File::create(session.path().join("huge.lobsterx.yaml")).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    check(&session, "huge.lobsterx.yaml", "document_too_large");
}

#[cfg(unix)]
#[test]
fn an_endless_input_is_not_read_to_its_end() {
    let session = Session::new();
    check_with(&session, "-", "document_too_large", || File::open("/dev/zero").unwrap().into());
}

#[test]
fn deep_nesting_is_refused_in_every_style() {
    refused("list.lobsterx.yaml", format!("steps: {}", "[".repeat(10_000)), "too_deep");
    refused("map.lobsterx.json", r#"{"a":"#.repeat(10_000), "too_deep");
    refused("block.lobsterx.yaml", format!("{}x", "- ".repeat(10_000)), "too_deep");
    refused("keys.lobsterx.yaml", format!("{}x", "? ".repeat(10_000)), "too_deep");
}

#[test]
fn a_key_is_set_once() {
    refused("dup.lobsterx.yaml", format!("name: a\nname: b\n{STEP}"), "duplicate_key");
    refused("dup.lobsterx.json", r#"{"name": "a", "name": "b", "steps": []}"#, "duplicate_key");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    refused("latin.lobsterx.yaml", b"name: caf\xe9\n", "invalid_encoding");
    refused("utf16.lobsterx.yaml", b"\xff\xfen\0a\0m\0e\0", "invalid_encoding");
    let noise: Vec<u8> =
        (0..65_536u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    refused("binary.lobsterx.yaml", noise, "invalid_encoding");
    refused("nul.lobsterx.yaml", b"name: a\0b\n", "syntax_error");
    refused("nuls.lobsterx.yaml", vec![0; 4096], "syntax_error");
}

#[test]
fn half_a_character_is_refused() {
    refused("low.lobsterx.json", r#"{"name": "\udc00", "steps": []}"#, "syntax_error");
    refused("high.lobsterx.json", r#"{"name": "\ud800", "steps": []}"#, "syntax_error");
}

#[test]
fn numbers_that_64_bits_cannot_hold_are_refused() {
    let nines = "9".repeat(40);
    refused(
        "int.lobsterx.yaml",
        format!("name: a\nversion: {nines}\n{STEP}"),
        "number_out_of_range",
    );
    refused("exp.lobsterx.yaml", format!("name: a\nversion: 1e400\n{STEP}"), "number_out_of_range");
    refused("neg.lobsterx.json", r#"{"name": "a", "version": -1e400}"#, "number_out_of_range");
}

#[test]
fn nothing_and_too_much_are_no_document() {
    refused("empty.lobsterx.yaml", "", "empty_document");
    refused("comment.lobsterx.yaml", "# nothing\n\n", "empty_document");
    refused(
        "two.lobsterx.yaml",
        format!("name: a\n{STEP}---\nname: b\n{STEP}"),
        "multiple_documents",
    );
    refused("other.yaml", "just: text\n", "unknown_format");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let session = Session::new();
    std::fs::create_dir(session.path().join("dir.lobsterx.yaml")).unwrap();
    check(&session, "dir.lobsterx.yaml", "document_unreadable");
    check(&session, "gone.lobsterx.yaml", "document_unreadable");
    #[cfg(unix)]
    {
        let made = Command::new("mkfifo").arg(session.path().join("pipe.yaml")).status();
        assert!(made.unwrap().success());
        check(&session, "pipe.yaml", "document_unreadable");
        check(&session, "/dev/zero", "document_unreadable");
    }
}

#[test]
fn thousands_of_mistakes_are_counted_not_shown() {
    let steps: String =
        (0..3000).map(|n| format!("- {{id: s{n}, command: x, foo{n}: 1}}\n")).collect();
    refused("many.lobsterx.yaml", format!("name: a\nsteps:\n{steps}"), "unknown_field");
}

#[test]
fn one_long_line_is_not_shown_whole() {
    let long = "x".repeat(1_000_000);
    refused("value.lobsterx.yaml", format!("name: {long}\n{STEP}"), "bad_name");
    refused("key.lobsterx.yaml", format!("name: a\n{STEP}? {long}\n: 1\n"), "unknown_field");
    let condition = format!("name: a\nsteps:\n- id: a\n  command: x\n  condition: {long}\n");
    refused("expr.lobsterx.yaml", condition, "bad_expression");
}

#[test]
fn a_long_name_used_often_is_not_paid_for_each_time() {
    let uses: String =
        (0..190).map(|n| format!("- {{id: s{n}, command: x, depends_on: [*long]}}\n")).collect();
    let document = format!("name: &long {}\nsteps:\n{uses}", "z".repeat(900_000));
    refused("alias.lobsterx.yaml", document, "too_many_nodes");
}
