//! Graphs with contract violations.

use super::check;
use crate::port::adapter::CallErrorCode;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::GRAPH;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_graph_that_went_on_around_a_broken_contract_is_degraded() {
    let script = Script::lens(GRAPH, json!({"topic": "tea"}))
        .gives("left", json!({"score": 9}))
        .gives("right", json!({"score": 11}))
        .says("both", "joined");
    check(
        script,
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "graph"
            status: "completed"
            degraded: true
            outputs: {"both":"joined"}
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-01-31T23:59:59.750Z"
            duration_ms: 750
            cost: 0.0063
            input_tokens: 30
            output_tokens: 60
            executed_count: 3
            failed_count: 1
            is_running: false
            provenance: {"upstream":2,"downstream":2}
            node_results: {"node_id":"right","status":"failed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"inputs":{"topic":"tea"},"prompt":"About tea","error_code":"output_contract_violation","error_message":"output_contract_violation","contract_errors":[{"field":"score","reason":"above_max"}],"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.500Z","duration_ms":500,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"both","status":"completed","attempts":1,"dispatches":1,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"inputs":{"left":"{\"score\":9}","right":"","topic":"tea"},"prompt":"Join {\"score\":9} ","stdout":"joined","output":"joined","started_at":"2026-01-31T23:59:59.500Z","completed_at":"2026-01-31T23:59:59.750Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"left","label":"Left side","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"inputs":{"topic":"tea"},"prompt":"About tea","stdout":"{\"score\":9}","output":"{\"score\":9}","outputs":{"score":9},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"after","status":"skipped","wave":1,"outputs":{"_skipped":true},"skip_reason":"`right` failed","completed_at":"2026-01-31T23:59:59.500Z"}
        "#]],
    );
}

#[test]
fn a_broken_input_contract_is_told_field_by_field() {
    let script = Script::lens(GRAPH, json!({"topic": "go"}));
    check(
        script.fails("both", CallErrorCode::Auth),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "graph"
            status: "failed"
            degraded: false
            error_code: "input_contract_violation"
            error_message: "`left` failed: input_contract_violation"
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-01-31T23:59:59.250Z"
            duration_ms: 250
            cost: 0.0021
            input_tokens: 10
            output_tokens: 20
            executed_count: 1
            failed_count: 3
            is_running: false
            provenance: {"upstream":2,"downstream":2}
            node_results: {"node_id":"right","status":"failed","error_code":"input_contract_violation","error_message":"input_contract_violation","contract_errors":[{"field":"topic","reason":"too_short"}],"completed_at":"2026-01-31T23:59:59.000Z"}
            node_results: {"node_id":"both","status":"failed","attempts":1,"dispatches":1,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"inputs":{"left":"","right":"","topic":"go"},"prompt":"Join  ","error_code":"auth","error_message":"no answer","started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"left","label":"Left side","status":"failed","error_code":"input_contract_violation","error_message":"input_contract_violation","contract_errors":[{"field":"topic","reason":"too_short"}],"completed_at":"2026-01-31T23:59:59.000Z"}
            node_results: {"node_id":"after","status":"skipped","wave":1,"outputs":{"_skipped":true},"skip_reason":"`left` failed","completed_at":"2026-01-31T23:59:59.000Z"}
            failure_snapshot: {"failed_node_id":"left","failed":["left","right","both"],"completed":[],"skipped":["after"],"cancelled":[],"writer_order":[],"variables":{}}
        "#]],
    );
}
