//! Steps that wait, run, retry or are skipped.

use super::check;
use crate::port::adapter::CallErrorCode;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::CHAIN;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_node_waits_for_those_before_it() {
    check(
        Script::lobsterx(CHAIN).streams("a", "one"),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "running"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            active_node_id: "a"
            waiting_count: 2
            in_flight_count: 1
            is_running: true
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"b","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `a`","wave":1,"agent":"mock"}
            node_results: {"node_id":"a","status":"streaming","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":null},"prompt":"Count","started_at":"2026-01-31T23:59:59.000Z","first_byte_ms":50}
            node_results: {"node_id":"c","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `b, a`","wave":2,"agent":"mock"}
        "#]],
    );
}

#[test]
fn a_node_between_two_attempts_keeps_the_last_error() {
    let script = Script::lobsterx(CHAIN).gives("a", json!({"n": 7}));
    let script = script.fails("b", CallErrorCode::RateLimit);
    check(
        script,
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "running"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            cost: 0.0042
            input_tokens: 20
            output_tokens: 40
            active_node_id: "b"
            waiting_count: 1
            in_flight_count: 1
            executed_count: 1
            is_running: true
            provenance: {"upstream":1,"downstream":1}
            node_results: {"node_id":"b","status":"retrying","waiting_reason":"rate_limit","unblock_hint":"next attempt at 2026-02-01T00:00:00.000Z","attempts":1,"dispatches":1,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Use 7","error_code":"rate_limit","error_message":"no answer","started_at":"2026-01-31T23:59:59.250Z","input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"a","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Count","stdout":"{\"n\":7}","output":"{\"n\":7}","outputs":{"n":7},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"c","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `b`","wave":2,"agent":"mock"}
        "#]],
    );
}

#[test]
fn at_work_again_a_node_shows_no_error() {
    let script = Script::lobsterx(CHAIN).gives("a", json!({"n": 7}));
    let script = script.fails("b", CallErrorCode::ProviderError).wait(2000);
    check(
        script,
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "running"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            cost: 0.0042
            input_tokens: 20
            output_tokens: 40
            active_node_id: "b"
            waiting_count: 1
            in_flight_count: 1
            executed_count: 1
            is_running: true
            provenance: {"upstream":1,"downstream":1}
            node_results: {"node_id":"b","status":"running","attempts":2,"dispatches":2,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Use 7","started_at":"2026-01-31T23:59:59.250Z","input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"a","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Count","stdout":"{\"n\":7}","output":"{\"n\":7}","outputs":{"n":7},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"c","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `b`","wave":2,"agent":"mock"}
        "#]],
    );
}

#[test]
fn a_false_condition_is_the_reason_of_a_skip_and_degrades_nothing() {
    let script = Script::lobsterx(CHAIN).gives("a", json!({"n": 5})).says("b", "done");
    check(
        script,
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "completed"
            degraded: false
            outputs: {"n":5}
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-01-31T23:59:59.500Z"
            duration_ms: 500
            cost: 0.0042
            input_tokens: 20
            output_tokens: 40
            executed_count: 3
            is_running: false
            provenance: {"upstream":1,"downstream":1}
            node_results: {"node_id":"b","status":"completed","attempts":1,"dispatches":1,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Use 5","stdout":"done","output":"done","started_at":"2026-01-31T23:59:59.250Z","completed_at":"2026-01-31T23:59:59.500Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"a","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Count","stdout":"{\"n\":5}","output":"{\"n\":5}","outputs":{"n":5},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"c","status":"skipped","waiting_reason":"condition_false","wave":2,"skip_reason":"its condition is false","completed_at":"2026-01-31T23:59:59.500Z"}
        "#]],
    );
}
