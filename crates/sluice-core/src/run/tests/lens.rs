//! Lens graphs: isolation, edges, routes, merges.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::{Auth, ProviderError};
use expect_test::expect;
use serde_json::json;

/// Nodes by id with their config, and edges `a>b` into `x`.
fn graph(nodes: &[(&str, &str)], edges: &[&str]) -> Script {
    let mut text = String::from("nodes:\n");
    for (id, config) in nodes {
        text.push_str(&format!("  - {{id: {id}, lens_id: l, config: {{{config}}}}}\n"));
    }
    text.push_str("edges:\n");
    for (at, edge) in edges.iter().enumerate() {
        let (ends, more) = edge.split_once(' ').unwrap_or((edge, ""));
        let (from, to) = ends.split_once('>').expect("an edge has two ends");
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        text.push_str(&format!(
            "  - {{id: e{at}, source_node_id: {from}, target_node_id: {to}, target_param_label: x{more}}}\n"
        ));
    }
    Script::lens(&text)
}

#[test]
fn a_failed_node_leaves_its_siblings_alone() {
    check(
        graph(
            &[
                ("a", ""),
                ("b", ""),
                ("skips", ""),
                ("skips_too", ""),
                ("fails", "on_parent_failure: propagate"),
                ("runs", "on_parent_failure: substitute_default"),
                ("fine", ""),
            ],
            &["a>skips", "skips>skips_too", "a>fails", "a>runs", "b>fine"],
        )
        .fail("a", Auth)
        .show_prompt("runs")
        .text("b", "B")
        .text("runs", "R")
        .text("fine", "F"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.failed fails upstream_failure: upstream_failure
            8 node.queued runs
            9 node.skipped skips parent_failure: `a` failed
            10 node.skipped skips_too parent_failure: `skips` was skipped because of a failure
            11 node.provenance runs x <- a output (substitute_default)
            12 node.started runs attempt=1 dispatch=1
            runs is given {"x":""} and ""
            13 node.completed b {"output":"B"}
            14 node.queued fine
            15 node.provenance fine x <- b output
            16 node.started fine attempt=1 dispatch=1
            17 node.completed runs {"output":"R"}
            18 node.completed fine {"output":"F"}
            19 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_run_whose_leaves_are_all_done_or_skipped_is_completed() {
    check(
        graph(&[("a", ""), ("b", ""), ("c", "")], &["a>b"]).fail("a", Auth).text("c", "C"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued c
            4 node.started a attempt=1 dispatch=1
            5 node.started c attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.skipped b parent_failure: `a` failed
            8 node.completed c {"output":"C"}
            9 run.completed {"c":"C"}
        "#]],
    );
}

#[test]
fn a_failed_leaf_fails_the_run() {
    check(
        graph(&[("a", ""), ("b", "")], &[]).fail("a", Auth).text("b", "B"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.completed b {"output":"B"}
            8 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_node_that_says_halt_halts() {
    check(
        graph(&[("a", "on_failure: halt"), ("b", ""), ("c", ""), ("d", "")], &["a>c", "b>d"])
            .fail("a", Auth)
            .text("b", "B"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.skipped c parent_failure: `a` failed
            8 node.cancelled d run_halted: the run was halted by `a`
            9 node.completed b {"output":"B"}
            10 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_node_that_skips_on_failure_counts_as_absent() {
    check(
        graph(
            &[("a", "on_failure: skip"), ("b", ""), ("join", ""), ("only", "")],
            &["a>join", "b>join", "a>only"],
        )
        .fail("a", Auth)
        .text("b", "B")
        .show_prompt("join")
        .text("join", "J"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.skipped a failure: it broke [auth]
            7 node.skipped only dependencies_skipped: everything it depends on was skipped
            8 node.completed b {"output":"B"}
            9 node.queued join
            10 node.provenance join x <- b output (last_write_wins)
            11 node.started join attempt=1 dispatch=1
            join is given {"x":"B"} and "B"
            12 node.completed join {"output":"J"}
            13 run.completed {"join":"J"}
        "#]],
    );
}

#[test]
fn a_node_that_skips_on_failure_halts_nothing_when_its_parent_fails() {
    check(
        graph(
            &[("a", ""), ("b", "on_failure: skip, on_parent_failure: propagate"), ("c", "")],
            &["a>b"],
        )
        .fail("a", Auth)
        .text("c", "C"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued c
            4 node.started a attempt=1 dispatch=1
            5 node.started c attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.failed b upstream_failure: upstream_failure
            8 node.completed c {"output":"C"}
            9 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_router_chooses_by_what_it_answers() {
    check(
        Script::lens(
            "
            lenses:
              r: {versions: {1: {template: choose, kind: routing}}}
              l: {versions: {1: {template: '[[x!]]'}}}
            nodes: [{id: r, lens_id: r}, {id: left, lens_id: l}, {id: right, lens_id: l}, {id: join, lens_id: l}]
            edges:
              - {id: e1, source_node_id: r, target_node_id: left, target_param_label: x, condition: {type: equals, value: left}}
              - {id: e2, source_node_id: r, target_node_id: right, target_param_label: x, condition: {type: equals, value: right}}
              - {id: e3, source_node_id: left, target_node_id: join, target_param_label: x}
              - {id: e4, source_node_id: right, target_node_id: join, target_param_label: x}
            ",
        )
        .text("r", "right")
        .text("right", "R")
        .show_prompt("join")
        .text("join", "J"),
        expect![[r#"
            1 run.started
            2 node.queued r
            3 node.started r attempt=1 dispatch=1
            4 node.completed r {"output":"right"}
            5 node.skipped left condition_false: its condition is false
            6 node.queued right
            7 node.provenance right x <- r output
            8 node.started right attempt=1 dispatch=1
            9 node.completed right {"output":"R"}
            10 node.queued join
            11 node.provenance join x <- right output (last_write_wins)
            12 node.started join attempt=1 dispatch=1
            join is given {"x":"R"} and "R"
            13 node.completed join {"output":"J"}
            14 run.completed {"join":"J"}
        "#]],
    );
}

#[test]
fn a_node_runs_if_one_of_its_edges_is_satisfied() {
    let edges = [
        "a>c condition: {type: truthy}, source_output_key: yes",
        "b>c condition: {type: expression, expr: 'value == \"go\"'}",
    ];
    check(
        graph(&[("a", ""), ("b", ""), ("c", "")], &edges)
            .complete("a", json!({"yes": false}))
            .text("b", "go")
            .show_prompt("c"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed a {"yes":false,"output":"{\"yes\":false}"}
            7 node.completed b {"output":"go"}
            8 node.queued c
            9 node.provenance c x <- b output (last_write_wins)
            10 node.started c attempt=1 dispatch=1
            c is given {"x":"go"} and "go"
        "#]],
    );
    check(
        graph(&[("a", ""), ("b", ""), ("c", "")], &edges)
            .complete("a", json!({"yes": false}))
            .text("b", "stop"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed a {"yes":false,"output":"{\"yes\":false}"}
            7 node.completed b {"output":"stop"}
            8 node.skipped c condition_false: its condition is false
            9 run.completed {}
        "#]],
    );
}

#[test]
fn values_that_meet_are_merged_in_the_order_of_the_edges() {
    for strategy in ["last_write_wins", "concat", "array", "json_object"] {
        let nodes = [
            ("a", ""),
            ("b", ""),
            ("gone", ""),
            ("join", &*format!("merge: {strategy}, on_parent_failure: substitute_default")),
        ];
        let run = graph(&nodes, &["b>join", "a>join", "gone>join"])
            .text("a", "A")
            .text("b", "B")
            .fail("gone", ProviderError)
            .run();
        let prepared = run.steps[3].prepared.clone().expect("it was prepared");
        let told = format!("{} {:?}", prepared.inputs["x"], prepared.prompt);
        let expected = match strategy {
            "concat" => r#""B\n\nA" "B\n\nA""#,
            "array" => r#"["B","A"] "[\"B\",\"A\"]""#,
            "json_object" => r#"{"b":"B","a":"A"} "{\"b\":\"B\",\"a\":\"A\"}""#,
            _ => r#""A" "A""#,
        };
        assert_eq!(told, expected, "{strategy}");
    }
}

#[test]
fn what_is_merged_or_substituted_is_flagged_in_its_provenance() {
    let join = ("join", "merge: array, on_parent_failure: substitute_default");
    check(
        graph(&[("a", ""), ("b", ""), join], &["a>join", "b>join"])
            .fail("a", Auth)
            .fail("b", Auth)
            .show_prompt("join"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.failed b auth: it broke
            8 node.queued join
            9 node.provenance join x <- a output (substitute_default)
            10 node.provenance join x <- b output (substitute_default)
            11 node.started join attempt=1 dispatch=1
            join is given {"x":""} and ""
        "#]],
    );
    check(
        graph(
            &[
                ("a", ""),
                ("b", ""),
                ("join", "merge: concat, on_parent_failure: substitute_default"),
            ],
            &["a>join", "b>join source_output_key: n"],
        )
        .fail("a", Auth)
        .complete("b", json!({"n": 5})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.completed b {"n":5,"output":"{\"n\":5}"}
            8 node.queued join
            9 node.provenance join x <- b n (concat)
            10 node.started join attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn root_inputs_are_seen_by_all_and_wires_override_them() {
    check(
        graph(&[("a", ""), ("b", "param_overrides: {x: mine}"), ("c", "")], &["a>c"])
            .arg("x", "root")
            .show_prompt("a")
            .show_prompt("b")
            .text("a", "wired")
            .show_prompt("c"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            a is given {"x":"root"} and "root"
            b is given {"x":"mine"} and "mine"
            6 node.completed a {"output":"wired"}
            7 node.queued c
            8 node.provenance c x <- a output
            9 node.started c attempt=1 dispatch=1
            c is given {"x":"wired"} and "wired"
        "#]],
    );
}

#[test]
fn waves_hold_for_nodes_too() {
    check(
        Script::lens(
            "
            scheduling: waves
            nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}, {id: c, lens_id: l}]
            edges: [{id: e, source_node_id: a, target_node_id: c, target_param_label: x}]
            ",
        )
        .text("a", "A")
        .show_due()
        .text("b", "B")
        .show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed a {"output":"A"}
            due: b dispatch=1 key=f472e5
            7 node.completed b {"output":"B"}
            8 node.queued c
            9 node.provenance c x <- a output
            10 node.started c attempt=1 dispatch=1
            due: c dispatch=1 key=c2f593
        "#]],
    );
}

#[test]
fn a_cancelled_lens_run_is_cancelled() {
    check(
        graph(&[("a", ""), ("b", "")], &["a>b"]).cancel().text("a", "A"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        4 run.status.changed cancelling (not needed) by ada
        5 node.cancelled b cancelled: not needed
        6 node.cancelled a cancelled: not needed
        7 run.cancelled not needed
    "#]],
    );
}

#[test]
fn a_node_that_substitutes_runs_though_all_its_parents_were_skipped_for_a_failure() {
    check(
        graph(
            &[("a", ""), ("b", ""), ("c", "on_parent_failure: substitute_default")],
            &["a>b", "b>c"],
        )
        .fail("a", Auth)
        .show_prompt("c")
        .text("c", "C"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 node.skipped b parent_failure: `a` failed
            6 node.queued c
            7 node.provenance c x <- b output (substitute_default)
            8 node.started c attempt=1 dispatch=1
            c is given {"x":""} and ""
            9 node.completed c {"output":"C"}
            10 run.completed {"c":"C"}
        "#]],
    );
}

#[test]
fn what_is_substituted_satisfies_a_conditional_edge() {
    check(
        graph(
            &[("a", ""), ("b", "on_parent_failure: substitute_default")],
            &["a>b condition: {type: equals, value: go}"],
        )
        .fail("a", Auth)
        .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 node.queued b
            6 node.provenance b x <- a output (substitute_default)
            7 node.started b attempt=1 dispatch=1
            b is given {"x":""} and ""
        "#]],
    );
}

#[test]
fn a_branch_that_was_not_taken_leaves_its_label_of_the_join_empty() {
    let join = |config: &str| {
        Script::lens(&format!(
            "
            lenses:
              go: {{versions: {{1: {{template: go}}}}}}
              both: {{versions: {{1: {{template: 'L=[[l]] R=[[r]]'}}}}}}
            nodes:
              - {{id: route, lens_id: go}}
              - {{id: left, lens_id: go}}
              - {{id: right, lens_id: go}}
              - {{id: join, lens_id: both, config: {{{config}}}}}
            edges:
              - {{source_node_id: route, target_node_id: left, condition: {{type: equals, value: left}}}}
              - {{source_node_id: route, target_node_id: right, condition: {{type: equals, value: right}}}}
              - {{source_node_id: left, target_node_id: join, target_param_label: l}}
              - {{source_node_id: right, target_node_id: join, target_param_label: r}}
            "
        ))
        .text("route", "left")
        .begins(
            r#"
            1 run.started
            2 node.queued route
            3 node.started route attempt=1 dispatch=1
            4 node.completed route {"output":"left"}
            5 node.queued left
            6 node.skipped right condition_false: its condition is false
            7 node.started left attempt=1 dispatch=1
            "#,
        )
    };
    check(
        join("").text("left", "LL").show_prompt("join").text("join", "J"),
        expect![[r#"
            8 node.completed left {"output":"LL"}
            9 node.queued join
            10 node.provenance join l <- left output
            11 node.started join attempt=1 dispatch=1
            join is given {"l":"LL"} and "L=LL R="
            12 node.completed join {"output":"J"}
            13 run.completed {"join":"J"}
        "#]],
    );
    check(
        join("on_parent_failure: substitute_default")
            .fail("left", Auth)
            .show_prompt("join")
            .text("join", "J"),
        expect![[r#"
            8 node.failed left auth: it broke
            9 node.queued join
            10 node.provenance join l <- left output (substitute_default)
            11 node.started join attempt=1 dispatch=1
            join is given {"l":""} and "L= R="
            12 node.completed join {"output":"J"}
            13 run.completed {"join":"J"}
        "#]],
    );
}
