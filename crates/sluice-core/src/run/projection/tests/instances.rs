//! Instances of a `for_each` step.

use super::check;
use crate::port::adapter::CallErrorCode;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::EACH;
use expect_test::expect;
use serde_json::json;

#[test]
fn instances_follow_their_step_which_sums_what_they_cost() {
    check(
        Script::lobsterx(EACH).gives("one[0]", json!({"done": true})),
        expect![[r#"
        run_id: "run_00000000000000000000000000000001"
        workflow: "each"
        status: "running"
        degraded: false
        started_at: "2026-01-31T23:59:59.000Z"
        cost: 0.0021
        input_tokens: 10
        output_tokens: 20
        active_node_id: "one[1]"
        waiting_count: 1
        in_flight_count: 3
        executed_count: 1
        is_running: true
        provenance: {"upstream":0,"downstream":0}
        node_results: {"node_id":"one","status":"running","attempts":1,"dispatches":1,"gateway":"local","started_at":"2026-01-31T23:59:59.000Z","input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
        node_results: {"node_id":"one[0]","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Do x","stdout":"{\"done\":true}","output":"{\"done\":true}","outputs":{"done":true},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
        node_results: {"node_id":"one[1]","status":"running","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":null},"prompt":"Do y","started_at":"2026-01-31T23:59:59.000Z"}
        node_results: {"node_id":"one[2]","status":"running","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":null},"prompt":"Do z","started_at":"2026-01-31T23:59:59.250Z"}
        node_results: {"node_id":"all","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `one`","wave":1,"agent":"mock"}
    "#]],
    );
}

#[test]
fn an_instance_skipped_by_its_failure_degrades_the_run() {
    let script = Script::lobsterx(EACH)
        .gives("one[0]", json!({"done": true}))
        .fails("one[1]", CallErrorCode::Auth)
        .gives("one[2]", json!({"done": false}))
        .says("all", "gathered");
    check(
        script,
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "each"
            status: "completed"
            degraded: true
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-02-01T00:00:00.000Z"
            duration_ms: 1000
            cost: 0.0084
            input_tokens: 40
            output_tokens: 80
            executed_count: 5
            is_running: false
            provenance: {"upstream":1,"downstream":1}
            node_results: {"node_id":"one","status":"completed","attempts":1,"dispatches":1,"gateway":"local","outputs":{"items":[{"done":true},null,{"done":false}]},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.750Z","duration_ms":750,"input_tokens":30,"output_tokens":60,"thinking_tokens":15,"cost":0.0063}
            node_results: {"node_id":"one[0]","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Do x","stdout":"{\"done\":true}","output":"{\"done\":true}","outputs":{"done":true},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"one[1]","status":"skipped","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Do y","outputs":{"_skipped":true},"error_code":"auth","error_message":"no answer","skip_reason":"no answer","started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.500Z","duration_ms":500,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"one[2]","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Do z","stdout":"{\"done\":false}","output":"{\"done\":false}","outputs":{"done":false},"started_at":"2026-01-31T23:59:59.250Z","completed_at":"2026-01-31T23:59:59.750Z","duration_ms":500,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"all","status":"completed","attempts":1,"dispatches":1,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Gather [{\"done\":true},null,{\"done\":false}]","stdout":"gathered","output":"gathered","started_at":"2026-01-31T23:59:59.750Z","completed_at":"2026-02-01T00:00:00.000Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
        "#]],
    );
}
