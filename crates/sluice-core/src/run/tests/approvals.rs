//! Approvals: requested, decided, reminded and expired.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;

#[test]
fn an_approval_step_completes_with_who_agreed() {
    check(
        Script::flow(
            "
            steps:
              - {id: ask, approval: {required: true, summary: 'Ship ${args.what}?'}}
              - {id: yes, command: go, depends_on: [ask], condition: $ask.approved}
            args: {what: {type: string}}
            ",
        )
        .arg("what", "it")
        .show_status()
        .show(|world| format!("{:?}", world.run.state(world.at("ask")).phase.waiting()))
        .resolve("ask", Decision::Approve, Some("fine"))
        .approve("ask")
        .complete("yes", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Ship it?"
            4 run.status.changed paused (approval)
            status: paused (approval)
            Some(HumanInput)
            5 approval.resolved ask apr1 approved by bob
            6 run.status.changed running (approval)
            7 node.completed ask {"approved":true,"by":"bob","comment":"fine"}
            8 node.queued yes
            9 node.started yes attempt=1 dispatch=1
            refused: approval_resolved (the approval is approved already)
            10 node.completed yes {}
            11 run.completed {}
        "#]],
    );
}

#[test]
fn a_rejection_needs_a_reason_and_fails_the_step() {
    check(
        Script::flow("steps: [{id: ask, approval: required, on_failure: retry}]")
            .resolve("ask", Decision::Reject, None)
            .resolve("ask", Decision::Reject, Some("  "))
            .resolve("ask", Decision::Skip, None)
            .reject("ask", "too risky"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            refused: comment_missing (a rejection needs a comment that says why)
            refused: comment_missing (a rejection needs a comment that says why)
            refused: wrong_decision (this approval takes approve or reject)
            5 approval.resolved ask apr1 rejected by bob
            6 run.status.changed running (approval)
            7 node.failed ask approval_rejected: rejected by bob: too risky
            8 run.failed approval_rejected: `ask` failed: rejected by bob: too risky
        "#]],
    );
    check(
        Script::flow(
            "
            steps:
              - {id: ask, approval: required, on_failure: skip}
              - {id: other, command: go}
              - {id: b, command: 'approved: <${ask.outputs.approved}>', depends_on: [ask, other]}
            ",
        )
        .reject("ask", "no")
        .complete("other", json!({}))
        .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 node.queued other
            4 approval.requested ask apr1 step "Approve `ask`?"
            5 node.started other attempt=1 dispatch=1
            6 approval.resolved ask apr1 rejected by bob
            7 node.skipped ask failure: rejected by bob: no [approval_rejected]
            8 node.completed other {}
            9 node.queued b
            10 node.started b attempt=1 dispatch=1
            b is given {} and "approved: <>"
        "#]],
    );
}

#[test]
fn values_a_person_supplies_are_coerced_validated_and_refused_if_they_do_not_fit() {
    let script = || {
        Script::flow(
            "
            steps:
              - {id: ask, approval: required, outputs: {amount: {type: integer, maximum: 10}, note: {type: string, required: false}}}
              - {id: b, command: 'pay ${amount}', depends_on: [ask]}
            ",
        )
    };
    check(
        script()
            .approve("ask")
            .resolve_with("ask", Decision::Approve, None, json!({"amount": 50}))
            .show_status()
            .resolve_with("ask", Decision::Approve, None, json!({"amount": "7"}))
            .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            refused: invalid_values (the values do not fit: amount is required)
            refused: invalid_values (the values do not fit: amount is 50, above the maximum 10)
            status: paused (approval)
            5 approval.resolved ask apr1 approved by bob
            6 run.status.changed running (approval)
            7 node.completed ask {"amount":7,"approved":true,"by":"bob","comment":null} coerced
            8 node.queued b
            9 node.provenance b command <- ask amount
            10 node.started b attempt=1 dispatch=1
            b is given {} and "pay 7"
        "#]],
    );
}

#[test]
fn a_command_runs_after_its_grant_and_a_retry_asks_again() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: pay, approval: required, on_failure: retry_once}
              - {id: b, command: go, condition: $a.approved and a.paid}
            ",
        )
        .approve("a")
        .fail("a", ProviderError)
        .show_due()
        .approve("a")
        .complete("a", json!({"paid": true, "comment": "its own"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\npay"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.retried a attempt=1 provider_error delay=0
            10 node.waiting a retry_backoff attempt=2 provider_error delay=0
            11 node.queued a
            12 governance.decided a "hold" null
            13 approval.requested a apr2 step "Let `a` do this?\npay"
            14 run.status.changed paused (approval)
            due: 
            15 approval.resolved a apr2 approved by bob
            16 run.status.changed running (approval)
            17 node.started a attempt=2 dispatch=2
            18 node.completed a {"paid":true,"comment":"its own","approved":true,"by":"bob"}
            19 node.queued b
            20 node.started b attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn a_grant_can_cover_retries() {
    check(
        Script::flow(
            "steps: [{id: a, command: pay, approval: {covers_retries: true}, on_failure: retry}]",
        )
        .approve("a")
        .fail("a", ProviderError)
        .advance("1s")
        .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "hold" null
            4 approval.requested a apr1 step "Let `a` do this?\npay"
            5 run.status.changed paused (approval)
            6 approval.resolved a apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started a attempt=1 dispatch=1
            9 node.retried a attempt=1 provider_error delay=1000
            10 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            11 node.started a attempt=2 dispatch=2
            12 node.completed a {"approved":true,"by":"bob","comment":null}
            13 run.completed {}
        "#]],
    );
}

#[test]
fn people_are_reminded_and_the_question_expires_after_seven_days() {
    check(
        Script::flow("steps: [{id: ask, approval: required}]").advance("8d"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            after 1h
            5 approval.reminded ask apr1 normal
            after 1d
            6 approval.reminded ask apr1 elevated
            after 3d
            7 approval.reminded ask apr1 critical
            after 7d
            8 approval.resolved ask apr1 expired
            9 run.status.changed running (approval)
            10 node.failed ask approval_rejected: no approver answered in time
            11 run.failed approval_rejected: `ask` failed: no approver answered in time
        "#]],
    );
}

#[test]
fn a_question_may_expire_sooner_and_others_go_on() {
    check(
        Script::flow(
            "
            steps:
              - {id: ask, approval: {expires_in: 2h}, on_failure: skip}
              - {id: other, approval: required}
              - {id: b, command: go, depends_on: [ask, other]}
              - {id: c, command: go, condition: 'not $ask.approved', depends_on: [ask, other]}
            ",
        )
        .approve("other")
        .advance("2h")
        .answer_all()
        .approve("ask"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 node.queued other
            4 approval.requested ask apr1 step "Approve `ask`?"
            5 approval.requested other apr2 step "Approve `other`?"
            6 run.status.changed paused (approval)
            7 approval.resolved other apr2 approved by bob
            8 run.status.changed running (approval)
            9 node.completed other {"approved":true,"by":"bob","comment":null}
            10 run.status.changed paused (approval)
            after 1h
            11 approval.reminded ask apr1 normal
            after 2h
            12 approval.resolved ask apr1 expired
            13 run.status.changed running (approval)
            14 node.skipped ask failure: no approver answered in time [approval_rejected]
            15 node.queued b
            16 node.queued c
            17 node.started b attempt=1 dispatch=1
            18 node.started c attempt=1 dispatch=1
            19 node.completed b {"n":2}
            20 node.completed c {"n":3}
            21 run.completed {}
            refused: approval_resolved (the approval is expired already)
        "#]],
    );
}

#[test]
fn a_decision_after_the_expiry_is_refused_before_the_timer_has_fired() {
    check(
        Script::flow("steps: [{id: ask, approval: {expires_in: 2h}}]")
            .neglected("2h")
            .approve("ask"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            refused: approval_resolved (the approval is expired already)
            after 2h
            5 approval.resolved ask apr1 expired
            6 run.status.changed running (approval)
            7 node.failed ask approval_rejected: no approver answered in time
            8 run.failed approval_rejected: `ask` failed: no approver answered in time
        "#]],
    );
}

#[test]
fn a_run_is_paused_only_while_nothing_but_people_is_left() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required}
              - {id: ask2, approval: required}
            ",
        )
        .show_status()
        .complete("a", json!({}))
        .show_status()
        .approve("ask")
        .show_status()
        .approve("ask2"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 node.queued ask2
            5 approval.requested ask apr1 step "Approve `ask`?"
            6 approval.requested ask2 apr2 step "Approve `ask2`?"
            7 node.started a attempt=1 dispatch=1
            status: running
            8 node.completed a {}
            9 run.status.changed paused (approval)
            status: paused (approval)
            10 approval.resolved ask apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.completed ask {"approved":true,"by":"bob","comment":null}
            13 run.status.changed paused (approval)
            status: paused (approval)
            14 approval.resolved ask2 apr2 approved by bob
            15 run.status.changed running (approval)
            16 node.completed ask2 {"approved":true,"by":"bob","comment":null}
            17 run.completed {}
        "#]],
    );
}

#[test]
fn a_held_step_takes_no_place_and_its_time_starts_at_dispatch() {
    check(
        Script::flow(
            "
            max_parallel: 1
            steps:
              - {id: a, command: pay, approval: required, timeout: 5s}
              - {id: b, command: go, timeout: 20m}
            ",
        )
        .show_due()
        .advance("10m")
        .complete("b", json!({}))
        .approve("a")
        .advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 governance.decided a "hold" null
            5 approval.requested a apr1 step "Let `a` do this?\npay"
            6 node.started b attempt=1 dispatch=1
            due: b dispatch=1 key=f472e5
            after 10m
            7 node.completed b {}
            8 run.status.changed paused (approval)
            9 approval.resolved a apr1 approved by bob
            10 run.status.changed running (approval)
            11 node.started a attempt=1 dispatch=1
            after 605s
            12 node.timed_out a timeout: the attempt took longer than 5s
            13 run.failed timeout: `a` failed: the attempt took longer than 5s
        "#]],
    );
}

#[test]
fn every_instance_of_a_fan_out_asks_for_itself() {
    check(
        Script::flow(
            "steps: [{id: a, command: 'pay ${item}', approval: required, for_each: [x, y]}]",
        )
        .approve("a[1]")
        .complete("a[1]", json!({"n": 1}))
        .show_status()
        .approve("a[0]")
        .complete("a[0]", json!({"n": 0})),
        expect![[r#"
            1 run.started
            2 node.queued a items=2
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 governance.decided a[0] "hold" null
            7 approval.requested a[0] apr1 step "Let `a[0]` do this?\npay x"
            8 governance.decided a[1] "hold" null
            9 approval.requested a[1] apr2 step "Let `a[1]` do this?\npay y"
            10 run.status.changed paused (approval)
            11 approval.resolved a[1] apr2 approved by bob
            12 run.status.changed running (approval)
            13 node.started a[1] attempt=1 dispatch=1
            14 node.completed a[1] {"n":1,"approved":true,"by":"bob","comment":null}
            15 run.status.changed paused (approval)
            status: paused (approval)
            16 approval.resolved a[0] apr1 approved by bob
            17 run.status.changed running (approval)
            18 node.started a[0] attempt=1 dispatch=1
            19 node.completed a[0] {"n":0,"approved":true,"by":"bob","comment":null}
            20 node.completed a {"items":[{"n":0,"approved":true,"by":"bob","at":"2023-11-14T22:13:20.000Z","comment":null},{"n":1,"approved":true,"by":"bob","at":"2023-11-14T22:13:20.000Z","comment":null}]}
            21 run.completed {}
        "#]],
    );
}

#[test]
fn an_unknown_approval_cannot_be_decided() {
    check(
        Script::flow("steps: [{id: a, command: go}]").approve("a"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        refused: approval_unknown (this run has no approval apr1)
    "#]],
    );
}

#[test]
fn a_step_asked_again_is_granted_as_it_will_be_asked() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: 'count ${a.outputs.x}', approval: required, outputs: {n: integer}, repair: {reask: 1}}
            ",
        )
        .complete("a", json!({"x": 1}))
        .approve("b")
        .complete("b", json!({}))
        .approve("b")
        .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":1}
            5 node.queued b
            6 node.provenance b command <- a outputs.x
            7 governance.decided b "hold" null
            8 approval.requested b apr1 step "Let `b` do this?\ncount 1"
            9 run.status.changed paused (approval)
            10 approval.resolved b apr1 approved by bob
            11 run.status.changed running (approval)
            12 node.started b attempt=1 dispatch=1
            13 node.retried b attempt=1 contract_violated delay=0 reask
            14 node.waiting b retry_backoff attempt=2 contract_violated delay=0
            15 node.queued b
            16 governance.decided b "hold" null
            17 approval.requested b apr2 step "Let `b` do this?\ncount 1\n\nYour last answer was not accepted: n is required" command: "count 1" -> "count 1\n\nYour last answer was not accepted: n is required"
            18 run.status.changed paused (approval)
            19 approval.resolved b apr2 approved by bob
            20 run.status.changed running (approval)
            21 node.started b attempt=2 dispatch=2
            b is given {} and "count 1\n\nYour last answer was not accepted: n is required"
        "#]],
    );
}
