//! Lens nodes that run a sub-workflow or need an approval.

use super::{Script, check};
use crate::run::command::Decision::Approve;
use crate::run::start::Carried;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};

/// A first node, a node with this `config`, and a node that reads its output.
fn between(key: &str, config: &str) -> Script {
    Script::lens(&format!(
        "
        lenses:
          go: {{versions: {{1: {{template: go}}}}}}
          use: {{versions: {{1: {{template: 'got [[got]]'}}}}}}
        nodes:
          - {{id: first, lens_id: go}}
          - {{id: mid, label: Middle, config: {{{config}}}}}
          - {{id: last, lens_id: use}}
        edges:
          - {{source_node_id: first, target_node_id: mid, target_param_label: Draft}}
          - {{source_node_id: first, target_node_id: mid, source_output_key: n, target_param_label: n}}
          - {{source_node_id: mid, target_node_id: last, source_output_key: {key}, target_param_label: got}}
        "
    ))
    .knows("other")
}

/// The same, with the first node completed.
fn reads(key: &str, config: &str) -> Script {
    between(key, config).complete("first", json!({"n": 7})).begins(
        r#"
        1 run.started
        2 node.queued first
        3 node.started first attempt=1 dispatch=1
        4 node.completed first {"n":7,"output":"{\"n\":7}"}
        "#,
    )
}

#[test]
fn a_node_runs_another_workflow_with_its_labels() {
    check(
        reads("deep.0", "workflow_ref: other, args: {n: '[[n]]', text: 'n is {{ N }}', all: ['[[draft]]', 1], topic: '[[topic!]]'}")
            .arg("topic", "tea")
            .show_due()
            .show_prompt("mid")
            .show(|world| format!("{:?}", world.run.child_reference(world.at("mid"))))
            .child("mid", RunStatus::Completed, Some(json!({"deep": ["D"], "more": 1})), "")
            .show_prompt("last")
            .text("last", "L"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid args.n <- first n
            7 node.provenance mid args.text <- first n
            8 node.provenance mid args.all <- first output
            9 node.started mid attempt=1 dispatch=1 child1
            due: mid child1
            mid is given {"n":7,"text":"n is 7","all":["{\"n\":7}",1],"topic":"tea"} and ""
            Some("other")
            10 node.provenance mid outputs <- child1 outputs
            11 node.completed mid {"deep":["D"],"more":1,"output":"{\"deep\":[\"D\"],\"more\":1}"}
            12 node.queued last
            13 node.provenance last got <- mid deep.0
            14 node.started last attempt=1 dispatch=1
            last is given {"got":"D","topic":"tea"} and "got D"
            15 node.completed last {"output":"L"}
            16 run.completed {"last":"L"}
        "#]],
    );
    // A single output is the `output`. Without `args` the child gets the wired inputs.
    check(
        reads("output", "workflow_ref: other")
            .show_prompt("mid")
            .child("mid", RunStatus::Completed, Some(json!({"only": [1]})), "")
            .show_prompt("last"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid args.Draft <- first output
            7 node.provenance mid args.n <- first n
            8 node.started mid attempt=1 dispatch=1 child1
            mid is given {"Draft":"{\"n\":7}","n":7} and ""
            9 node.provenance mid outputs <- child1 outputs
            10 node.completed mid {"only":[1],"output":"[1]"}
            11 node.queued last
            12 node.provenance last got <- mid output
            13 node.started last attempt=1 dispatch=1
            last is given {"got":"[1]"} and "got [1]"
        "#]],
    );
}

#[test]
fn a_sub_workflow_that_fails_is_a_failed_node() {
    check(
        reads("output", "workflow_ref: other, retry: {attempts: 2, backoff_ms: 0}")
            .child("mid", RunStatus::Failed, None, "it broke")
            .child("mid", RunStatus::Failed, None, "it broke"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid args.Draft <- first output
            7 node.provenance mid args.n <- first n
            8 node.started mid attempt=1 dispatch=1 child1
            9 node.retried mid attempt=1 provider_error delay=0
            10 node.waiting mid retry_backoff attempt=2 provider_error delay=0
            11 node.started mid attempt=2 dispatch=2 child2
            12 node.failed mid child_failed: child2: it broke
            13 node.skipped last parent_failure: `mid` failed
            14 run.completed {}
        "#]],
    );
    check(
        reads("output", "workflow_ref: other").cancel().child(
            "mid",
            RunStatus::Cancelled,
            None,
            "",
        ),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid args.Draft <- first output
            7 node.provenance mid args.n <- first n
            8 node.started mid attempt=1 dispatch=1 child1
            9 run.status.changed cancelling (not needed) by ada
            10 node.cancelled last cancelled: not needed
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"not needed"}
            11 node.cancelled mid cancelled: not needed
            12 run.cancelled not needed
        "#]],
    );
}

#[test]
fn a_sub_workflow_whose_label_has_no_value_is_blocked_and_a_wrong_type_is_a_violation() {
    check(
        Script::lens(
            "
            args: {topic: string}
            nodes: [{id: mid, config: {workflow_ref: other, args: {t: '[[topic]]'}}}]
            ",
        )
        .knows("other"),
        expect![[r#"
            1 run.started
            2 node.queued mid
            3 node.blocked mid placeholder_unbound: `topic` has no value
            4 run.failed placeholder_unbound: `mid` failed: `topic` has no value
        "#]],
    );
    check(
        reads("output", "workflow_ref: other, args: {t: 'x [[n:string]]'}"),
        expect![[r#"
        5 node.queued mid
        6 contract.violated mid input n type_mismatch
        7 node.failed mid input_contract_violation: input_contract_violation
        8 node.skipped last parent_failure: `mid` failed
        9 run.completed {}
    "#]],
    );
}

const ASKS: &str = "human_input: {schema: {tone: {type: string, enum: [warm, dry]}, count: {type: integer, required: false}}, summary: 'Tone of ${draft}, ${first.n}?', approvers: [bob], expires_in: 1h}";

#[test]
fn a_node_asks_a_person_for_values() {
    check(
        reads("data.tone", ASKS)
            .show_status()
            .show(|world| {
                let node = crate::run::projection::project(&world.run);
                let mid = node.node_results.iter().find(|one| one.node_id == "mid").unwrap();
                format!("{} {:?}", mid.status, mid.waiting_reason)
            })
            .resolve_with("mid", Approve, None, json!({"tone": "loud"}))
            .resolve_with("mid", Approve, Some("why not"), json!({"tone": "dry", "count": "3"}))
            .show_prompt("last")
            .text("last", "L"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 node.provenance mid summary <- first n
            9 approval.requested mid apr1 step "Tone of {\"n\":7}, 7?"
            10 run.status.changed paused (approval)
            status: paused (approval)
            awaiting_approval Some(HumanInput)
            refused: invalid_values (the values do not fit: tone is "loud", not one of "warm", "dry")
            11 approval.resolved mid apr1 approved by bob
            12 run.status.changed running (approval)
            13 node.endorsed mid tone loses unknown by apr1
            14 node.endorsed mid count loses unknown by apr1
            15 node.endorsed mid comment loses unknown by apr1
            16 node.completed mid {"tone":"dry","count":3,"approved":true,"by":"bob","comment":"why not","output":"{\"tone\":\"dry\",\"count\":3}"} coerced
            17 node.queued last
            18 node.provenance last got <- mid data.tone
            19 node.started last attempt=1 dispatch=1
            last is given {"got":"dry"} and "got dry"
            20 node.completed last {"output":"L"}
            21 run.completed {"last":"L"}
        "#]],
    );
    // A single value is the `output`.
    check(
        reads("output", "human_input: {schema: {answer: {type: number}}}")
            .take_over()
            .resolve_with("mid", Approve, None, json!({"answer": 42}))
            .show_prompt("last"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 approval.requested mid apr1 step "Approve `mid`?"
            9 run.status.changed paused (approval)
            10 run.status.changed paused (taken_over)
            11 approval.resolved mid apr1 approved by bob
            12 run.status.changed running (approval)
            13 node.endorsed mid answer loses unknown by apr1
            14 node.completed mid {"answer":42,"approved":true,"by":"bob","comment":null,"output":"42"}
            15 node.queued last
            16 node.provenance last got <- mid output
            17 node.started last attempt=1 dispatch=1
            last is given {"got":"42"} and "got 42"
        "#]],
    );
    check(
        reads("output", "human_input: {schema: {answer: {type: number}}, expires_in: 1m}")
            .advance("2m"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 approval.requested mid apr1 step "Approve `mid`?"
            9 run.status.changed paused (approval)
            after 1m
            10 approval.resolved mid apr1 expired
            11 run.status.changed running (approval)
            12 node.failed mid approval_rejected: no approver answered in time
            13 node.skipped last parent_failure: `mid` failed
            14 run.completed {}
        "#]],
    );
}

#[test]
fn a_node_that_only_asks_for_consent_carries_who_gave_it() {
    check(
        reads("by", "approval: required").approve("mid").show_prompt("last").text("last", "L"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 approval.requested mid apr1 step "Approve `mid`?"
            9 run.status.changed paused (approval)
            10 approval.resolved mid apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.completed mid {"approved":true,"by":"bob","comment":null,"output":"approved"}
            13 node.queued last
            14 node.provenance last got <- mid by
            15 node.started last attempt=1 dispatch=1
            last is given {"got":"bob"} and "got bob"
            16 node.completed last {"output":"L"}
            17 run.completed {"last":"L"}
        "#]],
    );
    check(
        reads("output", "approval: {summary: 'Go on with ${draft}?'}").reject("mid", "no"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 approval.requested mid apr1 step "Go on with {\"n\":7}?"
            9 run.status.changed paused (approval)
            10 approval.resolved mid apr1 rejected by bob
            11 run.status.changed running (approval)
            12 node.failed mid approval_rejected: rejected by bob: no
            13 node.skipped last parent_failure: `mid` failed
            14 run.completed {}
        "#]],
    );
}

#[test]
fn an_approval_stands_before_a_lens_and_before_a_sub_workflow() {
    let lens = "
        nodes: [{id: a, lens_id: l, config: {approval: {summary: 'Send ${x}?'}}}, {id: b, lens_id: l}]
        edges: [{source_node_id: a, target_node_id: b, source_output_key: by, target_param_label: x}]
    ";
    check(
        Script::lens(lens).arg("x", "this").approve("a").text("a", "A").show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Send this?"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.completed a {"approved":true,"by":"bob","comment":null,"output":"A"}
            10 node.queued b
            11 node.provenance b x <- a by
            12 node.started b attempt=1 dispatch=1
            b is given {"x":"bob"} and "bob"
        "#]],
    );
    check(
        reads(
            "output",
            "workflow_ref: other, args: {n: '[[n]]'}, approval: {summary: 'Run with ${n}?'}",
        )
        .approve("mid")
        .show_prompt("mid")
        .child("mid", RunStatus::Completed, Some(json!({"out": "O"})), "")
        .show_prompt("last"),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid args.n <- first n
            7 governance.decided mid "hold" null
            8 approval.requested mid apr1 step "Run with 7?"
            9 run.status.changed paused (approval)
            10 approval.resolved mid apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.started mid attempt=1 dispatch=1 child1
            mid is given {"n":7} and ""
            13 node.provenance mid outputs <- child1 outputs
            14 node.completed mid {"out":"O","approved":true,"by":"bob","comment":null,"output":"O"}
            15 node.queued last
            16 node.provenance last got <- mid output
            17 node.started last attempt=1 dispatch=1
            last is given {"got":"O"} and "got O"
        "#]],
    );
}

#[test]
fn going_back_asks_again_and_what_is_carried_is_kept() {
    let asks = "human_input: {schema: {answer: {type: number}}}";
    let answered =
        || reads("output", asks).resolve_with("mid", Approve, None, json!({"answer": 42}));
    check(
        answered().text("last", "L").rewind(&["first"]),
        expect![[r#"
            5 node.queued mid
            6 node.provenance mid draft <- first output
            7 node.provenance mid n <- first n
            8 approval.requested mid apr1 step "Approve `mid`?"
            9 run.status.changed paused (approval)
            10 approval.resolved mid apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.endorsed mid answer loses unknown by apr1
            13 node.completed mid {"answer":42,"approved":true,"by":"bob","comment":null,"output":"42"}
            14 node.queued last
            15 node.provenance last got <- mid output
            16 node.started last attempt=1 dispatch=1
            17 node.completed last {"output":"L"}
            18 run.completed {"last":"L"}
            19 run.status.changed running (rewind) by ada
            20 node.invalidated mid
            21 node.invalidated last
            22 node.queued mid
            23 node.provenance mid draft <- first output
            24 node.provenance mid n <- first n
            25 approval.requested mid apr2 step "Approve `mid`?"
            26 run.status.changed paused (approval)
        "#]],
    );
    let source = answered().run();
    let again: BTreeSet<u32> = [2].into();
    check(
        between("output", asks)
            .carrying(move || Carried::for_restart(&source, again))
            .show_prompt("last"),
        expect![[r#"
            1 run.started
            2 node.provenance first outputs <- run first outputs (carried)
            3 node.completed first {"n":7,"output":"{\"n\":7}"} carried
            4 node.provenance mid outputs <- run mid outputs (carried)
            5 node.completed mid {"answer":42,"approved":true,"by":"bob","comment":null,"output":"42"} carried
            6 node.queued last
            7 node.provenance last got <- mid output
            8 node.started last attempt=1 dispatch=1
            last is given {"got":"42"} and "got 42"
        "#]],
    );
    let source = answered().run();
    let changed = Map::from_iter([("output".to_owned(), json!("7"))]);
    let changed = BTreeMap::from([(1, changed)]);
    check(
        between("output", asks)
            .carrying(move || Carried::for_branch(&source, &changed))
            .show_prompt("last"),
        expect![[r#"
            1 run.started
            2 node.provenance first outputs <- run first outputs (carried)
            3 node.completed first {"n":7,"output":"{\"n\":7}"} carried
            4 node.provenance mid outputs <- run mid outputs (carried, changed)
            5 node.completed mid {"answer":42,"approved":true,"by":"bob","comment":null,"output":"7"} carried
            6 node.queued last
            7 node.provenance last got <- mid output
            8 node.started last attempt=1 dispatch=1
            last is given {"got":"7"} and "got 7"
        "#]],
    );
}
