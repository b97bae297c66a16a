//! Registry files: library steps, workflows, lenses.

use super::{dedent, tell};
use crate::doc::Registry;
use crate::doc::leaf::Table;
use expect_test::{Expect, expect};

/// The result of parsing a registry file: its problems, or `ok` and its contents.
#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(text: &str, expected: Expect) {
    let (registry, diagnostics) = Registry::parse(&dedent(text));
    let mut out = String::new();
    for diagnostic in &diagnostics {
        tell(diagnostic, &mut out);
    }
    let refused = diagnostics.iter().any(crate::diagnostic::Diagnostic::is_error);
    assert_eq!(registry.is_none(), refused, "a registry is answered when there is no error");
    if let Some(registry) = registry {
        out.push_str("ok\n");
        for (name, step) in registry.library.iter().flatten() {
            let fields: Vec<&str> = step.fields.iter().map(|field| &*field.key).collect();
            out.push_str(&format!("step {name}: {fields:?} locked {:?}\n", step.locked));
        }
        for (name, versions) in registry.workflows.iter().flatten() {
            out.push_str(&format!("workflow {name}: {versions:?}\n"));
        }
        for (id, lens) in registry.lenses.iter().flatten() {
            let versions: Vec<&str> = lens.versions.iter().flat_map(Table::names).collect();
            out.push_str(&format!("lens {id}: {versions:?}\n"));
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn a_registry_has_three_parts() {
    check(
        r"
        library:
          deploy: {command: make deploy, timeout: 5m, tools: [make], locked: [timeout, tools]}
          ask: {approval: required, locked: ~, role: ~}
        workflows:
          nightly: [3, 1, 3]
          empty: []
        lenses:
          summary: {versions: {1: {template: '[[text]]', inputContract: {fields: {}}}}}
        ",
        expect![[r#"
            ok
            step ask: ["approval"] locked []
            step deploy: ["command", "timeout", "tools"] locked ["timeout", "tools"]
            workflow empty: {}
            workflow nightly: {1, 3}
            lens summary: ["1"]
        "#]],
    );
}

#[test]
fn a_part_that_is_not_at_hand_is_not_an_empty_one() {
    let (registry, _) = Registry::parse("lenses: {}\nworkflows: ~\n");
    let registry = registry.expect("a registry");
    assert!(registry.lenses.is_some_and(|lenses| lenses.is_empty()));
    assert!(registry.workflows.is_none());
    assert!(registry.library.is_none());
    let (registry, _) = Registry::parse("library: {}\nworkflows: {}\n");
    let registry = registry.expect("a registry");
    assert!(registry.lenses.is_none());
    assert!(registry.workflows.is_some() && registry.library.is_some());
}

#[test]
fn what_is_wrong_is_told_where_it_stands() {
    check(
        r"
        libary: {}
        library:
          one: {comand: x, timeout: soon, tools: x}
          two: make
          three: {command: x, timeoutMs: 5}
          four: {command: '${', retry: {attempts: 0}}
        workflows:
          a: 3
          b: [-1, x, 1.5]
        lenses:
          'bad id': {versions: {1: {template: x}}}
          c: {versions: {1: {template: '[[x:y]]'}}}
          d: {version: {}}
        ",
        expect![[r#"
            1:1 unknown_field libary: unknown field `libary` (did you mean `library`?)
            3:9 unknown_field library.one.comand: unknown field `comand` (did you mean `command`?)
            3:29 bad_duration library.one.timeout: `soon` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
            3:42 wrong_type library.one.tools: expected a list, found a string
            4:8 wrong_type library.two: expected a map, found a string
            5:23 unknown_field library.three.timeoutMs: unknown field `timeoutMs` (write `timeout: 90s`)
            6:20 bad_template library.four.command: unclosed `${` (write `$${` for a literal `${`)
            6:43 bad_value library.four.retry.attempts: 0 is not a whole number from 1 to 100
            8:6 wrong_type workflows.a: expected a list, found a number
            9:7 bad_value workflows.b[0]: -1 is not a whole number from 0 to 9007199254740991
            9:11 wrong_type workflows.b[1]: expected a number, found a string
            9:14 bad_value workflows.b[2]: 1.5 is not a whole number from 0 to 9007199254740991
            11:3 bad_name lenses: `bad id` is not an id (write `bad_id`)
            12:33 bad_template lenses.c.versions.1.template: unknown placeholder type `y` (the types are string, number, integer, boolean, url, json, array, any)
            13:6 missing_field lenses.d: `versions` is missing
            13:7 unknown_field lenses.d.version: unknown field `version` (did you mean `versions`?)
        "#]],
    );
}

#[test]
fn what_a_library_step_cannot_set() {
    check(
        r"
        library:
          one:
            id: x
            depends_on: [y]
            library_step: z
            phase: p
            command: go
        ",
        expect![[r#"
            3:5 bad_value library.one.id: a library step cannot set `id`
            4:5 bad_value library.one.depends_on: a library step cannot set `depends_on`
            5:5 bad_value library.one.library_step: a library step cannot set `library_step`
            6:5 bad_value library.one.phase: a library step cannot set `phase`
        "#]],
    );
}

#[test]
fn only_what_is_set_can_be_locked() {
    check(
        r"
        library:
          one:
            command: go
            timeout: ~
            locked: [command, timeout, comand, id, 5]
          two: {command: go, locked: command}
        ",
        expect![[r#"
            5:23 bad_value library.one.locked: `timeout` is locked but not set
            5:32 bad_value library.one.locked: `comand` is locked but not set (did you mean `command`?)
            5:40 bad_value library.one.locked: `id` is locked but not set
            5:44 wrong_type library.one.locked[4]: expected a string, found a number (quote it if it is meant as text)
            6:30 wrong_type library.two.locked: expected a list, found a string
        "#]],
    );
}

#[test]
fn a_registry_is_one_map() {
    check(
        "",
        expect![[r#"
        1:1 empty_document: the file contains no document
    "#]],
    );
    check(
        "[]",
        expect![[r#"
        1:1 wrong_type: expected a map, found a list
    "#]],
    );
    check(
        "library: []\nworkflows: []\nlenses: []\n",
        expect![[r#"
        1:10 wrong_type library: expected a map, found a list
        2:12 wrong_type workflows: expected a map, found a list
        3:9 wrong_type lenses: expected a map, found a list
    "#]],
    );
    check(
        "lenses: {}\nlenses: {}\n",
        expect![[r#"
        2:1 duplicate_key: the key `lenses` is set twice (it is first set on line 1)
    "#]],
    );
}

#[test]
fn workflows_may_be_known_from_elsewhere() {
    let (registry, _) = Registry::parse("{workflows: {filed: [4]}}");
    let registry = registry
        .expect("a registry")
        .with_workflow("filed", Some(5))
        .with_workflow("plain", None)
        .with_workflow("both", None)
        .with_workflow("both", Some(2));
    let mut out = String::new();
    for name in
        ["filed", "filed@4", "filed@5", "filed@6", "plain", "plain@1", "both", "both@2", "plane"]
    {
        let document = format!("name: a\nsteps: [{{id: a, workflow_ref: {name}}}]\n");
        let checked = crate::doc::check(document.as_bytes(), None, &registry);
        out.push_str(&format!("{name}:\n"));
        checked.diagnostics.iter().for_each(|diagnostic| tell(diagnostic, &mut out));
    }
    expect![[r#"
        filed:
        filed@4:
        filed@5:
        filed@6:
        2:31 unknown_workflow steps[0].workflow_ref: the registry has no version 6 of `filed`
        plain:
        plain@1:
        2:31 unknown_workflow steps[0].workflow_ref: the registry has no version 1 of `plain`
        both:
        both@2:
        plane:
        2:31 unknown_workflow steps[0].workflow_ref: the registry has no workflow `plane`
    "#]]
    .assert_eq(&out);
}
