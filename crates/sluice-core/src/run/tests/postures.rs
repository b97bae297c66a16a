//! Postures of runs.

use super::governed::{last_decision, rules};
use super::{Script, check};
use crate::journal::event::RunStarted;
use crate::port::adapter::CallErrorCode::ProviderError;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::Posture;

fn posture(posture: Posture) -> impl FnOnce(&mut RunStarted) {
    move |started| started.posture = posture
}

#[test]
fn an_advisory_run_looks_at_every_step_and_sends_nothing() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, outputs: {x: string}}
              - {id: ask, approval: required, depends_on: [a]}
              - {id: held, command: 'use ${a.outputs.x}', approval: required, depends_on: [ask]}
              - {id: no, command: go, agent: unknown, depends_on: [a]}
              - {id: each, command: go, for_each: [1, 2], depends_on: [no]}
              - {id: child, workflow_ref: other, depends_on: [each]}
            ",
        )
        .knows("other")
        .starting(posture(Posture::Advisory))
        .show_due()
        .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.skipped a advisory: dry run: this step would be sent
            4 node.queued ask
            5 node.queued no
            6 node.skipped ask advisory: dry run: this approval would be requested
            7 governance.decided no "block" "agent_status"
            8 node.skipped no advisory: dry run: this step would be blocked
            9 node.queued each items=2
            10 node.started each attempt=1 dispatch=1 fan_out
            11 node.queued each[0]
            12 node.queued each[1]
            13 node.queued held
            14 governance.decided held "hold" null
            15 node.skipped held advisory: dry run: this step would need an approval
            16 node.skipped each[0] advisory: dry run: this step would be sent
            17 node.skipped each[1] advisory: dry run: this step would be sent
            18 node.completed each {"items":[null,null]}
            19 node.queued child
            20 node.skipped child advisory: dry run: this step would be sent
            21 run.completed {}
            due: 
            money: 
        "#]],
    );
}

#[test]
fn an_advisory_run_waits_at_no_gate_and_takes_nothing() {
    check(
        Script::flow("budget: {max_cost_cents: 100}\nsteps: [{id: a, command: go}]")
            .under(|desk| {
                desk.quoted(&["a"], 40);
                desk.agent_row("mock", |agent| agent.max_concurrent_steps = Some(0));
            })
            .starting(posture(Posture::Advisory))
            .show_gates("a")
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "concurrency"
            4 node.skipped a advisory: dry run: this step would be blocked
            5 run.completed {}
            gates of a: "block"
              concurrency block: agent mock runs 0 steps, its limit is 0
            money: 
        "#]],
    );
}

#[test]
fn a_run_that_may_only_read_uses_tools_marked_so_and_no_shell() {
    let script = |fields: &str| {
        Script::flow(&format!("steps: [{{id: a, command: go{fields}}}]"))
            .starting(posture(Posture::Retrieval))
            .under(|desk| {
                desk.agent_row("mock", |agent| {
                    agent.tools.read_only = vec!["search".to_owned()];
                });
            })
    };
    check(
        script(", tools: [search]").show(|world| {
            let request = world.run.request(world.at("a"));
            serde_json::to_string(&request.constraints).expect("constraints are plain data")
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            {"tools_allow":["search"],"data_access":"read_only"}
        "#]],
    );
    check(
        script(", tools: [search, mail]"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "policy_rules"
        4 node.failed a policy_blocked: the run is read-only: tool mail is not marked read-only (drop mail from the step, or mark it read_only for agent mock)
        5 run.failed policy_blocked: `a` failed: the run is read-only: tool mail is not marked read-only (drop mail from the step, or mark it read_only for agent mock)
    "#]],
    );
    check(
        script(", agent: shell"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "policy_rules"
        4 node.failed a policy_blocked: the run is read-only: a shell may do anything (give the step to an agent with read-only tools, or change the posture)
        5 run.failed policy_blocked: `a` failed: the run is read-only: a shell may do anything (give the step to an agent with read-only tools, or change the posture)
    "#]],
    );
    check(
        script(", agent: http"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "policy_rules"
        4 node.failed a policy_blocked: the run is read-only: an HTTP request may change something (give the step to an agent with read-only tools, or change the posture)
        5 run.failed policy_blocked: `a` failed: the run is read-only: an HTTP request may change something (give the step to an agent with read-only tools, or change the posture)
    "#]],
    );
}

#[test]
fn every_step_of_an_agent_may_need_a_person() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, on_failure: retry}
              - {id: child, workflow_ref: other, depends_on: [a]}
            ",
        )
        .knows("other")
        .starting(posture(Posture::ApprovalRequired))
        .show_wait("a")
        .approve("a")
        .fail("a", ProviderError)
        .advance("1s")
        .approve("a")
        .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 policy "Let `a` do this?\ngo\nthe posture of the run is approval_required"
            5 run.status.changed paused (approval)
            a is awaiting_approval and waits for human_input: `sluice approvals approve apr1`
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.retried a attempt=1 provider_error delay=1000
            10 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            11 governance.decided a "hold" null
            12 node.queued a
            13 approval.requested a apr2 policy "Let `a` do this?\ngo\nthe posture of the run is approval_required"
            14 run.status.changed paused (approval)
            15 approval.resolved a apr2 approved by bob
            16 run.status.changed running (approval)
            17 node.started a attempt=2 dispatch=2
            18 node.completed a {}
            19 node.queued child
            20 node.started child attempt=1 dispatch=1 child1
        "#]],
    );
}

#[test]
fn a_policy_in_shadow_decides_nothing() {
    let no = r#"@id("no") forbid (principal, action, resource);"#;
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(|desk| desk.policies = desk.policies.clone().with_shadow(rules(no)))
            .show(|world| {
                let decided = last_decision(world, "a");
                format!("{} beside {}", decided["disposition"], decided["shadow"]["disposition"])
            }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            "allow" beside "block"
        "#]],
    );
}

#[test]
fn an_approval_of_a_step_does_not_cover_its_tool_calls() {
    check(
        Script::flow("steps: [{id: a, command: go, tools: ['files.*', mail.send]}]")
            .under(|desk| {
                desk.agent_row("mock", |agent| {
                    agent.tools.read_only = vec!["files.read".to_owned()];
                });
            })
            .starting(posture(Posture::ApprovalRequired))
            .approve("a")
            .uses("a", "1", "files.read", json!({}))
            .uses("a", "2", "mail.send", json!({"to": "bob"}))
            .approve_as("a", "ada", &[])
            .uses("a", "3", "mail.send", json!({"to": "bob"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 policy "Let `a` do this?\ngo\nthe posture of the run is approval_required"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.log a tool files.read allowed
            10 governance.decided a "hold" null
            11 approval.requested a apr2 tool "Let `a` call mail.send? to bob (may come from a stranger)\nthe posture of the run is approval_required"
            12 node.log a tool mail.send held
            13 approval.resolved a apr2 approved by ada
            14 governance.decided a "hold" null
            15 node.log a tool mail.send allowed by consent
            16 governance.decided a "hold" null
            17 approval.requested a apr3 tool "Let `a` call mail.send? to bob (may come from a stranger)\nthe posture of the run is approval_required"
            18 node.log a tool mail.send held
        "#]],
    );
}

#[test]
fn an_approver_who_lists_a_tool_covers_its_calls_in_the_step() {
    check(
        Script::flow("steps: [{id: a, command: go, tools: ['files.*', mail.send]}]")
            .starting(posture(Posture::ApprovalRequired))
            .tighten("a", "ada", json!({"tools_allow": ["mail.send", "files.*"]}))
            .uses("a", "1", "mail.send", json!({"to": "bob"}))
            // The name of a server lists no tool.
            .uses("a", "2", "files.write", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 policy "Let `a` do this?\ngo\nthe posture of the run is approval_required"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by ada
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.log a tool mail.send allowed
            10 governance.decided a "hold" null
            11 approval.requested a apr2 tool "Let `a` call files.write?\nthe posture of the run is approval_required"
            12 node.log a tool files.write held
        "#]],
    );
}
