//! Failed runs that the engine retries.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::Auth;
use expect_test::expect;
use serde_json::json;

const TWICE: &str = "
    recovery: {max: 2, after: 10s}
    steps:
      - {id: a, command: go}
      - {id: b, command: go, depends_on: [a]}
";

#[test]
fn a_failed_run_is_taken_up_again_after_its_time_and_recovers() {
    check(
        Script::flow(TWICE)
            .complete("a", json!({}))
            .fail("b", Auth)
            .advance("9s")
            .show_status()
            .advance("1s")
            .complete("b", json!({}))
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            7 node.failed b auth: it broke
            8 run.failed auth: `b` failed: it broke
            status: failed
            after 10s
            9 run.status.changed running (recovery) by engine
            10 node.invalidated b
            11 node.queued b
            12 node.started b attempt=1 dispatch=2
            13 node.completed b {}
            14 run.recovered
            15 run.completed {}
            status: completed
        "#]],
    );
}

#[test]
fn it_is_taken_up_no_more_often_than_its_workflow_says() {
    check(
        Script::flow("recovery: {max: 2, after: 1s}\nsteps: [{id: a, command: go}]")
            .fail("a", Auth)
            .advance("1s")
            .fail("a", Auth)
            .advance("1s")
            .fail("a", Auth)
            .advance("1h")
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            after 1s
            6 run.status.changed running (recovery) by engine
            7 node.invalidated a
            8 node.queued a
            9 node.started a attempt=1 dispatch=2
            10 node.failed a auth: it broke
            11 run.failed auth: `a` failed: it broke
            after 2s
            12 run.status.changed running (recovery) by engine
            13 node.invalidated a
            14 node.queued a
            15 node.started a attempt=1 dispatch=3
            16 node.failed a auth: it broke
            17 run.failed auth: `a` failed: it broke
            status: failed
        "#]],
    );
}

#[test]
fn a_retry_by_a_person_is_not_one_of_them() {
    check(
        Script::flow("recovery: {max: 1, after: 1s}\nsteps: [{id: a, command: go}]")
            .fail("a", Auth)
            .retry()
            .fail("a", Auth)
            .advance("1s")
            .fail("a", Auth)
            .advance("1h")
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            6 run.status.changed running (retry) by ada
            7 node.invalidated a
            8 node.queued a
            9 node.started a attempt=1 dispatch=2
            10 node.failed a auth: it broke
            11 run.failed auth: `a` failed: it broke
            after 1s
            12 run.status.changed running (recovery) by engine
            13 node.invalidated a
            14 node.queued a
            15 node.started a attempt=1 dispatch=3
            16 node.failed a auth: it broke
            17 run.failed auth: `a` failed: it broke
            status: failed
        "#]],
    );
}

#[test]
fn a_run_that_is_cancelled_before_its_time_is_not_taken_up() {
    check(
        Script::flow(TWICE).fail("a", Auth).cancel().advance("1h").show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed auth: `a` failed: it broke
            7 run.status.changed cancelling (not needed) by ada
            8 run.failed auth: `a` failed: it broke; then the run was cancelled: not needed
            status: failed
        "#]],
    );
}

#[test]
fn a_run_that_took_too_long_is_not_taken_up() {
    check(
        Script::flow("timeout: 5s\nrecovery: {max: 1, after: 1s}\nsteps: [{id: a, command: go}]")
            .advance("1h")
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 5s
            4 node.cancelled a timeout: the run took longer than 5s
            5 run.timed_out 5s
            status: timed_out
        "#]],
    );
}

#[test]
fn what_no_other_attempt_would_change_is_left_to_people() {
    let flow = "
        recovery: {max: 1, after: 1s}
        steps:
          - {id: a, command: go}
          - {id: b, command: '${a.outputs.missing}'}
    ";
    check(
        Script::flow(flow).complete("a", json!({})).advance("1h").show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            6 node.failed b unresolved_variable: `a.outputs.missing` has no value
            7 run.failed unresolved_variable: `b` failed: `a.outputs.missing` has no value
            status: failed
        "#]],
    );
}

#[test]
fn a_child_fails_to_its_parent_and_not_twice() {
    let child = Script::flow("recovery: {max: 1, after: 1s}\nsteps: [{id: a, command: go}]")
        .started_by_a_step();
    check(
        child.fail("a", Auth).advance("1h").show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"failed","outputs":null,"error":["auth","`a` failed: it broke"],"origins":[]}
            status: failed
        "#]],
    );
}
