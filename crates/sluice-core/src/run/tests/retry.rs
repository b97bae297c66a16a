//! Retries of failed attempts.

use super::{Script, check};
use crate::journal::event::{Event, StepEvent};
use crate::port::adapter::CallErrorCode::{Auth, ProviderError, RateLimit, Timeout};
use expect_test::expect;
use serde_json::json;

#[test]
fn retry_once_tries_again_at_once_and_then_halts() {
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry_once}]")
            .show_due()
            .fail("a", Auth)
            .show_due()
            .fail("a", Auth),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada
            4 node.retried a attempt=1 auth delay=0
            5 node.waiting a retry_backoff attempt=2 auth delay=0
            6 node.started a attempt=2 dispatch=2
            due: a dispatch=2 key=f21fe0
            7 node.failed a auth: it broke
            8 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn retry_tries_again_after_one_two_and_four_seconds() {
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry}]")
            .fail("a", ProviderError)
            .advance("1s")
            .fail("a", ProviderError)
            .advance("2s")
            .fail("a", ProviderError)
            .advance("3999ms")
            .advance("1ms")
            .fail("a", ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 provider_error delay=1000
            5 node.waiting a retry_backoff attempt=2 provider_error delay=1000
            after 1s
            6 node.started a attempt=2 dispatch=2
            7 node.retried a attempt=2 provider_error delay=2000
            8 node.waiting a retry_backoff attempt=3 provider_error delay=2000
            after 3s
            9 node.started a attempt=3 dispatch=3
            10 node.retried a attempt=3 provider_error delay=4000
            11 node.waiting a retry_backoff attempt=4 provider_error delay=4000
            after 7s
            12 node.started a attempt=4 dispatch=4
            13 node.failed a provider_error: it broke
            14 run.failed provider_error: `a` failed: it broke
        "#]],
    );
}

#[test]
fn a_retry_map_doubles_its_delay_up_to_a_bound_with_chance_in_it() {
    let mut script = Script::flow(
        "steps: [{id: a, command: go, retry: {attempts: 8, backoff_ms: 100, max_backoff_ms: 1000}}]",
    );
    for _ in 0..8 {
        script = script.fail("a", ProviderError).advance("2s");
    }
    let delays = script.events().into_iter().filter_map(|event| match event {
        Event::Step(_, StepEvent::Retried(retried)) => Some(retried.delay_ms),
        _ => None,
    });
    let delays: Vec<u64> = delays.collect();
    assert_eq!(delays.len(), 7);
    for (delay_ms, full_ms) in delays.iter().zip([100, 200, 400, 800, 1000, 1000, 1000]) {
        assert!((full_ms / 2..=full_ms).contains(delay_ms), "{delay_ms} of {full_ms}");
    }
}

#[test]
fn a_provider_that_asks_for_more_time_gets_it() {
    check(
        Script::flow("steps: [{id: a, command: go, retry: {attempts: 3}}]")
            .fail_for("a", RateLimit, 60_000)
            .advance("60s")
            .fail_for("a", RateLimit, 1)
            .advance("1s")
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 rate_limit delay=60000
            5 node.waiting a rate_limit attempt=2 rate_limit delay=60000
            after 1m
            6 node.started a attempt=2 dispatch=2
            7 node.retried a attempt=2 rate_limit delay=872
            8 node.waiting a rate_limit attempt=3 rate_limit delay=872
            after 60872ms
            9 node.started a attempt=3 dispatch=3
            after 61s
            10 node.completed a {}
            11 run.completed {}
        "#]],
    );
}

#[test]
fn only_the_named_causes_are_retried() {
    check(
        Script::flow("steps: [{id: a, command: go, retry: {attempts: 3, retry_on: [timeout]}}]")
            .fail("a", Timeout)
            .advance("1s")
            .fail("a", ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 timeout delay=391
            5 node.waiting a retry_backoff attempt=2 timeout delay=391
            after 391ms
            6 node.started a attempt=2 dispatch=2
            after 1s
            7 node.failed a provider_error: it broke
            8 run.failed provider_error: `a` failed: it broke
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, retry: {attempts: 3}}]").fail("a", Auth),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
        "#]],
    );
}

#[test]
fn outputs_that_do_not_fit_are_retried_only_where_asked() {
    let outputs = "outputs: {n: integer}";
    check(
        Script::flow(&format!(
            "steps: [{{id: a, command: go, {outputs}, retry: {{attempts: 2, retry_on: [contract_violated]}}}}]"
        ))
        .complete("a", json!({}))
        .advance("1s")
        .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 contract_violated delay=391
            5 node.waiting a retry_backoff attempt=2 contract_violated delay=391
            after 391ms
            6 node.started a attempt=2 dispatch=2
            after 1s
            7 node.failed a output_validation_failed: n is required
            8 run.failed output_validation_failed: `a` failed: n is required
        "#]],
    );
    check(
        Script::flow(&format!(
            "steps: [{{id: a, command: go, {outputs}, retry: {{attempts: 2}}}}]"
        ))
        .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a output_validation_failed: n is required
            5 run.failed output_validation_failed: `a` failed: n is required
        "#]],
    );
}

#[test]
fn a_repaired_step_is_asked_again_with_what_was_wrong_beside_its_retries() {
    check(
        Script::flow(
            "
            steps:
              - id: a
                command: count
                outputs: {n: integer}
                repair: {reask: 1}
                retry: {attempts: 2}
            ",
        )
        .complete("a", json!({"n": "many"}))
        .show_prompt("a")
        .fail("a", ProviderError)
        .advance("1s")
        .show_prompt("a")
        .complete("a", json!({"n": "none"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.retried a attempt=1 contract_violated delay=0 reask
            5 node.waiting a retry_backoff attempt=2 contract_violated delay=0
            6 node.started a attempt=2 dispatch=2
            a is given {} and "count\n\nYour last answer was not accepted: n is a string, not an integer"
            7 node.retried a attempt=2 provider_error delay=391
            8 node.waiting a retry_backoff attempt=3 provider_error delay=391
            after 391ms
            9 node.started a attempt=3 dispatch=3
            a is given {} and "count\n\nYour last answer was not accepted: n is a string, not an integer"
            after 1s
            10 node.failed a output_validation_failed: n is a string, not an integer
            11 run.failed output_validation_failed: `a` failed: n is a string, not an integer
        "#]],
    );
}

#[test]
fn every_attempt_has_a_key_of_its_own() {
    let run = Script::flow("steps: [{id: a, command: go, on_failure: retry_once}]");
    let first = run.run();
    let second = Script::flow("steps: [{id: a, command: go, on_failure: retry_once}]")
        .fail("a", ProviderError)
        .run();
    let at = first.find("a").expect("a step");
    let (first, second) = (first.request(at), second.request(at));
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_ne!(first.idempotency_key, second.idempotency_key);
}

#[test]
fn a_step_asked_again_reads_what_it_read_before() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: 'count ${a.outputs.x}', outputs: {n: integer}, repair: {reask: 2}}
            ",
        )
        .complete("a", json!({"x": 1}))
        .complete("b", json!({}))
        .complete("b", json!({"n": "many"}))
        .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":1}
            5 node.queued b
            6 node.provenance b command <- a outputs.x
            7 node.started b attempt=1 dispatch=1
            8 node.retried b attempt=1 contract_violated delay=0 reask
            9 node.waiting b retry_backoff attempt=2 contract_violated delay=0
            10 node.started b attempt=2 dispatch=2
            11 node.retried b attempt=2 contract_violated delay=0 reask
            12 node.waiting b retry_backoff attempt=3 contract_violated delay=0
            13 node.started b attempt=3 dispatch=3
            b is given {} and "count 1\n\nYour last answer was not accepted: n is a string, not an integer"
        "#]],
    );
}

#[test]
fn what_goes_on_elsewhere_times_out_too_and_is_retried() {
    check(
        Script::flow("steps: [{id: a, command: go, timeout: 5s, on_failure: retry_once}]")
            .accepted("a")
            .advance("5s")
            .show_due()
            .complete_dispatch("a", 1)
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.waiting a external_callback attempt=1 delay=0
            after 5s
            5 node.retried a attempt=1 timeout delay=0
            6 node.waiting a retry_backoff attempt=2 timeout delay=0
            7 node.started a attempt=2 dispatch=2
            due: a dispatch=2 key=f21fe0
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            8 node.completed a {}
            9 run.completed {}
        "#]],
    );
}
