//! Cancelling a run.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::{Auth, Cancelled, ProviderError};
use crate::run::command::Command;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_cancel_stops_what_waits_and_ends_the_run_when_what_flies_has_stopped() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required}
              - {id: b, command: go, retry: {attempts: 2}}
              - {id: c, command: go, depends_on: [a]}
              - {id: each, command: go, for_each: [1, 2], max_parallel: 1}
            ",
        )
        .fail("b", ProviderError)
        .cancel()
        .cancel()
        .show_due()
        .show(|world| format!("stopping: {}", world.run.is_stopping()))
        .fail("a", Cancelled)
        .complete("each[0]", json!({}))
        .cancel()
        .retry()
        .rewind(&[])
        .pause(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 node.queued b
            5 node.queued each items=2
            6 node.started each attempt=1 dispatch=1 fan_out
            7 node.queued each[0]
            8 node.queued each[1]
            9 approval.requested ask apr1 step "Approve `ask`?"
            10 node.started a attempt=1 dispatch=1
            11 node.started b attempt=1 dispatch=1
            12 node.started each[0] attempt=1 dispatch=1
            13 node.retried b attempt=1 provider_error delay=492
            14 node.waiting b retry_backoff attempt=2 provider_error delay=492
            15 run.status.changed cancelling (not needed) by ada
            16 approval.resolved ask apr1 cancelled
            17 node.cancelled ask cancelled: not needed
            18 node.cancelled b cancelled: not needed
            19 node.cancelled c cancelled: not needed
            20 node.cancelled each[1] cancelled: not needed
            due: a dispatch=1 key=b51ada, each[0] dispatch=1 key=c5a5e0
            stopping: true
            21 node.cancelled a cancelled: not needed
            22 node.cancelled each[0] cancelled: not needed
            23 node.cancelled each cancelled: not needed
            24 run.cancelled not needed
            refused: run_not_failed (only a run that failed can be retried; this one is cancelled)
            refused: run_ended (the run is cancelled already)
            refused: run_ended (the run is cancelled already)
        "#]],
    );
}

#[test]
fn a_cancel_ends_at_once_a_run_that_only_waits() {
    check(
        Script::flow("steps: [{id: ask, approval: required}]").cancel(),
        expect![[r#"
        1 run.started
        2 node.queued ask
        3 approval.requested ask apr1 step "Approve `ask`?"
        4 run.status.changed paused (approval)
        5 run.status.changed cancelling (not needed) by ada
        6 approval.resolved ask apr1 cancelled
        7 node.cancelled ask cancelled: not needed
        8 run.cancelled not needed
    "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry}]")
            .fail("a", ProviderError)
            .cancel(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=1000
            5 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            6 run.status.changed cancelling (not needed) by ada
            7 node.cancelled a cancelled: not needed
            8 run.cancelled not needed
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]")
            .pause()
            .complete("a", json!({}))
            .cancel(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed paused (operator) by ada
            5 node.completed a {}
            6 run.status.changed cancelling (not needed) by ada
            7 node.cancelled b cancelled: not needed
            8 run.cancelled not needed
        "#]],
    );
}

#[test]
fn what_does_not_stop_in_time_is_left_behind() {
    check(
        Script::flow("steps: [{id: a, command: go, timeout: 5s, on_failure: retry}]")
            .cancel()
            .advance("5s")
            .complete_dispatch("a", 1),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed cancelling (not needed) by ada
            after 5s
            5 node.cancelled a cancelled: it did not stop in time
            6 run.cancelled not needed
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
    check(
        Script::flow("timeout: 3s\nsteps: [{id: a, command: go, timeout: 5s}]")
            .cancel()
            .advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed cancelling (not needed) by ada
            after 3s
            5 node.cancelled a cancelled: it did not stop in time
            6 run.cancelled not needed
        "#]],
    );
}

#[test]
fn a_run_that_has_ended_cannot_be_cancelled() {
    check(
        Script::flow("steps: [{id: a, command: go}]").answer_all().cancel().show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"n":0}
            5 run.completed {}
            refused: run_ended (the run is completed already)
            status: completed
        "#]],
    );
}

#[test]
fn a_cancel_in_the_turn_of_a_result_comes_after_it() {
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]")
            .complete("a", json!({}))
            .and(Script::cancel),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 run.status.changed cancelling (not needed) by ada
            6 node.cancelled b cancelled: not needed
            7 run.cancelled not needed
        "#]],
    );
}

#[test]
fn whatever_a_person_writes_is_only_a_reason() {
    for reason in ["retry", "rewind", "operator", "approval", "taken_over"] {
        let reason = reason.to_owned();
        let run = Script::flow("steps: [{id: a, command: go}, {id: b, command: go}]")
            .fail("a", ProviderError)
            .turn(move |_| Command::Cancel { by: "ada".to_owned(), reason: reason.clone() })
            .fail("b", Cancelled)
            .run();
        assert_eq!((run.status, run.reopened), (RunStatus::Failed, 0));
        assert!(run.halted_by.is_some(), "the failure is still known");
    }
}

#[test]
fn a_cancel_after_a_failure_ends_failed_and_stays_final() {
    let lens = Script::lens(
        "
        recovery: {max: 3, after: 1s}
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}, {id: c, lens_id: l}]
        edges: [{source_node_id: b, target_node_id: c}]
        ",
    );
    check(
        lens.fail("a", Auth)
            .cancel()
            .fail("b", Cancelled)
            .cancel()
            .retry()
            .rewind(&[])
            .advance("2s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 run.status.changed cancelling (not needed) by ada
            8 node.cancelled c cancelled: not needed
            9 node.cancelled b cancelled: not needed
            10 run.failed auth: `a` failed: it broke; then the run was cancelled: not needed
            refused: run_not_failed (only a run that failed can be retried; this one is cancelled)
            refused: run_ended (the run is cancelled already)
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go}]")
            .fail("a", Auth)
            .cancel()
            .fail("b", Cancelled),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 run.status.changed cancelling (not needed) by ada
            8 node.cancelled b cancelled: not needed
            9 run.failed auth: `a` failed: it broke; then the run was cancelled: not needed
        "#]],
    );
}
