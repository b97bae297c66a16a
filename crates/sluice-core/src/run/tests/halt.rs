//! The effect of a failure on the other steps of a run.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::{Auth, ProviderError};
use expect_test::expect;
use serde_json::json;

#[test]
fn a_failure_halts_the_run_while_what_is_in_flight_drains() {
    check(
        Script::flow(
            "
            max_parallel: 2
            steps:
              - {id: a, command: go}
              - {id: b, command: go}
              - {id: c, command: go}
              - {id: after_a, command: go, depends_on: [a]}
              - {id: after_after_a, command: go, depends_on: [after_a]}
              - {id: after_b, command: go, depends_on: [b]}
            ",
        )
        .fail("a", Auth)
        .show_due()
        .complete("b", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            7 node.failed a auth: it broke
            8 node.failed after_a upstream_failure: Blocked by upstream failure
            9 node.failed after_after_a upstream_failure: Blocked by upstream failure
            10 node.cancelled c run_halted: the run was halted by `a`
            11 node.cancelled after_b run_halted: the run was halted by `a`
            due: b dispatch=1 key=f472e5
            12 node.completed b {}
            13 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn fail_fast_stops_what_is_in_flight() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, parallel_failure_policy: fail_fast}
              - {id: b, command: go}
              - {id: ask, approval: required}
              - {id: w, command: go, retry: {attempts: 2}}
            ",
        )
        .fail("w", ProviderError)
        .fail("a", Auth),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 node.queued b
            5 node.queued w
            6 approval.requested ask apr1 step "Approve `ask`?"
            7 node.started a attempt=1 dispatch=1
            8 node.started b attempt=1 dispatch=1
            9 node.started w attempt=1 dispatch=1
            10 node.retried w attempt=1 provider_error delay=492
            11 node.waiting w retry_backoff attempt=2 provider_error delay=492
            12 node.failed a auth: it broke
            13 node.cancelled b condition_failed: stopped because `a` failed
            14 approval.resolved ask apr1 cancelled
            15 node.cancelled ask run_halted: the run was halted by `a`
            16 node.cancelled w run_halted: the run was halted by `a`
            17 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_halted_run_retries_nothing_that_was_in_flight() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go, retry: {attempts: 3}}
              - {id: c, command: go, on_failure: retry_once_then_escalate}
            ",
        )
        .fail("a", Auth)
        .fail("b", ProviderError)
        .fail("c", ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            7 node.started c attempt=1 dispatch=1
            8 node.failed a auth: it broke
            9 node.failed b provider_error: it broke
            10 node.failed c provider_error: it broke
            11 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_dependent_that_skips_keeps_its_branch_alive() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: good, command: go}
              - {id: skips, command: go, depends_on: [a], on_parent_failure: skip}
              - {id: frees, command: go, depends_on: [skips, good], retry: {attempts: 2}}
              - {id: last, command: go, depends_on: [frees]}
              - {id: else_where, command: go, depends_on: [good]}
            ",
        )
        .fail("a", Auth)
        .complete("good", json!({}))
        .fail("frees", ProviderError)
        .advance("1s")
        .complete("frees", json!({}))
        .complete("last", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued good
            4 node.started a attempt=1 dispatch=1
            5 node.started good attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.skipped skips parent_failure: `a` failed
            8 node.cancelled else_where run_halted: the run was halted by `a`
            9 node.completed good {}
            10 node.queued frees
            11 node.started frees attempt=1 dispatch=1
            12 node.retried frees attempt=1 provider_error delay=391
            13 node.waiting frees retry_backoff attempt=2 provider_error delay=391
            after 391ms
            14 node.started frees attempt=2 dispatch=2
            after 1s
            15 node.completed frees {}
            16 node.queued last
            17 node.started last attempt=1 dispatch=1
            18 node.completed last {}
            19 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_dependent_that_substitutes_runs_with_nothing_for_what_is_missing() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, outputs: {x: string}}
              - id: b
                command: 'got <${a.outputs.x}> and <${y}>'
                on_parent_failure: substitute_default
                inputs: {y: {from: a.x, default: none}}
              - {id: c, command: go, depends_on: [b]}
              - {id: d, command: go, depends_on: [a]}
            ",
        )
        .fail("a", Auth)
        .show_prompt("b")
        .complete("b", json!({}))
        .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 node.failed d upstream_failure: Blocked by upstream failure
            6 node.queued b
            7 node.provenance b inputs.y <- a x (substitute_default)
            8 node.provenance b command <- a outputs.x (substitute_default)
            9 node.started b attempt=1 dispatch=1
            b is given {"y":"none"} and "got <> and <none>"
            10 node.completed b {"y":"none"}
            11 node.queued c
            12 node.started c attempt=1 dispatch=1
            13 node.completed c {}
            14 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_surviving_branch_that_needs_a_halted_step_fails_with_it() {
    check(
        Script::flow(
            "
            max_parallel: 1
            steps:
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [a], on_parent_failure: substitute_default}
              - {id: cut, command: go}
              - {id: join, command: go, depends_on: [b, cut], parallel_failure_policy: fail_fast}
            ",
        )
        .fail("a", Auth)
        .complete("b", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued cut
            4 node.started a attempt=1 dispatch=1
            5 node.failed a auth: it broke
            6 node.cancelled cut run_halted: the run was halted by `a`
            7 node.queued b
            8 node.started b attempt=1 dispatch=1
            9 node.completed b {}
            10 node.failed join upstream_failure: Blocked by upstream failure
            11 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn the_failure_that_halted_a_run_is_the_one_it_is_told_by() {
    check(
        Script::flow("steps: [{id: b, command: go}, {id: a, command: go}]")
            .fail("b", Auth)
            .fail("a", ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.failed b auth: it broke
            7 node.failed a provider_error: it broke
            8 run.failed auth: `b` failed: it broke
        "#]],
    );
}
