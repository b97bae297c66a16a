//! Runs that are cancelled, paused or failed.

use super::{STOPS, check};
use crate::port::adapter::CallErrorCode;
use crate::run::command::Command;
use crate::run::projection::project;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::CHAIN;
use expect_test::expect;
use serde_json::json;

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
