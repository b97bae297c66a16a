//! `sluice plan`: golden plans of every example, and what refused documents get.

use crate::session::{Session, examples, output, root};
use expect_test::{expect, expect_file};
use serde_json::Value;
use sluice_core::canonical;
use sluice_core::doc::{self, Format, Registry};
use sluice_core::plan::Plan;

#[test]
fn the_examples_plans_are_golden() {
    for path in examples() {
        let name = path.trim_start_matches("examples/").split('.').next().unwrap();
        for (format, ending) in
            [("text", "txt"), ("mermaid", "mmd"), ("dot", "dot"), ("json", "json")]
        {
            let args = ["plan", &path, "--registry", "examples/registry.yaml", "--format", format];
            let output = output(&root(), &args, b"");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{path}");
            assert_eq!(output.status.code(), Some(0), "{path}");
            let golden = format!("../golden/{name}.{ending}");
            let mut shown = String::from_utf8(output.stdout).unwrap();
            if format == "json" {
                shown = sorted(&shown);
            }
            expect_file![golden].assert_eq(&shown);
        }
    }
}

/// The same JSON with sorted keys: their order means nothing and may change.
fn sorted(json: &str) -> String {
    let mut value: Value = serde_json::from_str(json).unwrap();
    value.sort_all_objects();
    format!("{value:#}\n")
}

#[test]
fn the_examples_plans_are_read_back_from_their_json() {
    let file = std::fs::read_to_string(root().join("examples/registry.yaml")).unwrap();
    let registry = Registry::parse(&file).0.unwrap();
    for path in examples() {
        let bytes = std::fs::read(root().join(&path)).unwrap();
        for registry in [&registry, &Registry::default()] {
            let plan = doc::check(&bytes, Format::of_file(&path), registry).plan.unwrap();
            let json = serde_json::to_string(&plan).unwrap();
            let read = Plan::from_json(&json).unwrap();
            assert_eq!(read, plan, "{path}");
            assert_eq!(read.hash(), plan.hash(), "{path}");
            assert_eq!(serde_json::to_string(&read).unwrap(), json, "{path}");
            assert_eq!(Plan::from_json(&canonical::to_string(&plan)), Ok(plan), "{path}");
        }
    }
}

#[test]
fn golden_plans_are_read_and_keep_their_hash() {
    for path in examples() {
        let name = path.trim_start_matches("examples/").split('.').next().unwrap();
        let golden = root().join(format!("crates/sluice/tests/golden/{name}.json"));
        let golden: Value =
            serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
        let plan = Plan::from_json(&golden["plan"].to_string()).unwrap();
        assert_eq!(golden["hash"], plan.hash(), "{name}");
        assert_eq!(serde_json::to_value(&plan).unwrap(), golden["plan"], "{name}");
    }
}

#[test]
fn json_is_a_short_word_for_the_json_format() {
    let of = |args: &[&str]| output(&root(), args, b"").stdout;
    let path = "examples/team.lobsterx.yaml";
    assert_eq!(of(&["plan", path, "--json"]), of(&["plan", path, "--format", "json"]));
}

#[test]
fn warnings_do_not_hide_a_plan() {
    let session = Session::new().file(
        "a.lobsterx.yaml",
        "name: a\nroles: {writer: {}}\nsteps:\n  - {id: a, command: x, workflow_ref: }\n",
    );
    expect![[r#"
        stderr:
        warning[unused_role]: no step uses the role `writer`
         --> a.lobsterx.yaml:2:9
          |
        2 | roles: {writer: {}}
          |         ^^^^^^ roles
          |
          = help: use the role, or remove it
        stdout:
        a (lobsterx, plan 0fb673e843d6)
        1 step in 1 wave, 0 dependencies, at most 64 at once

        wave 1
          a  command
        exit 0
    "#]]
    .assert_eq(&session.run(&["plan", "a.lobsterx.yaml"]));
}

#[test]
fn a_refused_document_has_no_plan() {
    let session = Session::new().file("a.lobsterx.yaml", "name: a\nsteps:\n  - {id: a}\n");
    expect![[r#"
        stderr:
        error[missing_command]: step `a` has no command
         --> a.lobsterx.yaml:3:10
          |
        3 |   - {id: a}
          |          ^ steps[0]
          |
          = help: add `command`, or `approval`, `workflow_ref` or `library_step`
        exit 2
    "#]]
    .assert_eq(&session.run(&["plan", "a.lobsterx.yaml"]));
    expect![[r#"
        stdout:
        {"file":"a.lobsterx.yaml","ok":false,"errors":[{"code":"missing_command","message":"step `a` has no command","path":"steps[0]","line":3,"column":10,"hint":"add `command`, or `approval`, `workflow_ref` or `library_step`"}],"warnings":[]}
        exit 2
    "#]].assert_eq(&session.run(&["plan", "a.lobsterx.yaml", "--json"]));
    expect![[r#"
        stderr:
        error[document_unreadable]: cannot read `gone.lobsterx.yaml`
         |
         = note: caused by: No such file or directory (os error 2)
         = help: check the path
        exit 2
    "#]]
    .assert_eq(&session.run(&["plan", "gone.lobsterx.yaml", "--format", "dot"]));
}

#[test]
fn hostile_text_stays_inside_its_label() {
    let label = r#"\"] --> x\n<script>alert(1)</script> %%{init}%% \\N ]; y [label=\"z"#;
    let document = format!(
        r#"{{"name": "hostile", "lenses": {{"l": {{"versions": {{"1": {{"template": "[[a]]"}}}}}}}},
        "nodes": [{{"id": "a", "lens_id": "l", "label": "{label}"}}, {{"id": "b", "lens_id": "l"}}],
        "edges": [{{"id": "e", "source_node_id": "a", "target_node_id": "b", "source_output_key": "output",
          "target_param_label": "a", "condition": {{"type": "equals", "value": "{label}"}}}}]}}"#
    );
    let session = Session::new().file("a.lens.json", document);
    expect![[r#"
        stdout:
        hostile (lens, plan 00519561d480)
        2 steps in 2 waves, 1 dependency, at most 64 at once

        wave 1
          a  text lens l@1

        wave 2
          b  text lens l@1  after a
             edge e from a.output: equals "\"] --> x\n<script>alert(1)</script> %%{init}%% \\N …
        exit 0
    "#]]
    .assert_eq(&session.run(&["plan", "a.lens.json"]));
    expect![[r#"
        stdout:
        flowchart TD
          s0("a<br/>#34;#93; --#62; x#9226;#60;script#62;alert#40;1#41;#60;#47;script#62; #37;#37;#123;init#125;#37;#37; #92;N #93;#59; y #91;label…<br/>text lens l#64;1")
          s1("b<br/>text lens l#64;1")
          s0 -->|"equals #34;#92;#34;#93; --#62; x#92;n#60;script#62;alert#40;1#41;#60;#47;script#62; #37;#37;#123;init#125;#37;#37; #92;#92;N …"| s1
        exit 0
    "#]].assert_eq(&session.run(&["plan", "a.lens.json", "--format", "mermaid"]));
    expect![[r#"
        stdout:
        digraph plan {
          rankdir=TB;
          node [fontname="sans-serif"];
          s0 [shape=box, style=rounded, label="a\n\"] --> x␊<script>alert(1)</script> %%{init}%% \\N ]; y [label…\ntext lens l@1"];
          s1 [shape=box, style=rounded, label="b\ntext lens l@1"];
          s0 -> s1 [label="equals \"\\\"] --> x\\n<script>alert(1)</script> %%{init}%% \\\\N …"];
        }
        exit 0
    "#]].assert_eq(&session.run(&["plan", "a.lens.json", "--format", "dot"]));
}
