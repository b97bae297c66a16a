//! An operator's pause.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::ProviderError;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_paused_run_starts_nothing_and_takes_what_comes() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [a]}
              - {id: c, command: go, on_failure: retry}
            ",
        )
        .pause()
        .pause()
        .show_status()
        .complete("a", json!({}))
        .fail("c", ProviderError)
        .advance("1s")
        .show_due()
        .unpause()
        .unpause()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued c
            4 node.started a attempt=1 dispatch=1
            5 node.started c attempt=1 dispatch=1
            6 run.status.changed paused (operator) by ada
            status: paused (operator)
            7 node.completed a {}
            8 node.retried c attempt=1 provider_error delay=1000
            9 node.waiting c retry_backoff attempt=2 provider_error delay=1000
            after 1s
            10 node.queued c
            due: 
            11 run.status.changed running (operator) by ada
            12 node.queued b
            13 node.started b attempt=1 dispatch=1
            14 node.started c attempt=2 dispatch=2
            refused: run_not_paused (the run is not paused by an operator)
            15 node.completed b {"n":1}
            16 node.completed c {"n":2}
            17 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_waiting_for_people_can_be_paused_too_and_says_so_again_afterwards() {
    check(
        Script::flow(
            "steps: [{id: ask, approval: required}, {id: b, command: go, depends_on: [ask]}]",
        )
        .show_status()
        .pause()
        .show_status()
        .unpause()
        .show_status()
        .pause()
        .approve("ask")
        .show_due()
        .unpause()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            status: paused (approval)
            5 run.status.changed paused (operator) by ada
            status: paused (operator)
            6 run.status.changed running (operator) by ada
            7 run.status.changed paused (approval)
            status: paused (approval)
            8 run.status.changed paused (operator) by ada
            9 approval.resolved ask apr1 approved by bob
            10 node.completed ask {"approved":true,"by":"bob","comment":null}
            due: 
            11 run.status.changed running (operator) by ada
            12 node.queued b
            13 node.started b attempt=1 dispatch=1
            14 node.completed b {"n":1}
            15 run.completed {}
        "#]],
    );
}
