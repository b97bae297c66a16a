use super::script::documents::{ASKS, CHAIN, EACH, GRAPH};
use super::script::{BEGIN_MS, Script};
use super::{project, timestamp};
use crate::port::adapter::{Answer, CallErrorCode};
use crate::run::command::{Command, Decision};
use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};

/// The projection of where a script leads. Of nodes, what is null, zero or
/// empty is left out here; one test shows all.
#[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
fn check(script: Script, expected: Expect) {
    let mut shown = serde_json::to_value(project(&script.run)).unwrap();
    let nodes = shown["node_results"].as_array_mut().unwrap();
    nodes.iter_mut().for_each(|node| prune(node.as_object_mut().unwrap()));
    prune(shown.as_object_mut().unwrap());
    let mut lines = String::new();
    for (name, value) in shown.as_object().unwrap() {
        match value.as_array().filter(|_| name != "outputs") {
            Some(items) => items.iter().for_each(|item| lines += &format!("{name}: {item}\n")),
            None => lines += &format!("{name}: {value}\n"),
        }
    }
    expected.assert_eq(&lines);
}

fn prune(fields: &mut Map<String, Value>) {
    let nothing = [json!(null), json!(0), json!(0.0), json!([]), json!({})];
    fields.retain(|_, value| {
        let route = value.get("provider").is_some_and(Value::is_null);
        !nothing.contains(value) && !route
    });
}

#[test]
fn every_field_is_there_in_the_order_of_the_interface() {
    let script = Script::lobsterx(CHAIN);
    let shown = serde_json::to_string_pretty(&project(&script.run)).unwrap();
    expect![[r#"
        {
          "run_id": "run_00000000000000000000000000000001",
          "workflow": "chain",
          "version": 3,
          "status": "running",
          "pause_reason": null,
          "degraded": false,
          "outputs": null,
          "error_code": null,
          "error_message": null,
          "started_at": "2026-01-31T23:59:59.000Z",
          "completed_at": null,
          "duration_ms": null,
          "cost": 0.00,
          "input_tokens": 0,
          "output_tokens": 0,
          "active_node_id": "a",
          "pending_count": 0,
          "waiting_count": 2,
          "in_flight_count": 1,
          "executed_count": 0,
          "failed_count": 0,
          "is_running": true,
          "parent_run_id": null,
          "recursion_depth": 0,
          "provenance": {
            "upstream": 0,
            "downstream": 0
          },
          "node_results": [
            {
              "node_id": "b",
              "label": null,
              "status": "awaiting_dependency",
              "generation": 0,
              "waiting_reason": "dependency",
              "unblock_hint": "waits for `a`",
              "attempts": 0,
              "dispatches": 0,
              "wave": 1,
              "agent": "mock",
              "gateway": null,
              "provider_route": {
                "provider": null,
                "model": null
              },
              "inputs": null,
              "prompt": null,
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": null,
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            },
            {
              "node_id": "a",
              "label": null,
              "status": "running",
              "generation": 0,
              "waiting_reason": null,
              "unblock_hint": null,
              "attempts": 1,
              "dispatches": 1,
              "wave": 0,
              "agent": "mock",
              "gateway": "local",
              "provider_route": {
                "provider": "mock",
                "model": null
              },
              "inputs": {},
              "prompt": "Count",
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": "2026-01-31T23:59:59.000Z",
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            },
            {
              "node_id": "c",
              "label": null,
              "status": "awaiting_dependency",
              "generation": 0,
              "waiting_reason": "dependency",
              "unblock_hint": "waits for `b, a`",
              "attempts": 0,
              "dispatches": 0,
              "wave": 2,
              "agent": "mock",
              "gateway": null,
              "provider_route": {
                "provider": null,
                "model": null
              },
              "inputs": null,
              "prompt": null,
              "stdout": null,
              "output": null,
              "outputs": null,
              "error_code": null,
              "error_message": null,
              "contract_errors": [],
              "placeholder": null,
              "skip_reason": null,
              "started_at": null,
              "completed_at": null,
              "duration_ms": null,
              "first_byte_ms": null,
              "input_tokens": 0,
              "output_tokens": 0,
              "thinking_tokens": 0,
              "cost": 0.00
            }
          ],
          "approvals": []
        }"#]]
    .assert_eq(&shown);
}

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

#[test]
fn a_question_says_how_to_answer_it() {
    check(
        Script::lobsterx(ASKS),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "asks"
            status: "paused"
            pause_reason: "approval"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            waiting_count: 2
            is_running: true
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"pay","status":"awaiting_approval","waiting_reason":"human_input","unblock_hint":"`sluice approvals approve apr_019c167fc81870018000000000000000`","agent":"mock","prompt":"Pay 5 dollars"}
            node_results: {"node_id":"note","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `pay`","wave":1,"agent":"mock"}
            approvals: {"approval_id":"apr_019c167fc81870018000000000000000","node_id":"pay","source":"step","summary":"Pay?","digest":"79ee786bb4646c536237d34b9cfd7d7584db33a8b94f896d8a7b088198be7f26","status":"pending","requested_at":"2026-01-31T23:59:59.000Z","expires_at":"2026-02-02T23:59:59.000Z"}
        "#]],
    );
}

#[test]
fn a_closed_question_is_not_shown_and_an_escalation_is() {
    let script = Script::lobsterx(ASKS).resolve(Decision::Approve, None).says("pay", "paid");
    let script = script.fails("note", CallErrorCode::Timeout);
    check(
        script.fails("note", CallErrorCode::Timeout),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "asks"
            status: "paused"
            pause_reason: "approval"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            cost: 0.0063
            input_tokens: 30
            output_tokens: 60
            waiting_count: 1
            executed_count: 1
            is_running: true
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"pay","status":"completed","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Pay 5 dollars","stdout":"paid","output":"paid","outputs":{"approved":true,"by":"bob","at":"2026-01-31T23:59:59.000Z","comment":null},"started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"note","status":"awaiting_approval","waiting_reason":"human_input","unblock_hint":"`sluice approvals retry apr_019c167fcb0670038000000000000001`","attempts":2,"dispatches":2,"wave":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Note it","error_code":"timeout","error_message":"no answer","started_at":"2026-01-31T23:59:59.250Z","input_tokens":20,"output_tokens":40,"thinking_tokens":10,"cost":0.0042}
            approvals: {"approval_id":"apr_019c167fcb0670038000000000000001","node_id":"note","source":"escalation","summary":"`note` failed: no answer. Retry, skip or abort?","digest":null,"status":"pending","requested_at":"2026-01-31T23:59:59.750Z","expires_at":"2026-02-07T23:59:59.750Z"}
        "#]],
    );
}

#[test]
fn a_rejection_ends_the_run_with_its_reason() {
    check(
        Script::lobsterx(ASKS).resolve(Decision::Reject, Some("too dear")),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "asks"
            status: "failed"
            degraded: false
            error_code: "approval_rejected"
            error_message: "`pay` failed: rejected by bob: too dear"
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-01-31T23:59:59.000Z"
            failed_count: 2
            is_running: false
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"pay","status":"failed","prompt":"Pay 5 dollars","error_code":"approval_rejected","error_message":"rejected by bob: too dear","completed_at":"2026-01-31T23:59:59.000Z"}
            node_results: {"node_id":"note","status":"failed","wave":1,"error_code":"upstream_failure","error_message":"Blocked by upstream failure","completed_at":"2026-01-31T23:59:59.000Z"}
            failure_snapshot: {"failed_node_id":"pay","failed":["pay","note"],"completed":[],"skipped":[],"cancelled":[],"writer_order":[],"variables":{}}
        "#]],
    );
}

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

#[test]
fn a_cancelled_run_shows_what_was_stopped() {
    let (by, reason) = ("ada".to_owned(), "enough".to_owned());
    let script = Script::lobsterx(CHAIN).tell(Command::Cancel { by, reason });
    check(
        script.fails("a", CallErrorCode::Cancelled),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "cancelled"
            degraded: false
            error_code: "cancelled"
            error_message: "enough"
            started_at: "2026-01-31T23:59:59.000Z"
            completed_at: "2026-01-31T23:59:59.250Z"
            duration_ms: 250
            cost: 0.0021
            input_tokens: 10
            output_tokens: 20
            failed_count: 3
            is_running: false
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"b","status":"cancelled","wave":1,"error_code":"cancelled","error_message":"enough","completed_at":"2026-01-31T23:59:59.000Z"}
            node_results: {"node_id":"a","status":"cancelled","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":"mock-1"},"prompt":"Count","error_code":"cancelled","error_message":"enough","started_at":"2026-01-31T23:59:59.000Z","completed_at":"2026-01-31T23:59:59.250Z","duration_ms":250,"input_tokens":10,"output_tokens":20,"thinking_tokens":5,"cost":0.0021}
            node_results: {"node_id":"c","status":"cancelled","wave":2,"error_code":"cancelled","error_message":"enough","completed_at":"2026-01-31T23:59:59.000Z"}
        "#]],
    );
}

#[test]
fn a_paused_run_says_by_whom() {
    check(
        Script::lobsterx(CHAIN).tell(Command::Pause { by: "ada".to_owned() }),
        expect![[r#"
            run_id: "run_00000000000000000000000000000001"
            workflow: "chain"
            version: 3
            status: "paused"
            pause_reason: "operator"
            degraded: false
            started_at: "2026-01-31T23:59:59.000Z"
            active_node_id: "a"
            waiting_count: 2
            in_flight_count: 1
            is_running: true
            provenance: {"upstream":0,"downstream":0}
            node_results: {"node_id":"b","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `a`","wave":1,"agent":"mock"}
            node_results: {"node_id":"a","status":"running","attempts":1,"dispatches":1,"agent":"mock","gateway":"local","provider_route":{"provider":"mock","model":null},"prompt":"Count","started_at":"2026-01-31T23:59:59.000Z"}
            node_results: {"node_id":"c","status":"awaiting_dependency","waiting_reason":"dependency","unblock_hint":"waits for `b, a`","wave":2,"agent":"mock"}
        "#]],
    );
}

#[test]
fn times_are_iso_8601() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (BEGIN_MS, "2026-01-31T23:59:59.000Z"),
        (BEGIN_MS + 1000, "2026-02-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(timestamp(ms), text);
    }
}

const STOPS: &str = "
name: stops
phases: [{id: gather, name: Gather facts}, write]
steps:
  - {id: a, phase: gather, command: Count, outputs: {n: integer}}
  - {id: again, phase: gather, command: 'Count ${a.outputs.n} again', outputs: {n: integer, m: string}}
  - {id: never, command: Never, depends_on: [a], condition: $a.outputs.n > 50}
  - {id: b, phase: write, command: 'Use ${again.outputs.n}'}
  - {id: after, phase: write, command: 'After ${b.stdout}'}
";

#[test]
fn a_failed_run_shows_where_it_stopped_and_what_was_known() {
    let script = Script::lobsterx(STOPS);
    assert!(project(&script.run).failure_snapshot.is_none(), "nothing failed yet");
    let script = script.gives("a", json!({"n": 7})).gives("again", json!({"n": 8, "m": "x"}));
    let script = script.fails("b", CallErrorCode::InvalidRequest);
    let shown = serde_json::to_value(project(&script.run)).unwrap();
    assert_eq!(shown["status"], "failed");
    expect![[r#"
        {
          "failed_node_id": "b",
          "failed": [
            "b",
            "after"
          ],
          "completed": [
            "a",
            "again"
          ],
          "skipped": [
            "never"
          ],
          "cancelled": [],
          "writer_order": [
            "a",
            "again"
          ],
          "variables": {
            "m": "x",
            "n": 8
          }
        }"#]]
    .assert_eq(&format!("{:#}", shown["failure_snapshot"]));
}

#[test]
fn phases_are_told_in_the_documents_order_and_by_step() {
    let shown = serde_json::to_value(project(&Script::lobsterx(STOPS).run)).unwrap();
    let phases = json!([
        {"id": "gather", "name": "Gather facts"},
        {"id": "write", "name": "write"},
    ]);
    assert_eq!(shown["phases"], phases);
    let nodes = shown["node_results"].as_array().unwrap().iter();
    let told: Vec<_> =
        nodes.map(|node| (node["node_id"].as_str(), node["phase"].as_str())).collect();
    let (gather, write) = (Some("gather"), Some("write"));
    let ids = ["a", "again", "never", "b", "after"].map(Some);
    let expected: Vec<_> = ids.into_iter().zip([gather, gather, None, write, write]).collect();
    assert_eq!(told, expected);
    let bare = serde_json::to_value(project(&Script::lobsterx(CHAIN).run)).unwrap();
    assert_eq!(bare.get("phases"), None, "a document without phases shows none");
}

#[test]
fn a_nodes_media_and_metadata_are_shown() {
    let script = Script::lens(GRAPH, json!({"topic": "lamps"}));
    let media = json!({"url": "data:image/png;base64,AAAA", "mime": "image/png"});
    let metadata = json!({"seed": 7});
    let answer = Answer {
        text: Some("a picture".to_owned()),
        outputs: json!({"score": 3}).as_object().cloned(),
        media: Some(media.clone()),
        metadata: metadata.as_object().cloned(),
        ..Answer::default()
    };
    let script = script.answer("left", answer);
    let shown = serde_json::to_value(project(&script.run)).unwrap();
    let nodes = shown["node_results"].as_array().unwrap();
    let left = nodes.iter().find(|node| node["node_id"] == "left").unwrap();
    assert_eq!((&left["media"], &left["metadata"]), (&media, &metadata));
    let right = nodes.iter().find(|node| node["node_id"] == "right").unwrap();
    assert_eq!((right.get("media"), right.get("metadata")), (None, None));
}
