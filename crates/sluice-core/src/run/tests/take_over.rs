//! A node takes over a run whose owner died.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;

#[test]
fn what_was_in_flight_is_sent_again_as_the_same_attempt() {
    check(
        Script::flow(
            "steps: [{id: a, command: go, timeout: 10s}, {id: b, command: go, depends_on: [a]}]",
        )
        .process("a")
        .stream("a", "half")
        .show_due()
        .advance("9s")
        .take_over()
        .show_due()
        .complete_dispatch("a", 1)
        .stream("a", "whole")
        .complete("a", json!({}))
        .take_over()
        .complete("b", json!({}))
        .take_over(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.log a process 77
            5 node.stream.delta a index=0 Text("half")
            due: a dispatch=1 key=b51ada
            after 9s
            6 run.status.changed running (taken_over)
            7 node.started a attempt=1 dispatch=2
            due: a dispatch=2 key=b51ada
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            8 node.stream.delta a index=1 Text("whole")
            9 node.completed a {}
            10 node.queued b
            11 node.started b attempt=1 dispatch=1
            12 run.status.changed running (taken_over)
            13 node.started b attempt=1 dispatch=2
            14 node.completed b {}
            15 run.completed {}
        "#]],
    );
}

#[test]
fn what_must_not_be_repeated_is_asked_about_once() {
    check(
        Script::flow("steps: [{id: a, command: pay, idempotent: false, on_failure: retry}]")
            .take_over()
            .resolve("a", Decision::Retry, None)
            .take_over(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 approval.requested a apr1 escalation "`a` failed: the engine stopped while it was under way, and it must not be repeated. Retry, skip or abort?"
            6 run.status.changed paused (approval)
            7 approval.resolved a apr1 retry by bob
            8 run.status.changed running (approval)
            9 node.started a attempt=2 dispatch=2
            10 run.status.changed running (taken_over)
            11 node.failed a unknown_outcome: the engine stopped while it was under way, and it must not be repeated
            12 run.failed unknown_outcome: `a` failed: the engine stopped while it was under way, and it must not be repeated
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: pay, idempotent: false}]").take_over().resolve(
            "a",
            Decision::Skip,
            None,
        ),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed running (taken_over)
            5 approval.requested a apr1 escalation "`a` failed: the engine stopped while it was under way, and it must not be repeated. Retry, skip or abort?"
            6 run.status.changed paused (approval)
            7 approval.resolved a apr1 skip by bob
            8 run.status.changed running (approval)
            9 node.skipped a decision: a person chose to go on without it [unknown_outcome]
            10 run.completed {}
        "#]],
    );
}

#[test]
fn work_that_goes_on_elsewhere_is_waited_for() {
    check(
        Script::flow("steps: [{id: a, command: go, idempotent: false}]")
            .accepted("a")
            .accepted("a")
            .show(|world| format!("{:?}", world.run.state(world.at("a")).phase.waiting()))
            .show_due()
            .take_over()
            .show_due()
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.waiting a external_callback attempt=1 delay=0
            Some(ExternalCallback)
            due: 
            5 run.status.changed running (taken_over)
            due: 
            6 node.completed a {}
            7 run.completed {}
        "#]],
    );
}

#[test]
fn a_child_run_is_waited_for() {
    check(
        Script::flow("steps: [{id: a, workflow_ref: other}]")
            .knows("other")
            .take_over()
            .show_due()
            .complete("a", json!({}))
            .accepted("a")
            .show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 run.status.changed running (taken_over)
            due: a child1
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            due: a child1
        "#]],
    );
}

#[test]
fn a_wait_or_a_question_stays_what_it_is() {
    check(
        Script::flow(
            "steps: [{id: a, command: go, on_failure: retry}, {id: ask, approval: required}]",
        )
        .fail("a", ProviderError)
        .take_over()
        .advance("1s")
        .complete("a", json!({}))
        .take_over()
        .show_status()
        .approve("ask"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 approval.requested ask apr1 step "Approve `ask`?"
            5 node.started a attempt=1 dispatch=1
            6 node.retried a attempt=1 provider_error delay=1000
            7 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            8 run.status.changed running (taken_over)
            after 1s
            9 node.started a attempt=2 dispatch=2
            10 node.completed a {}
            11 run.status.changed paused (approval)
            12 run.status.changed paused (taken_over)
            status: paused (approval)
            13 approval.resolved ask apr1 approved by bob
            14 run.status.changed running (approval)
            15 node.completed ask {"approved":true,"by":"bob","comment":null}
            16 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_that_is_being_cancelled_is_cancelled_for_the_reason_given() {
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go}]")
            .accepted("b")
            .cancel()
            .take_over()
            .complete("b", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.waiting b external_callback attempt=1 delay=0
            7 run.status.changed cancelling (not needed) by ada
            8 run.status.changed cancelling (taken_over)
            9 node.cancelled a cancelled: not needed
            10 node.cancelled b cancelled: not needed
            11 run.cancelled not needed
        "#]],
    );
}

#[test]
fn instances_are_sent_again_too() {
    check(
        Script::flow(
            "steps: [{id: a, command: go, for_each: {items: [1, 2, 3], max_parallel: 2}}]",
        )
        .complete("a[0]", json!({}))
        .take_over()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a items=3
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.queued a[2]
            7 node.started a[0] attempt=1 dispatch=1
            8 node.started a[1] attempt=1 dispatch=1
            9 node.completed a[0] {}
            10 node.started a[2] attempt=1 dispatch=1
            11 run.status.changed running (taken_over)
            12 node.started a[1] attempt=1 dispatch=2
            13 node.started a[2] attempt=1 dispatch=2
            14 node.completed a[1] {"n":0}
            15 node.completed a[2] {"n":0}
            16 node.completed a {"items":[{},{"n":0},{"n":0}]}
            17 run.completed {}
        "#]],
    );
}

#[test]
fn what_a_lost_attempt_stops_is_not_sent_again() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: pay, idempotent: false, parallel_failure_policy: fail_fast}
              - {id: b, command: go}
            ",
        )
        .take_over()
        .resolve("a", Decision::Retry, None)
        .take_over(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 run.status.changed running (taken_over)
            7 approval.requested a apr1 escalation "`a` failed: the engine stopped while it was under way, and it must not be repeated. Retry, skip or abort?"
            8 node.started b attempt=1 dispatch=2
            9 approval.resolved a apr1 retry by bob
            10 node.started a attempt=2 dispatch=2
            11 run.status.changed running (taken_over)
            12 node.failed a unknown_outcome: the engine stopped while it was under way, and it must not be repeated
            13 node.cancelled b condition_failed: stopped because `a` failed
            14 run.failed unknown_outcome: `a` failed: the engine stopped while it was under way, and it must not be repeated
        "#]],
    );
}

#[test]
fn a_step_asked_again_and_then_lost_is_sent_what_it_was_sent() {
    check(
        Script::flow(
            "steps: [{id: a, command: count, idempotent: false, outputs: {n: integer}, repair: {reask: 1}}]",
        )
        .complete("a", json!({}))
        .take_over()
        .resolve("a", Decision::Retry, None)
        .show_prompt("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 contract_violated delay=0 reask
            5 node.waiting a retry_backoff attempt=2 contract_violated delay=0
            6 node.started a attempt=2 dispatch=2
            7 run.status.changed running (taken_over)
            8 approval.requested a apr1 escalation "`a` failed: the engine stopped while it was under way, and it must not be repeated. Retry, skip or abort?"
            9 run.status.changed paused (approval)
            10 approval.resolved a apr1 retry by bob
            11 run.status.changed running (approval)
            12 node.started a attempt=3 dispatch=3
            a is given {} and "count\n\nYour last answer was not accepted: n is required"
        "#]],
    );
}
