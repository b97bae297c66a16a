//! Failures that are escalated to a person.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::{ProviderError, Timeout};
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;

fn escalated() -> Script {
    Script::flow(
        "
        steps:
          - {id: a, command: go, on_failure: retry_once_then_escalate}
          - {id: b, command: go}
          - {id: c, command: go, depends_on: [a, b]}
        ",
    )
    .complete("b", json!({}))
    .fail("a", ProviderError)
    .fail("a", Timeout)
}

#[test]
fn a_person_may_let_the_step_be_tried_again_but_is_asked_only_once() {
    check(
        escalated()
            .show_status()
            .approve("a")
            .resolve("a", Decision::Retry, None)
            .fail("a", ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed b {}
            7 node.retried a attempt=1 provider_error delay=0
            8 node.waiting a retry_backoff attempt=2 provider_error delay=0
            9 node.started a attempt=2 dispatch=2
            10 approval.requested a apr1 escalation "`a` failed: it broke. Retry, skip or abort?"
            11 run.status.changed paused (approval)
            status: paused (approval)
            refused: wrong_decision (this approval takes retry, skip or abort)
            12 approval.resolved a apr1 retry by bob
            13 run.status.changed running (approval)
            14 node.started a attempt=3 dispatch=3
            15 node.failed a provider_error: it broke
            16 node.failed c upstream_failure: Blocked by upstream failure
            17 run.failed provider_error: `a` failed: it broke
        "#]],
    );
    check(
        escalated().resolve("a", Decision::Retry, None).complete("a", json!({})).answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed b {}
            7 node.retried a attempt=1 provider_error delay=0
            8 node.waiting a retry_backoff attempt=2 provider_error delay=0
            9 node.started a attempt=2 dispatch=2
            10 approval.requested a apr1 escalation "`a` failed: it broke. Retry, skip or abort?"
            11 run.status.changed paused (approval)
            12 approval.resolved a apr1 retry by bob
            13 run.status.changed running (approval)
            14 node.started a attempt=3 dispatch=3
            15 node.completed a {}
            16 node.queued c
            17 node.started c attempt=1 dispatch=1
            18 node.completed c {"n":2}
            19 run.completed {}
        "#]],
    );
}

#[test]
fn a_person_may_go_on_without_the_step() {
    check(
        escalated().resolve("a", Decision::Skip, None).answer_all(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.completed b {}
        7 node.retried a attempt=1 provider_error delay=0
        8 node.waiting a retry_backoff attempt=2 provider_error delay=0
        9 node.started a attempt=2 dispatch=2
        10 approval.requested a apr1 escalation "`a` failed: it broke. Retry, skip or abort?"
        11 run.status.changed paused (approval)
        12 approval.resolved a apr1 skip by bob
        13 run.status.changed running (approval)
        14 node.skipped a decision: a person chose to go on without it [timeout]
        15 node.queued c
        16 node.started c attempt=1 dispatch=1
        17 node.completed c {"n":2}
        18 run.completed {}
    "#]],
    );
}

#[test]
fn a_person_may_give_up() {
    check(
        escalated().resolve("a", Decision::Abort, None),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.completed b {}
        7 node.retried a attempt=1 provider_error delay=0
        8 node.waiting a retry_backoff attempt=2 provider_error delay=0
        9 node.started a attempt=2 dispatch=2
        10 approval.requested a apr1 escalation "`a` failed: it broke. Retry, skip or abort?"
        11 run.status.changed paused (approval)
        12 approval.resolved a apr1 abort by bob
        13 run.status.changed running (approval)
        14 node.timed_out a timeout: it broke
        15 node.failed c upstream_failure: Blocked by upstream failure
        16 run.failed timeout: `a` failed: it broke
    "#]],
    );
}

#[test]
fn an_escalation_that_expires_ends_like_an_aborted_one() {
    let told = escalated().advance("7d").world().told;
    let last: Vec<&str> =
        told.lines().skip_while(|line| !line.contains("168h") && !line.contains("7d")).collect();
    expect![[r#"
        after 7d
        15 approval.resolved a apr1 expired
        16 run.status.changed running (approval)
        17 node.timed_out a timeout: it broke
        18 node.failed c upstream_failure: Blocked by upstream failure
        19 run.failed timeout: `a` failed: it broke"#]]
    .assert_eq(&last.join("\n"));
}

#[test]
fn to_try_again_is_no_grant_of_what_needs_one() {
    check(
        Script::flow(
            "steps: [{id: a, command: pay, approval: {covers_retries: false}, on_failure: retry_once_then_escalate}]",
        )
        .approve("a")
        .fail("a", ProviderError)
        .approve("a")
        .fail("a", ProviderError)
        .resolve("a", Decision::Retry, None)
        .show_due()
        .approve("a")
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
            9 node.retried a attempt=1 provider_error delay=0
            10 node.waiting a retry_backoff attempt=2 provider_error delay=0
            11 node.queued a
            12 governance.decided a "hold" null
            13 approval.requested a apr2 step "Let `a` do this?\npay"
            14 run.status.changed paused (approval)
            15 approval.resolved a apr2 approved by bob
            16 run.status.changed running (approval)
            17 node.started a attempt=2 dispatch=2
            18 approval.requested a apr3 escalation "`a` failed: it broke. Retry, skip or abort?"
            19 run.status.changed paused (approval)
            20 approval.resolved a apr3 retry by bob
            21 run.status.changed running (approval)
            22 governance.decided a "hold" null
            23 approval.requested a apr4 step "Let `a` do this?\npay"
            24 run.status.changed paused (approval)
            due: 
            25 approval.resolved a apr4 approved by bob
            26 run.status.changed running (approval)
            27 node.started a attempt=3 dispatch=3
            28 node.completed a {"approved":true,"by":"bob","comment":null}
            29 run.completed {}
        "#]],
    );
}
