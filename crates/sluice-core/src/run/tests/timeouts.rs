//! Attempts and runs that time out.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use expect_test::expect;
use serde_json::json;

#[test]
fn each_attempt_has_its_time_and_the_last_ends_in_timed_out() {
    check(
        Script::flow("steps: [{id: a, command: go, timeout: 5s, retry: {attempts: 2}}]")
            .advance("5s")
            .show(|world| world.run.state(world.at("a")).status().to_string())
            .advance("10s")
            .complete_dispatch("a", 2),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 5s
            4 node.retried a attempt=1 timeout delay=391
            5 node.waiting a retry_backoff attempt=2 timeout delay=391
            retrying
            after 5391ms
            6 node.started a attempt=2 dispatch=2
            after 10391ms
            7 node.timed_out a timeout: the attempt took longer than 5s
            8 run.failed timeout: `a` failed: the attempt took longer than 5s
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
}

#[test]
fn a_timeout_can_be_skipped() {
    check(
        Script::flow("steps: [{id: a, command: go, timeout: 5s, on_failure: skip}]").advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 5s
            4 node.skipped a failure: the attempt took longer than 5s [timeout]
            5 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_that_takes_too_long_stops_everything() {
    check(
        Script::flow(
            "
            timeout: 10s
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required}
              - {id: b, command: go, retry: {attempts: 2, backoff_ms: 60000, max_backoff_ms: 60000}}
              - {id: c, command: go, depends_on: [a]}
              - {id: each, command: go, for_each: [1, 2], max_parallel: 1}
            ",
        )
        .fail("b", ProviderError)
        .advance("1m"),
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
            13 node.retried b attempt=1 provider_error delay=59130
            14 node.waiting b retry_backoff attempt=2 provider_error delay=59130
            after 10s
            15 node.cancelled a timeout: the run took longer than 10s
            16 node.cancelled each[0] timeout: the run took longer than 10s
            17 approval.resolved ask apr1 cancelled
            18 node.cancelled ask timeout: the run took longer than 10s
            19 node.cancelled b timeout: the run took longer than 10s
            20 node.cancelled c timeout: the run took longer than 10s
            21 node.cancelled each[1] timeout: the run took longer than 10s
            22 node.cancelled each timeout: the run took longer than 10s
            23 run.timed_out 10s
        "#]],
    );
}

#[test]
fn the_time_of_a_run_does_not_pass_while_only_people_are_waited_for() {
    check(
        Script::flow(
            "
            timeout: 10s
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required, depends_on: [a]}
              - {id: b, command: go, depends_on: [ask]}
            ",
        )
        .advance("4s")
        .complete("a", json!({}))
        .advance("30m")
        .pause()
        .advance("5m")
        .unpause()
        .approve("ask")
        .advance("5s")
        .show_status()
        .advance("1s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 4s
            4 node.completed a {}
            5 node.queued ask
            6 approval.requested ask apr1 step "Approve `ask`?"
            7 run.status.changed paused (approval)
            after 1804s
            8 run.status.changed paused (operator) by ada
            after 2104s
            9 run.status.changed running (operator) by ada
            10 run.status.changed paused (approval)
            11 approval.resolved ask apr1 approved by bob
            12 run.status.changed running (approval)
            13 node.completed ask {"approved":true,"by":"bob","comment":null}
            14 node.queued b
            15 node.started b attempt=1 dispatch=1
            status: running
            after 2110s
            16 node.cancelled b timeout: the run took longer than 10s
            17 run.timed_out 10s
        "#]],
    );
}

#[test]
fn the_time_of_a_run_passes_while_an_operator_holds_it() {
    check(
        Script::flow("timeout: 10s\nsteps: [{id: a, command: go}]").pause().advance("10s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed paused (operator) by ada
            after 10s
            5 node.cancelled a timeout: the run took longer than 10s
            6 run.timed_out 10s
        "#]],
    );
}
