//! Nodes and edges: their ids, their ends, their order.

use super::Script;
use expect_test::expect;

/// A lens `l` without placeholders and these nodes and edges.
fn graph(rest: &str) -> Script {
    let rest = super::dedent(rest);
    Script::lens(&format!("name: g\nlenses: {{l: {{versions: {{1: {{template: go}}}}}}}}\n{rest}"))
}

#[test]
fn the_smallest_document_and_its_defaults() {
    graph(
        r"
        nodes:
          - {id: a, lens_id: l}
        ",
    )
    .order()
    .show("steps.0")
    .show("family")
    .show("max_parallel")
    .show("scheduling")
    .show("args")
    .show("timeout_ms")
    .check(expect![[r#"
        ok
        a <-
        wave: a
        steps.0 = {"id":"a","idempotent":true,"moderation":"off","on_parent_failure":"skip","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"timeout_ms":60000,"work":{"kind":"lens","lens_id":"l","lens_kind":"text","template":"go","version_id":"1"}}
        family = "lens"
        max_parallel = 64
        scheduling = "eager"
        args = -
        timeout_ms = -
    "#]]);
}

#[test]
fn node_ids_are_unique_and_named_by_rule() {
    graph(
        "
        nodes:
          - {id: a, lens_id: l}
          - {id: b, lens_id: l}
          - {id: a, lens_id: l}
          - {id: _x, lens_id: l}
          - {id: 'a b', lens_id: l}
          - {id: '', lens_id: l}
          - {id: \u{430}, lens_id: l}
          - {id: 3F2504E0-4F89-11D3:x.y_z, lens_id: l}
        ",
    )
    .check(expect![[r#"
        6:10 duplicate_node_id nodes[2].id: a node called `a` exists already
        7:10 bad_name nodes[3].id: `_x` is not an id (write `x`)
        8:10 bad_name nodes[4].id: `a b` is not an id (write `a_b`)
        9:10 bad_name nodes[5].id: `` is not an id (names are letters, digits and `_ . : -`, a letter or digit first)
        10:10 bad_name nodes[6].id: `а` has a character outside ASCII: U+0430 (names are letters, digits and `_ . : -`, a letter or digit first)
    "#]]);
}

#[test]
fn an_id_has_at_most_128_characters() {
    let with = |id: String| graph(&format!("nodes: [{{id: {id}, lens_id: l}}]")).transcript();
    assert_eq!(with("a".repeat(128)), "ok\n");
    expect![[r#"
        3:14 bad_name nodes[0].id: the name has 129 characters; the limit is 128
    "#]]
    .assert_eq(&with("a".repeat(129)));
}

#[test]
fn both_ends_of_an_edge_exist() {
    graph(
        r"
        nodes:
          - {id: gather, lens_id: l}
          - {id: report, lens_id: l}
        edges:
          - {id: e1, source_node_id: gathre, target_node_id: report}
          - {id: e2, source_node_id: gather, target_node_id: zzz}
          - {id: e3, source_node_id: x, target_node_id: y}
          - {source_node_id: gather}
          - {target_node_id: report}
        ",
    )
    .check(expect![[r#"
        7:30 orphan_source edges[0].source_node_id: there is no node `gathre` (did you mean `gather`?)
        8:54 orphan_target edges[1].target_node_id: there is no node `zzz`
        9:30 orphan_source edges[2].source_node_id: there is no node `x`
        9:49 orphan_target edges[2].target_node_id: there is no node `y`
        10:5 missing_field edges[3]: `target_node_id` is missing
        11:5 missing_field edges[4]: `source_node_id` is missing
    "#]]);
}

#[test]
fn an_edge_to_its_own_source_is_no_cycle_besides() {
    graph(
        r"
        nodes: [{id: a, lens_id: l}]
        edges: [{id: e, source_node_id: a, target_node_id: a}]
        ",
    )
    .check(expect![[r#"
        4:52 self_edge edges[0]: the edge leads from `a` to itself
    "#]]);
}

#[test]
fn a_cycle_is_told_with_its_nodes_in_order() {
    graph(
        r"
        nodes: [{id: d, lens_id: l}, {id: a, lens_id: l}, {id: b, lens_id: l}, {id: c, lens_id: l}]
        edges:
          - {source_node_id: a, target_node_id: b}
          - {source_node_id: b, target_node_id: c}
          - {source_node_id: c, target_node_id: a}
          - {source_node_id: c, target_node_id: d}
        ",
    )
    .check(expect![[r#"
        3:77 cycle_detected nodes[3]: the dependencies form a cycle: c -> b -> a -> c (each step in the list waits for the next one; remove one of the dependencies)
    "#]]);
}

#[test]
fn edges_keep_their_order_and_order_the_nodes() {
    graph(
        r"
        nodes: [{id: z, lens_id: l}, {id: b, lens_id: l}, {id: a, lens_id: l}]
        edges:
          - {id: second, source_node_id: b, target_node_id: z, target_param_label: In Put}
          - {id: first, source_node_id: a, target_node_id: z, source_output_key: data.0.x, merge_strategy: concat}
          - {id: third, source_node_id: b, target_node_id: z, source_output_key: ''}
          - {id: c, source_node_id: b, target_node_id: a}
        ",
    )
    .order()
    .show("steps.0.edges")
    .check(expect![[r#"
        ok
        z <- b a
        b <-
        a <- b
        wave: b
        wave: a
        wave: z
        steps.0.edges = [{"id":"second","source":"b","source_output_key":"output","target_param_label":"In Put"},{"id":"first","merge_strategy":"concat","source":"a","source_output_key":"data.0.x","target_param_label":""},{"id":"third","source":"b","source_output_key":"output","target_param_label":""}]
    "#]]);
}

#[test]
fn an_edge_without_id_gets_one_that_nobody_wrote() {
    graph(
        r"
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}]
        edges:
          - {source_node_id: a, target_node_id: b}
          - {id: edge_0, source_node_id: a, target_node_id: b}
          - {source_node_id: a, target_node_id: b}
          - {id: edge_0_, source_node_id: a, target_node_id: b}
        ",
    )
    .show("steps.1.edges.0.id")
    .show("steps.1.edges.1.id")
    .show("steps.1.edges.2.id")
    .show("steps.1.edges.3.id")
    .check(expect![[r#"
        ok
        steps.1.edges.0.id = "edge_0__"
        steps.1.edges.1.id = "edge_0"
        steps.1.edges.2.id = "edge_2"
        steps.1.edges.3.id = "edge_0_"
    "#]]);
}

#[test]
fn edge_ids_are_unique_and_any_printable_text() {
    graph(
        r#"
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}]
        edges:
          - {id: e, source_node_id: a, target_node_id: b}
          - {id: '-', source_node_id: a, target_node_id: b}
          - {id: 'xy-edge__a output-b Füße → [[text]]', source_node_id: a, target_node_id: b}
        "#,
    )
    .show("steps.1.edges.2.id")
    .check(expect![[r#"
        ok
        steps.1.edges.2.id = "xy-edge__a output-b Füße → [[text]]"
    "#]]);
    let long = |count: usize| {
        let id = "é".repeat(count);
        let edge = format!("{{id: {id}, source_node_id: a, target_node_id: b}}");
        graph(&format!("nodes: [{{id: a, lens_id: l}}, {{id: b, lens_id: l}}]\nedges: [{edge}]"))
    };
    long(200).check(expect![[r#"
        ok
    "#]]);
    long(201).check(expect![[r#"
        4:14 bad_name edges[0].id: the id of an edge has 201 characters; the limit is 200
    "#]]);
    graph(
        r#"
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}]
        edges:
          - {id: e, source_node_id: a, target_node_id: b}
          - {id: ' ', source_node_id: a, target_node_id: b}
          - {id: e, source_node_id: a, target_node_id: b}
          - {id: "line\nbreak", source_node_id: a, target_node_id: b}
          - {id: "re\u202Eversed", source_node_id: a, target_node_id: b}
        "#,
    )
    .check(expect![[r#"
        6:10 bad_name edges[1].id: the id of an edge is empty
        7:10 duplicate_edge_id edges[2].id: an edge called `e` exists already
        8:10 bad_name edges[3].id: the id of an edge has a character that cannot be printed: U+000A
        9:10 bad_name edges[4].id: the id of an edge has a character that cannot be printed: U+202E
    "#]]);
}

#[test]
fn merged_sources_need_labels_of_their_own() {
    let merged = |strategy: &str, own: &str| {
        graph(&format!(
            "
            nodes:
              - {{id: a, lens_id: l, label: Same}}
              - {{id: b, lens_id: l, label: Same}}
              - {{id: c, lens_id: l}}
              - {{id: t, lens_id: l, config: {{{own}}}}}
            edges:
              - {{id: e1, source_node_id: a, target_node_id: t, target_param_label: In Put{strategy}}}
              - {{id: e2, source_node_id: c, target_node_id: t, target_param_label: in_put}}
              - {{id: e3, source_node_id: b, target_node_id: t, target_param_label: in_put}}
              - {{id: e4, source_node_id: b, target_node_id: t, target_param_label: other}}
            "
        ))
        .transcript()
    };
    let told = "~11:10 duplicate_merge_label edges[2]: two sources merged into one object are labelled `Same` (the later value replaces the earlier one)\nok\n";
    assert_eq!(merged(", merge_strategy: json_object", ""), told);
    assert_eq!(merged("", "merge: json_object"), told);
    assert_eq!(merged(", merge_strategy: array", "merge: json_object"), "ok\n");
    assert_eq!(merged("", ""), "ok\n");
}

#[test]
fn a_node_without_label_is_merged_under_its_id() {
    graph(
        r"
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l, label: a}, {id: t, lens_id: l}]
        edges:
          - {source_node_id: a, target_node_id: t, target_param_label: x, merge_strategy: json_object}
          - {source_node_id: b, target_node_id: t, target_param_label: x}
        ",
    )
    .check(expect![[r#"
        ~6:22 duplicate_merge_label edges[1]: two sources merged into one object are labelled `a` (the later value replaces the earlier one)
        ok
    "#]]);
}

#[test]
fn a_graph_has_at_most_ten_thousand_nodes() {
    let nodes = |count: usize| {
        let nodes: String = (0..count).map(|n| format!("- {{id: n{n}, lens_id: l}}\n")).collect();
        graph(&format!("nodes:\n{nodes}")).transcript()
    };
    assert_eq!(nodes(10_000), "ok\n");
    expect![[r#"
        4:3 too_many_steps nodes: there are 10001 nodes; the limit is 10000
    "#]]
    .assert_eq(&nodes(10_001));
}

#[test]
fn a_graph_has_at_most_fifty_thousand_edges() {
    let edges = |count: usize| {
        let more = "*e,".repeat(count - 1);
        let first = "&e {source_node_id: a, target_node_id: b}";
        let nodes = "nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}]";
        graph(&format!("{nodes}\nedges: [{first},{more}]")).transcript()
    };
    assert_eq!(edges(50_000), "ok\n");
    expect![[r#"
        4:8 too_many_steps edges: there are 50001 edges; the limit is 50000
    "#]]
    .assert_eq(&edges(50_001));
}

#[test]
fn a_graph_has_a_node() {
    graph("nodes: []").check(expect![[r#"
        3:8 no_steps nodes: there are no nodes
    "#]]);
    graph("nodes: ~\nedges: []").check(expect![[r#"
        1:1 missing_field: `nodes` is missing
    "#]]);
    graph("nodes: {a: 1}").check(expect![[r#"
        3:8 wrong_type nodes: expected a list, found a map
    "#]]);
    graph("nodes: [5]").check(expect![[r#"
        3:9 wrong_type nodes[0]: expected a map, found a number
    "#]]);
}

#[test]
fn a_node_or_edge_that_could_not_be_read_keeps_its_place() {
    graph(
        r"
        nodes: [5, {id: a, lens_id: l}, {id: a, lens_id: l}]
        edges: [~, {source_node_id: x, target_node_id: a}]
        ",
    )
    .check(expect![[r#"
        3:9 wrong_type nodes[0]: expected a map, found a number
        3:38 duplicate_node_id nodes[2].id: a node called `a` exists already
        4:9 wrong_type edges[0]: expected a map, found nothing
        4:29 orphan_source edges[1].source_node_id: there is no node `x`
    "#]]);
}

#[test]
fn a_name_is_any_short_text() {
    let named = |name: &str| {
        Script::lens(&format!("name: {name}\nnodes: [{{id: a, lens_id: l}}]\n")).transcript()
    };
    let fine = "~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded\nok\n";
    assert_eq!(named("Größe: no").lines().count(), 1, "a colon needs quotes");
    assert_eq!(named("'Größe & Co'"), fine);
    assert_eq!(named(&"ä".repeat(128)), fine);
    let refused =
        [named(&"ä".repeat(129)), named("' '"), named("\"a\\tb\""), named("5"), named("~")];
    expect![[r#"
        1:7 bad_name name: the name has over 128 characters
        ~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded
        1:7 bad_name name: the name is empty
        ~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded
        1:7 bad_name name: the name contains a control character
        ~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded
        1:7 wrong_type name: expected a string, found a number (quote it if it is meant as text)
        ~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded
        1:1 missing_field: `name` is missing
        ~2:26 unresolved_reference nodes[0].lens_id: lens `l` cannot be checked: no registry is loaded
    "#]].assert_eq(&refused.concat());
}
