//! Steps that wait for an approval.

use super::check;
use crate::port::adapter::CallErrorCode;
use crate::run::command::Decision;
use crate::run::projection::script::Script;
use crate::run::projection::script::documents::ASKS;
use expect_test::expect;

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
