//! Approval requests, and who may decide them.

use super::governed::rules;
use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::port::authority::fake::FakeAuthority as Desk;
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;

const ASK: &str = r#"@id("ask") @action("require_approval") @description("mail goes to people")
    @approvers("ada,security") forbid (principal, action == Action::"dispatch_step", resource)
    when { context has step && context.step.id == "mail" };"#;

fn asked(desk: &mut Desk) {
    desk.policies = rules(ASK);
}

const MAIL: &str = "
    steps:
      - {id: mail, command: send}
      - {id: other, command: go}
";

#[test]
fn a_policy_holds_a_step_and_others_go_on() {
    check(
        Script::flow(MAIL)
            .under(asked)
            .show_wait("mail")
            .show_gates("mail")
            .complete("other", json!({}))
            .approve("mail")
            .approve_as("mail", "eve", &["security"])
            .complete("mail", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 node.queued other
            4 governance.decided mail "hold" null
            5 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            6 node.started other attempt=1 dispatch=1
            mail is awaiting_approval and waits for human_input: `sluice approvals approve apr1`
            gates of mail: "hold"
              approval_required hold: approval required: policy own.cedar/ask: mail goes to people
            7 node.completed other {}
            8 run.status.changed paused (approval)
            refused: not_approver (bob may not decide this approval: its approvers are ada, security)
            9 approval.resolved mail apr1 approved by eve
            10 run.status.changed running (approval)
            11 node.started mail attempt=1 dispatch=1
            12 node.completed mail {}
            13 run.completed {}
        "#]],
    );
    check(
        Script::flow(MAIL)
            .under(asked)
            .answered("mail", (Decision::Reject, Some("no mail")), ("bob", &[]), json!(null))
            .answered("mail", (Decision::Reject, None), ("ada", &[]), json!(null))
            .answered("mail", (Decision::Reject, Some("no mail")), ("ada", &[]), json!(null)),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 node.queued other
            4 governance.decided mail "hold" null
            5 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            6 node.started other attempt=1 dispatch=1
            refused: not_approver (bob may not decide this approval: its approvers are ada, security)
            refused: comment_missing (a rejection needs a comment that says why)
            7 approval.resolved mail apr1 rejected by ada
            8 node.failed mail approval_rejected: rejected by ada: no mail
        "#]],
    );
}

#[test]
fn where_a_step_and_a_policy_ask_one_of_each_must_agree() {
    let script = || {
        Script::flow(
            "steps: [{id: mail, command: send, approval: {approvers: [owner], quorum: 2}}]",
        )
        .under(asked)
    };
    check(
        script()
            .approve_as("mail", "bob", &["owner"])
            .approve_as("mail", "carl", &["owner"])
            .approve_as("mail", "ada", &[]),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 governance.decided mail "hold" null
            4 approval.requested mail apr1 step "Let `mail` do this?\nsend"
            5 run.status.changed paused (approval)
            6 approval.resolved mail apr1 pending by bob
            7 approval.resolved mail apr1 pending by carl
            8 approval.resolved mail apr1 approved by ada
            9 run.status.changed running (approval)
            10 node.started mail attempt=1 dispatch=1
        "#]],
    );
    check(
        script().approve_as("mail", "eve", &["owner", "security"]).approve_as("mail", "ada", &[]),
        expect![[r#"
        1 run.started
        2 node.queued mail
        3 governance.decided mail "hold" null
        4 approval.requested mail apr1 step "Let `mail` do this?\nsend"
        5 run.status.changed paused (approval)
        6 approval.resolved mail apr1 pending by eve
        7 approval.resolved mail apr1 approved by ada
        8 run.status.changed running (approval)
        9 node.started mail attempt=1 dispatch=1
    "#]],
    );
}

#[test]
fn a_quorum_counts_each_person_once_and_one_no_ends_it() {
    let script = || {
        Script::flow("steps: [{id: a, command: go, approval: {quorum: 2, not_initiator: true}}]")
    };
    check(
        script().approve("a").approve("a").approve_as("a", "ada", &[]).show_wait("a").approve_as(
            "a",
            "eve",
            &[],
        ),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 pending by bob
            refused: answered_already (bob has already voted on this approval; it needs votes of other approvers)
            refused: self_approval (ada is an initiator of the run: a different person must decide)
            a is awaiting_approval and waits for human_input: `sluice approvals approve apr1`
            7 approval.resolved a apr1 approved by eve
            8 run.status.changed running (approval)
            9 node.started a attempt=1 dispatch=1
        "#]],
    );
    check(
        script().approve("a").reject("a", "I thought again"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "hold" null
        4 approval.requested a apr1 step "Let `a` do this?\ngo"
        5 run.status.changed paused (approval)
        6 approval.resolved a apr1 pending by bob
        7 approval.resolved a apr1 rejected by bob
        8 run.status.changed running (approval)
        9 node.failed a approval_rejected: rejected by bob: I thought again
        10 run.failed approval_rejected: `a` failed: rejected by bob: I thought again
    "#]],
    );
    check(
        script().approve("a").advance("8d").approve_as("a", "eve", &[]),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 pending by bob
            after 1h
            7 approval.reminded a apr1 normal
            after 1d
            8 approval.reminded a apr1 elevated
            after 3d
            9 approval.reminded a apr1 critical
            after 7d
            10 approval.resolved a apr1 expired
            11 run.status.changed running (approval)
            12 node.failed a approval_rejected: no approver answered in time
            13 run.failed approval_rejected: `a` failed: no approver answered in time
            refused: approval_resolved (the approval is expired already)
        "#]],
    );
}

#[test]
fn an_approval_step_has_approvers_too() {
    check(
        Script::flow(
            "steps: [{id: ask, approval: {approvers: [eve, board], quorum: 2, not_initiator: true}}]",
        )
        .starting(|started| started.initiator = "eve".to_owned())
        .approve("ask")
        .approve_as("ask", "eve", &["board"])
        .approve_as("ask", "fay", &["board"])
        .tighten("ask", "eve", json!({"max_cost": 1}))
        .approve_as("ask", "gil", &["board"]),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            refused: not_approver (bob may not decide this approval: its approvers are eve, board)
            refused: self_approval (eve is an initiator of the run: a different person must decide)
            5 approval.resolved ask apr1 pending by fay
            refused: self_approval (eve is an initiator of the run: a different person must decide)
            6 approval.resolved ask apr1 approved by gil
            7 run.status.changed running (approval)
            8 node.completed ask {"approved":true,"by":"gil","comment":null}
            9 run.completed {}
        "#]],
    );
}

#[test]
fn an_answer_can_tighten_and_never_widen() {
    let constraints = |script: Script| {
        script.show(|world| {
            let request = world.run.request(world.at("a"));
            serde_json::to_string(&request.constraints).expect("constraints are plain data")
        })
    };
    let script = || {
        Script::flow("steps: [{id: a, command: go, approval: {quorum: 2}, on_failure: retry}]")
            .under(|desk| {
                desk.quoted(&["a"], 40);
                desk.agent_row("mock", |agent| {
                    agent.tools.allow = vec!["read".to_owned(), "write".to_owned()];
                });
            })
    };
    check(
        constraints(
            script()
                .tighten("a", "bob", json!({"tools_allow": ["mail"]}))
                .tighten("a", "bob", json!({"max_cost": 40_000_001}))
                .tighten("a", "bob", json!({"max_cost": 20_000_000}))
                .tighten("a", "eve", json!({"max_cost": 30_000_000}))
                .tighten("a", "eve", json!({"tools_allow": ["read"]})),
        ),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            refused: constraints_widen (an approver can only tighten constraints: tools_allow: mail is not among read, write)
            refused: constraints_widen (an approver can only tighten constraints: max_cost: 40000001 is more than 40000000)
            6 approval.resolved a apr1 pending by bob
            refused: constraints_widen (an approver can only tighten constraints: max_cost: 30000000 is more than 20000000)
            7 approval.resolved a apr1 approved by eve
            8 run.status.changed running (approval)
            9 node.started a attempt=1 dispatch=1
            {"tools_allow":["read"],"max_cost":20000000}
        "#]],
    );
    // A retry requests a new approval of the action without the added constraints.
    check(
        script()
            .tighten("a", "bob", json!({"tools_allow": []}))
            .approve_as("a", "eve", &[])
            .fail("a", ProviderError)
            .advance("1s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 pending by bob
            7 approval.resolved a apr1 approved by eve
            8 run.status.changed running (approval)
            9 node.started a attempt=1 dispatch=1
            10 node.retried a attempt=1 provider_error delay=1000
            11 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            12 node.queued a
            13 governance.decided a "hold" null
            14 approval.requested a apr2 step "Let `a` do this?\ngo"
            15 run.status.changed paused (approval)
        "#]],
    );
}

#[test]
fn no_reminder_is_sent_where_none_is_set() {
    check(
        Script::flow("steps: [{id: a, command: go, approval: required}]")
            .under(|desk: &mut Desk| {
                desk.patience.reminders = Vec::new();
                desk.patience.expires_ms = 8 * 24 * 3_600_000;
            })
            .advance("9d"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            after 8d
            6 approval.resolved a apr1 expired
            7 run.status.changed running (approval)
            8 node.failed a approval_rejected: no approver answered in time
            9 run.failed approval_rejected: `a` failed: no approver answered in time
        "#]],
    );
}

#[test]
fn reminders_and_the_end_come_when_they_are_set_to() {
    let patient = |desk: &mut Desk| {
        desk.patience.reminders = vec![(60_000, "soon".to_owned()), (120_000, "now".to_owned())];
        desk.patience.expires_ms = 180_000;
    };
    check(
        Script::flow("steps: [{id: a, command: go, approval: required}]")
            .under(patient)
            .advance("1d"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\ngo"
            5 run.status.changed paused (approval)
            after 1m
            6 approval.reminded a apr1 soon
            after 2m
            7 approval.reminded a apr1 now
            after 3m
            8 approval.resolved a apr1 expired
            9 run.status.changed running (approval)
            10 node.failed a approval_rejected: no approver answered in time
            11 run.failed approval_rejected: `a` failed: no approver answered in time
        "#]],
    );
    check(
        Script::flow(MAIL)
            .under(asked)
            .under(patient)
            .complete("other", json!({}))
            .advance("90s")
            .set(|desk| desk.patience.expires_ms = 1)
            .approve_as("mail", "ada", &[]),
        expect![[r#"
            1 run.started
            2 node.queued mail
            3 node.queued other
            4 governance.decided mail "hold" null
            5 approval.requested mail apr1 policy "Let `mail` do this?\nsend\npolicy own.cedar/ask: mail goes to people"
            6 node.started other attempt=1 dispatch=1
            7 node.completed other {}
            8 run.status.changed paused (approval)
            after 1m
            9 approval.reminded mail apr1 soon
            after 90s
            10 approval.resolved mail apr1 approved by ada
            11 run.status.changed running (approval)
            12 node.started mail attempt=1 dispatch=1
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry_once_then_escalate}]")
            .under(patient)
            .fail("a", ProviderError)
            .fail("a", ProviderError)
            .advance("1d"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=0
            5 node.waiting a retry_backoff attempt=2 provider_error delay=0
            6 node.started a attempt=2 dispatch=2
            7 approval.requested a apr1 escalation "`a` failed: it broke. Retry, skip or abort?"
            8 run.status.changed paused (approval)
            after 1m
            9 approval.reminded a apr1 soon
            after 2m
            10 approval.reminded a apr1 now
            after 3m
            11 approval.resolved a apr1 expired
            12 run.status.changed running (approval)
            13 node.failed a provider_error: it broke
            14 run.failed provider_error: `a` failed: it broke
        "#]],
    );
}
