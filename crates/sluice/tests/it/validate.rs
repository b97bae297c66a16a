//! `sluice validate`.

use crate::session::{Session, binary, output, root};
use expect_test::expect;
use serde_json::Value;

const SIX_MISTAKES: &str = "\
name: six-mistakes
roles: {writer: {}}
steps:
  - id: gather_data
    agent: mock
    command: Gather the figures
    on_falure: skip
  - id: report
    agent: mock
    command: Write the report
    depends_on: [gather]
    timeout: 5 parsecs
  - id: report
    role: reader
    command: Read it
    condition: gather_data.outputs.n >
";

#[test]
fn six_mistakes_are_six_errors_each_in_its_place() {
    let session = Session::new().file("six.lobsterx.yaml", SIX_MISTAKES);
    expect![[r#"
        stderr:
        warning[unused_role]: no step uses the role `writer`
         --> six.lobsterx.yaml:2:9
          |
        2 | roles: {writer: {}}
          |         ^^^^^^ roles
          |
          = help: use the role, or remove it

        error[unknown_field]: unknown field `on_falure`
         --> six.lobsterx.yaml:7:5
          |
        7 |     on_falure: skip
          |     ^^^^^^^^^ steps[0].on_falure
          |
          = help: did you mean `on_failure`?

        error[unknown_step]: there is no step `gather`
          --> six.lobsterx.yaml:11:18
           |
        11 |     depends_on: [gather]
           |                  ^^^^^^ steps[1].depends_on[0]
           |
           = help: did you mean `gather_data`?

        error[bad_duration]: unknown unit `parsecs`
          --> six.lobsterx.yaml:12:16
           |
        12 |     timeout: 5 parsecs
           |                ^^^^^^^ steps[1].timeout
           |
           = help: write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds

        error[duplicate_step_id]: a step called `report` exists already
          --> six.lobsterx.yaml:13:9
           |
        13 |   - id: report
           |         ^^^^^^ steps[2].id
           |
           = help: rename one of them, and check which one each reference means

        error[unknown_role]: the role `reader` is not declared
          --> six.lobsterx.yaml:14:11
           |
        14 |     role: reader
           |           ^^^^^^ steps[2].role
           |
           = help: declare it under `roles`

        error[bad_expression]: expected a value, found the end
          --> six.lobsterx.yaml:16:39
           |
        16 |     condition: gather_data.outputs.n >
           |                                       ^ steps[2].condition
           |
           = help: correct it at the column named. The guide's page on expressions has the grammar; `sluice eval` lets you try one
        stdout:
        six.lobsterx.yaml: 6 errors, 1 warning
        exit 2
    "#]]
    .assert_eq(&session.run(&["validate", "six.lobsterx.yaml"]));
}

#[test]
fn programs_get_the_same_six() {
    let session = Session::new().file("six.lobsterx.yaml", SIX_MISTAKES);
    expect![[r#"
        stdout:
        {"file":"six.lobsterx.yaml","ok":false,"errors":[{"code":"unknown_field","message":"unknown field `on_falure`","path":"steps[0].on_falure","line":7,"column":5,"hint":"did you mean `on_failure`?"},{"code":"unknown_step","message":"there is no step `gather`","path":"steps[1].depends_on[0]","line":11,"column":18,"hint":"did you mean `gather_data`?"},{"code":"bad_duration","message":"unknown unit `parsecs`","path":"steps[1].timeout","line":12,"column":16,"hint":"write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds"},{"code":"duplicate_step_id","message":"a step called `report` exists already","path":"steps[2].id","line":13,"column":9,"hint":null},{"code":"unknown_role","message":"the role `reader` is not declared","path":"steps[2].role","line":14,"column":11,"hint":"declare it under `roles`"},{"code":"bad_expression","message":"expected a value, found the end","path":"steps[2].condition","line":16,"column":39,"hint":null}],"warnings":[{"code":"unused_role","message":"no step uses the role `writer`","path":"roles","line":2,"column":9,"hint":null}]}
        exit 2
    "#]].assert_eq(&session.run(&["validate", "--json", "six.lobsterx.yaml"]));
}

#[test]
fn a_valid_document_gets_one_line() {
    let args =
        ["validate", "examples/vendor-review.lobsterx.yaml", "examples/lens-router.lens.json"];
    let output = output(&root(), &args, b"");
    expect![[r#"
        examples/vendor-review.lobsterx.yaml: ok, 6 steps in 5 waves, 0 warnings
        examples/lens-router.lens.json: ok, 5 steps in 3 waves, 0 warnings
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let session = Session::new()
        .file("good.lobsterx.yaml", "name: good\nsteps:\n  - {id: a, command: x}\n")
        .file("bad.lobsterx.yaml", "name: bad\nsteps: []\n");
    let args =
        ["validate", "--json", "gone.lobsterx.yaml", "bad.lobsterx.yaml", "good.lobsterx.yaml"];
    expect![[r#"
        stdout:
        {"file":"gone.lobsterx.yaml","ok":false,"errors":[{"code":"document_unreadable","message":"cannot read `gone.lobsterx.yaml`: No such file or directory (os error 2)","path":"","line":1,"column":1,"hint":"check the path"}],"warnings":[]}
        {"file":"bad.lobsterx.yaml","ok":false,"errors":[{"code":"no_steps","message":"there are no steps","path":"steps","line":2,"column":8,"hint":null}],"warnings":[]}
        {"file":"good.lobsterx.yaml","ok":true,"errors":[],"warnings":[]}
        exit 2
    "#]].assert_eq(&session.run(&args));
}

#[test]
fn standard_input_is_told_apart_by_its_fields() {
    let session = Session::new();
    let document = "name: a\nsteps:\n  - {id: a, comand: x}\n";
    expect![[r#"
        stderr:
        error[missing_command]: step `a` has no command
         --> <stdin>:3:10
          |
        3 |   - {id: a, comand: x}
          |          ^ steps[0]
          |
          = help: add `command`, or `approval`, `workflow_ref` or `library_step`

        error[unknown_field]: unknown field `comand`
         --> <stdin>:3:13
          |
        3 |   - {id: a, comand: x}
          |             ^^^^^^ steps[0].comand
          |
          = help: did you mean `command`?
        stdout:
        <stdin>: 2 errors, 0 warnings
        exit 2
    "#]]
    .assert_eq(&session.run_with(&["validate", "-"], document));
    expect![[r#"
        stdout:
        {"file":"-","ok":false,"errors":[{"code":"unknown_format","message":"this is not a workflow document","path":"","line":1,"column":1,"hint":"a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`"}],"warnings":[]}
        exit 2
    "#]].assert_eq(&session.run_with(&["validate", "-", "--json"], "just: text\n"));
}

#[test]
fn columns_are_characters_and_marks_are_columns_of_the_screen() {
    let session = Session::new().file(
        "a.lobsterx.yaml",
        "name: a\nsteps:\n  - {id: a, command: \"größer 東京 🦀\", foo: 1}\n\
         \x20 - {id: b, command: \"«x» ${a.outputs.y} é\", condition: \"a.outputs.é ==\"}\n",
    );
    expect![[r#"
        stderr:
        error[unknown_field]: unknown field `foo`
         --> a.lobsterx.yaml:3:37
          |
        3 |   - {id: a, command: "größer 東京 🦀", foo: 1}
          |                                        ^^^ steps[0].foo
          |
          = help: correct the spelling, or remove the field. Notes for people belong in comments or `description`

        warning[undeclared_output]: step `a` declares no output `y`
         --> a.lobsterx.yaml:4:29
          |
        4 |   - {id: b, command: "«x» ${a.outputs.y} é", condition: "a.outputs.é =="}
          |                             ^^^^^^^^^^^ steps[1].command
          |
          = help: declare it under `outputs`; the text of `a` is `a.stdout`

        error[bad_expression]: expected a value, found the end
         --> a.lobsterx.yaml:4:72
          |
        4 |   - {id: b, command: "«x» ${a.outputs.y} é", condition: "a.outputs.é =="}
          |                                                                        ^ steps[1].condition
          |
          = help: correct it at the column named. The guide's page on expressions has the grammar; `sluice eval` lets you try one
        stdout:
        a.lobsterx.yaml: 2 errors, 1 warning
        exit 2
    "#]].assert_eq(&session.run(&["validate", "a.lobsterx.yaml"]));
}

#[test]
fn what_a_terminal_would_obey_is_made_visible() {
    let document = "name: a\nsteps:\n  - id: a\n    command: x\n    \"\\e[31mred\\u202e\": y # \u{202e}desrever\n\
                    \x20   depends_on: [\"b\\e]0;title\\a\\r\\n\"]\n";
    let session = Session::new().file("\u{1b}[2Jx\u{9b}.lobsterx.yaml", document);
    let output = session.output(&["validate", "\u{1b}[2Jx\u{9b}.lobsterx.yaml"], b"");
    for (bytes, what) in [(&output.stdout, "stdout"), (&output.stderr, "stderr")] {
        let text = std::str::from_utf8(bytes).unwrap();
        let obeyed =
            |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!text.contains(obeyed), "{what}: {text:?}");
    }
    expect![[r#"
        stderr:
        error[unknown_field]: unknown field `␛[31mred�`
         --> ␛[2Jx�.lobsterx.yaml:5:5
          |
        5 |     "\e[31mred\u202e": y # �desrever
          |     ^^^^^^^^^^^^^^^^^ steps[0].␛[31mred�
          |
          = help: correct the spelling, or remove the field. Notes for people belong in comments or `description`

        error[unknown_step]: there is no step `b␛]0;title␇␍␊`
         --> ␛[2Jx�.lobsterx.yaml:6:18
          |
        6 |     depends_on: ["b\e]0;title\a\r\n"]
          |                  ^^^^^^^^^^^^^^^^^^^ steps[0].depends_on[0]
          |
          = help: correct the id, or add the step
        stdout:
        ␛[2Jx�.lobsterx.yaml: 2 errors, 0 warnings
        exit 2
    "#]]
    .assert_eq(&session.run(&["validate", "\u{1b}[2Jx\u{9b}.lobsterx.yaml"]));
    let json =
        session.output(&["validate", "--json", "\u{1b}[2Jx\u{9b}.lobsterx.yaml"], b"").stdout;
    let json = String::from_utf8(json).unwrap();
    assert!(!json.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{json:?}");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["file"], "\u{1b}[2Jx\u{9b}.lobsterx.yaml", "escaped, not changed");
}

#[test]
fn a_long_line_is_shown_through_a_window() {
    let steps: Vec<String> =
        (0..9000).map(|n| format!(r#"{{"id":"s{n}","command":"x","bad":1}}"#)).collect();
    let document = format!(r#"{{"name":"x","steps":[{}]}}"#, steps.join(","));
    let session = Session::new().file("a.lobsterx.json", document);
    let told = session.run(&["validate", "a.lobsterx.json"]);
    assert!(told.lines().all(|line| line.chars().count() < 200), "{told}");
    let third: Vec<&str> = told.split("\n\n").nth(2).unwrap().lines().collect();
    expect![[r#"
        error[unknown_field]: unknown field `bad`
         --> a.lobsterx.json:1:115
          |
        1 | …,{"id":"s1","command":"x","bad":1},{"id":"s2","command":"x","bad":1},{"id":"s3","command":"x","bad":1},{"id":"s4","command":"x","bad":1},{"id":"s5","command":"x…
          |                                                              ^^^^^ steps[2].bad
          |
          = help: correct the spelling, or remove the field. Notes for people belong in comments or `description`"#]].assert_eq(&third.join("\n"));
    assert!(told.contains("more_problems"), "{told}");
}

#[test]
fn a_registry_resolves_references_or_is_refused_itself() {
    let session = Session::new()
        .file("a.lobsterx.yaml", "name: a\nsteps:\n  - {id: a, workflow_ref: child@3}\n")
        .file("good.yaml", "workflows: {child: [1, 2]}\n")
        .file("bad.yaml", "workflows: {child: [one]}\nlibary: {}\n")
        .file("latin.yaml", b"workflows: {caf\xe9: [1]}\n");
    expect![[r#"
        stderr:
        warning[unresolved_reference]: workflow `child` cannot be checked: no registry is loaded
         --> a.lobsterx.yaml:3:27
          |
        3 |   - {id: a, workflow_ref: child@3}
          |                           ^^^^^^^ steps[0].workflow_ref
          |
          = help: hand the registry over with `--registry FILE`, or write the step out in the document
        stdout:
        a.lobsterx.yaml: ok, 1 step in 1 wave, 1 warning
        exit 0
    "#]]
    .assert_eq(&session.run(&["validate", "a.lobsterx.yaml"]));
    expect![[r#"
        stderr:
        error[unknown_workflow]: the registry has no version 3 of `child`
         --> a.lobsterx.yaml:3:27
          |
        3 |   - {id: a, workflow_ref: child@3}
          |                           ^^^^^^^ steps[0].workflow_ref
          |
          = help: correct the name or the version, or store the other workflow first
        stdout:
        a.lobsterx.yaml: 1 error, 0 warnings
        exit 2
    "#]]
    .assert_eq(&session.run(&["validate", "a.lobsterx.yaml", "--registry", "good.yaml"]));
    expect![[r#"
        stderr:
        error[wrong_type]: expected a number, found a string
         --> bad.yaml:1:21
          |
        1 | workflows: {child: [one]}
          |                     ^^^ workflows.child[0]
          |
          = help: write a value of the type named. In YAML, quotes make text of anything

        error[unknown_field]: unknown field `libary`
         --> bad.yaml:2:1
          |
        2 | libary: {}
          | ^^^^^^ libary
          |
          = help: did you mean `library`?
        exit 2
    "#]]
    .assert_eq(&session.run(&["validate", "a.lobsterx.yaml", "--registry", "bad.yaml"]));
    expect![[r#"
        stderr:
        error[document_unreadable]: cannot read `gone.yaml`
         |
         = note: caused by: No such file or directory (os error 2)
         = help: check the path
        exit 2
    "#]]
    .assert_eq(&session.run(&["validate", "a.lobsterx.yaml", "--registry", "gone.yaml"]));
    let args = ["validate", "a.lobsterx.yaml", "--registry", "latin.yaml", "--json"];
    expect![[r#"
        stdout:
        {"file":"latin.yaml","ok":false,"errors":[{"code":"invalid_encoding","message":"byte 15 is not UTF-8","path":"","line":1,"column":16,"hint":"save the file as UTF-8"}],"warnings":[]}
        exit 2
    "#]].assert_eq(&session.run(&args));
}

#[test]
fn colours_are_for_terminals_and_for_those_who_insist() {
    let session = Session::new().file("six.lobsterx.yaml", SIX_MISTAKES);
    let coloured = |name: &str, value: &str| {
        let mut command = binary(session.path());
        let output = command.args(["validate", "six.lobsterx.yaml"]).env(name, value).output();
        output.unwrap().stderr.contains(&0x1b)
    };
    assert!(coloured("CLICOLOR_FORCE", "1"));
    assert!(!coloured("NO_COLOR", "1"));
}

#[test]
fn a_sub_workflow_beside_the_file_is_found_as_run_finds_it() {
    let child = "name: child\nversion: 2\nsteps: [{id: a, agent: mock, command: go}]\n";
    let parent = |reference: &str| {
        format!("name: parent\nsteps: [{{id: sub, workflow_ref: {reference}}}]\n")
    };
    let session = Session::new()
        .file("child.lobsterx.yaml", child)
        .file("any.lobsterx.yaml", parent("child"))
        .file("two.lobsterx.yaml", parent("child@2"))
        .file("three.lobsterx.yaml", parent("child@3"))
        .file("registry.yaml", "workflows: {other: [1]}\n");
    let files = ["any.lobsterx.yaml", "two.lobsterx.yaml", "three.lobsterx.yaml"];
    expect![[r#"
        stderr:
        warning[unresolved_reference]: workflow `child` cannot be checked: no registry is loaded
         --> three.lobsterx.yaml:2:33
          |
        2 | steps: [{id: sub, workflow_ref: child@3}]
          |                                 ^^^^^^^ steps[0].workflow_ref
          |
          = help: hand the registry over with `--registry FILE`, or write the step out in the document
        stdout:
        any.lobsterx.yaml: ok, 1 step in 1 wave, 0 warnings
        two.lobsterx.yaml: ok, 1 step in 1 wave, 0 warnings
        three.lobsterx.yaml: ok, 1 step in 1 wave, 1 warning
        exit 0
    "#]].assert_eq(&session.run(&[&["validate"], &files[..]].concat()));
    expect![[r#"
        stderr:
        error[unknown_workflow]: the registry has no workflow `child`
         --> three.lobsterx.yaml:2:33
          |
        2 | steps: [{id: sub, workflow_ref: child@3}]
          |                                 ^^^^^^^ steps[0].workflow_ref
          |
          = help: correct the name or the version, or store the other workflow first
        stdout:
        any.lobsterx.yaml: ok, 1 step in 1 wave, 0 warnings
        two.lobsterx.yaml: ok, 1 step in 1 wave, 0 warnings
        three.lobsterx.yaml: 1 error, 0 warnings
        exit 2
    "#]]
    .assert_eq(&session.run(&[&["validate", "--registry", "registry.yaml"], &files[..]].concat()));
    let planned = session.run(&["plan", "any.lobsterx.yaml"]);
    assert!(!planned.contains("unresolved_reference"), "{planned}");
}

#[test]
fn advice_is_printed_and_no_path_of_the_source_tree() {
    let session = Session::new().file(
        "odd.lobsterx.yaml",
        "name: odd\nsteps:\n  - {id: a, command: 'x {{ args.y }}', retries: 3, colour: red}\n",
    );
    expect![[r#"
        stderr:
        warning[unexpanded_reference]: `{{ args.y }}` is not replaced by a value
         --> odd.lobsterx.yaml:3:25
          |
        3 |   - {id: a, command: 'x {{ args.y }}', retries: 3, colour: red}
          |                         ^^^^^^^^^^^^ steps[0].command
          |
          = help: write `${args.y}`

        error[unknown_field]: unknown field `retries`
         --> odd.lobsterx.yaml:3:40
          |
        3 |   - {id: a, command: 'x {{ args.y }}', retries: 3, colour: red}
          |                                        ^^^^^^^ steps[0].retries
          |
          = help: write `retry: {attempts: 3}`, the first attempt counted

        error[unknown_field]: unknown field `colour`
         --> odd.lobsterx.yaml:3:52
          |
        3 |   - {id: a, command: 'x {{ args.y }}', retries: 3, colour: red}
          |                                                    ^^^^^^ steps[0].colour
          |
          = help: correct the spelling, or remove the field. Notes for people belong in comments or `description`
        stdout:
        odd.lobsterx.yaml: 2 errors, 1 warning
        exit 2
    "#]].assert_eq(&session.run(&["validate", "odd.lobsterx.yaml"]));
}

/// Validates an example against the policies about flow.
fn with_flow(document: &str, more: &[&str]) -> (Option<i32>, String) {
    let document = format!("examples/flow/{document}");
    let mut args = vec!["validate", "--policies", "examples/flow/policies"];
    args.extend(["--setup", "examples/flow/setup.yaml", &document]);
    args.extend(more);
    let done = output(&root(), &args, b"");
    let text = [&done.stderr[..], &done.stdout].concat();
    (done.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_flow_that_a_policy_forbids_is_refused_with_its_way() {
    let (code, text) = with_flow("answer.lobsterx.yaml", &[]);
    let way =
        "examples/flow/answer.lobsterx.yaml:14  the command of `write` reads `read_page.offer`";
    assert!(text.contains("error[forbidden_flow]: `send` can be sent to gateway `mail`"), "{text}");
    assert!(text.contains(way), "{text}");
    assert_eq!(code, Some(2));
    let (code, json) = with_flow("answer.lobsterx.yaml", &["--json"]);
    assert_eq!(code, Some(2));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["ok"], false);
    let found = &report["flow"][0];
    assert_eq!(found["code"], "forbidden_flow");
    assert_eq!(found["ways"].as_array().unwrap().len(), 2);
    assert_eq!(found["ways"][0]["hops"][0]["document"], "examples/flow/answer.lobsterx.yaml");
}

#[test]
fn an_endorsed_value_may_leave() {
    let (code, text) = with_flow("answer-endorsed.lobsterx.yaml", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with(": ok, 3 steps in 3 waves, 0 warnings\n"), "{text}");
}

#[test]
fn a_plan_shows_the_flow_of_data() {
    let shown = |format: &str| {
        let args = ["plan", "--flow", "--setup", "examples/flow/setup.yaml", "--format", format];
        let args = [&args[..], &["examples/flow/answer.lobsterx.yaml"]].concat();
        let done = output(&root(), &args, b"");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let text = shown("text");
    let flow = text.find("flow of data").unwrap();
    let sink = "to gateway mail, external: caller, operator, web + customer";
    assert!(text[flow..].contains(sink), "{text}");
    assert!(shown("mermaid").contains("s0 -->|\"operator, web\"| s1"), "{}", shown("mermaid"));
    assert!(shown("dot").contains("to") && shown("dot").contains("style=dashed"));
    let json: Value = serde_json::from_str(&shown("json")).unwrap();
    assert_eq!(json["flow"]["links"][0]["from"], "read_page");
}
