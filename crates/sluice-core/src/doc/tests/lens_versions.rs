//! Which version of which lens a node applies.

use super::Script;
use expect_test::expect;

/// The version that a node pins, or the problem.
fn pinned(versions: &[&str], node: &str) -> String {
    let table: String = versions.iter().map(|name| format!("{name}: {{template: go}}, ")).collect();
    let text = format!(
        "name: g\nlenses: {{l: {{versions: {{{table}}}}}}}\nnodes: [{{id: a, lens_id: l{node}}}]\n"
    );
    let told = Script::lens(&text).show("steps.0.work.version_id").transcript();
    told.strip_prefix("ok\nsteps.0.work.version_id = ")
        .map_or(told.clone(), |v| v.trim().to_owned())
}

#[test]
fn the_head_is_the_highest_number_or_else_the_last() {
    for (versions, head) in [
        (&["1"][..], "1"),
        (&["1", "2", "10"], "10"),
        (&["10", "9"], "10"),
        (&["v2", "v10", "v9"], "v10"),
        (&["2", "v10", "9"], "v10"),
        (&["10", "draft"], "draft"),
        (&["draft", "10", "2"], "2"),
        (&["1.10", "1.9"], "1.9"),
        (&["18446744073709551616", "1"], "1"),
        (&["'+5'", "1"], "1"),
        (&["v", "1"], "1"),
        (&["1", "v1"], "v1"),
    ] {
        assert_eq!(pinned(versions, ""), format!("\"{head}\""), "{versions:?}");
        assert_eq!(pinned(versions, ", version_id: null"), format!("\"{head}\""), "{versions:?}");
    }
}

#[test]
fn a_node_may_name_its_version() {
    let versions = ["1", "2", "1.1", "1.10", "010", "draft", "'true'"];
    for (written, version) in [
        ("1", "1"),
        ("'1'", "1"),
        ("1.1", "1.1"),
        ("1.10", "1.10"),
        ("010", "010"),
        ("draft", "draft"),
    ] {
        let node = format!(", version_id: {written}");
        assert_eq!(pinned(&versions, &node), format!("\"{version}\""), "{written}");
        let node = format!(", versionId: {written}");
        assert_eq!(pinned(&versions, &node), format!("\"{version}\""), "{written}");
    }
    assert_eq!(pinned(&["&v 2", "1"], ", version_id: *v"), "\"2\"");
    let told = ["3", "drafft", "[1]", "true"]
        .map(|name| pinned(&versions, &format!(", version_id: {name}")));
    expect![[r#"
        3:41 unknown_lens nodes[0].version_id: lens `l` has no version `3`
        3:41 unknown_lens nodes[0].version_id: lens `l` has no version `drafft` (did you mean `draft`?)
        3:41 wrong_type nodes[0].version_id: expected a string, found a list
        3:41 wrong_type nodes[0].version_id: expected a string, found a boolean (quote it if it is meant as text)
    "#]].assert_eq(&told.concat());
}

#[test]
fn a_lens_has_versions() {
    expect![[r#"
        3:26 unknown_lens nodes[0].lens_id: lens `l` has no versions
    "#]]
    .assert_eq(&pinned(&[], ""));
    Script::lens("name: g\nlenses: {l: {}}\nnodes: [{id: a, lens_id: l}]\n").check(expect![[r#"
            2:13 missing_field lenses.l: `versions` is missing
        "#]]);
    Script::lens("name: g\nlenses: {l: {versions: {1: {}}}}\nnodes: [{id: a, lens_id: l}]\n")
        .check(expect![[r#"
            2:28 missing_field lenses.l.versions.1: `template` is missing
        "#]]);
    Script::lens(
        "name: g\nlenses: {l l: {versions: {1: {template: x}}}}\nnodes: [{id: a, lens_id: l l}]\n",
    )
    .check(expect![[r#"
        2:10 bad_name lenses: `l l` is not an id (write `l_l`)
    "#]]);
}

#[test]
fn a_lens_or_version_that_could_not_be_read_is_not_also_unknown() {
    let told = |lens: &str, node: &str| {
        let text =
            format!("name: g\nlenses: {{l: {lens}}}\nnodes: [{{id: a, lens_id: l{node}}}]\n");
        Script::lens(&text).registry("lenses: {}").transcript()
    };
    let told = [
        told("5", ""),
        told("{versions: {1: 5}}", ""),
        told("{versions: {1: 5, 2: {template: x}}}", ", version_id: 1"),
    ];
    expect![[r#"
        2:13 wrong_type lenses.l: expected a map, found a number
        2:28 wrong_type lenses.l.versions.1: expected a map, found a number
        2:28 wrong_type lenses.l.versions.1: expected a map, found a number
    "#]]
    .assert_eq(&told.concat());
}

const ELSEWHERE: &str = r"
    lenses:
      summary:
        versions:
          1: {template: one}
          2: {template: two, kind: pdf}
      inline: {versions: {1: {template: far}}}
    ";

#[test]
fn a_lens_may_stand_in_the_registry() {
    Script::lens(
        r"
        name: g
        lenses: {inline: {versions: {1: {template: near}}}}
        nodes: [{id: a, lens_id: summary}, {id: b, lens_id: summary, version_id: 1}, {id: c, lens_id: inline}]
        ",
    )
    .registry(ELSEWHERE)
    .show("steps.0.work")
    .show("steps.1.work")
    .show("steps.2.work")
    .check(expect![[r#"
        ok
        steps.0.work = {"kind":"lens","lens_id":"summary","lens_kind":"pdf","template":"two","version_id":"2"}
        steps.1.work = {"kind":"lens","lens_id":"summary","lens_kind":"text","template":"one","version_id":"1"}
        steps.2.work = {"kind":"lens","lens_id":"inline","lens_kind":"text","template":"near","version_id":"1"}
    "#]]);
}

#[test]
fn with_a_registry_an_unknown_lens_is_an_error_and_without_one_a_warning() {
    let document = r"
        name: g
        lenses: {local: {versions: {1: {template: near}}}}
        nodes: [{id: a, lens_id: sumary}, {id: b, lens_id: locl}, {id: c, lens_id: summary, version_id: 3}]
        ";
    Script::lens(document).registry(ELSEWHERE).check(expect![[r#"
        3:26 unknown_lens nodes[0].lens_id: there is no lens `sumary` (did you mean `summary`?)
        3:52 unknown_lens nodes[1].lens_id: there is no lens `locl` (did you mean `local`?)
        3:97 unknown_lens nodes[2].version_id: lens `summary` has no version `3`
    "#]]);
    Script::lens(document).show("steps.0.work").check(expect![[r#"
        ~3:26 unresolved_reference nodes[0].lens_id: lens `sumary` cannot be checked: no registry is loaded
        ~3:52 unresolved_reference nodes[1].lens_id: lens `locl` cannot be checked: no registry is loaded (did you mean `local`?)
        ~3:76 unresolved_reference nodes[2].lens_id: lens `summary` cannot be checked: no registry is loaded
        ok
        steps.0.work = {"kind":"unresolved","what":"lens","name":"sumary"}
    "#]]);
    Script::lens(document).registry("library: {}").check(expect![[r#"
        ~3:26 unresolved_reference nodes[0].lens_id: lens `sumary` cannot be checked: no registry is loaded
        ~3:52 unresolved_reference nodes[1].lens_id: lens `locl` cannot be checked: no registry is loaded (did you mean `local`?)
        ~3:76 unresolved_reference nodes[2].lens_id: lens `summary` cannot be checked: no registry is loaded
        ok
    "#]]);
}

#[test]
fn what_a_lens_of_the_registry_needs_is_checked_too() {
    Script::lens(
        r"
        name: g
        nodes: [{id: a, lens_id: x}, {id: b, lens_id: x}]
        edges: [{source_node_id: a, target_node_id: b}]
        args: {}
        ",
    )
    .registry("lenses: {x: {versions: {1: {template: '[[t]]', kind: routing}}}}")
    .check(expect![[r#"
        2:14 missing_binding nodes[0]: nothing binds `t` of node `a` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
        2:14 routing_insufficient_edges nodes[0]: routing node `a` needs at least two outgoing edges; it has 1
        2:35 missing_binding nodes[1]: nothing binds `t` of node `b` (wire an edge to it, set it in `param_overrides` or declare it under `args`)
        2:35 routing_insufficient_edges nodes[1]: routing node `b` needs at least two outgoing edges; it has 0
        3:26 routing_missing_equals edges[0]: an edge that leaves routing node `a` needs an `equals` condition
    "#]]);
}

#[test]
fn nodes_cannot_multiply_a_lens_without_bound() {
    let text = |nodes: usize, bytes: usize| {
        let nodes: String = (0..nodes).map(|n| format!("{{id: n{n}, lens_id: l}}, ")).collect();
        let template = "x".repeat(bytes);
        format!(
            "name: g\nlenses: {{l: {{versions: {{1: {{template: {template}}}}}}}}}\nnodes: [{nodes}]\n"
        )
    };
    let half = crate::limits::COPIED_BYTES_MAX / 1024;
    assert_eq!(Script::lens(&text(1024, half)).transcript(), "ok\n");
    let told = Script::lens(&text(1025, half)).transcript();
    expect![[r#"
        3:24504 too_many_nodes nodes[1024]: the nodes repeat over 8388608 bytes of their lenses (each node holds a copy of its lens; shorten the lens or split the workflow)
    "#]].assert_eq(&told);
    // Parts take more space than their text.
    let parts = |version: &str, nodes: usize| {
        let nodes: String = (0..nodes).map(|n| format!("{{id: n{n}, lens_id: l}}, ")).collect();
        let text =
            format!("name: g\nlenses: {{l: {{versions: {{1: {version}}}}}}}\nnodes: [{nodes}]\n");
        Script::lens(&text).transcript()
    };
    let places = format!("{{template: '{}'}}", "[[a]]".repeat(1000));
    let typed = format!("{{template: '{}'}}", "[[a:any]]".repeat(500));
    let fields: String = (0..1000).map(|n| format!("f{n}: {{required: false}}, ")).collect();
    let fields = format!("{{template: x, input_contract: {{fields: {{{fields}}}}}}}");
    let values = "1,".repeat(1000);
    let values =
        format!("{{template: x, output_contract: {{schema: {{f: {{enum: [{values}]}}}}}}}}");
    for version in [places, typed, fields, values] {
        assert_eq!(parts(&version, 25), "ok\n");
        assert!(parts(&version, 33).contains("too_many_nodes"), "{}", &version[..40]);
    }
}
