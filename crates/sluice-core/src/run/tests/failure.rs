//! Answers that violate their schema, and inputs that cannot be bound.

use super::{Script, check};
use crate::status::StepStatus;
use expect_test::expect;
use serde_json::json;

#[test]
fn outputs_are_coerced_validated_and_judged() {
    check(
        Script::flow(
            "
            steps:
              - id: a
                command: go
                outputs: {n: {type: integer, maximum: 5}, ok: boolean}
                success_criteria: [outputs.n > 1]
            ",
        )
        .complete("a", json!({"n": "3", "ok": "yes"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"n":3,"ok":true} coerced
            5 run.completed {"n":3,"ok":true}
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, outputs: {n: {type: integer, maximum: 5}}}]")
            .complete("a", json!({"n": 9})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a output_validation_failed: n is 9, above the maximum 5
            5 run.failed output_validation_failed: `a` failed: n is 9, above the maximum 5
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go, success_criteria: [outputs.n > 1]}]")
            .complete("a", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a success_criteria_failed: `outputs.n > 1` does not hold
            5 run.failed success_criteria_failed: `a` failed: `outputs.n > 1` does not hold
        "#]],
    );
}

#[test]
fn an_unresolved_variable_fails_the_step_without_a_dispatch_or_a_retry() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: 'use ${a.outputs.nothing}', on_failure: retry}
            ",
        )
        .complete("a", json!({"x": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":1}
            5 node.queued b
            6 node.failed b unresolved_variable: `a.outputs.nothing` has no value
            7 run.failed unresolved_variable: `b` failed: `a.outputs.nothing` has no value
        "#]],
    );
}

#[test]
fn an_input_of_the_wrong_type_is_a_contract_violation_and_is_never_retried() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go, on_failure: retry_once, inputs: {n: {from: a.n, type: integer}}}
            ",
        )
        .complete("a", json!({"n": "many"})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"n":"many"}
            5 node.queued b
            6 contract.violated b input n type_mismatch
            7 node.failed b input_contract_violation: input_contract_violation
            8 run.failed input_contract_violation: `b` failed: input_contract_violation
        "#]],
    );
}

#[test]
fn inputs_that_are_too_large_fail_the_step() {
    let script = Script::flow(
        "
        steps:
          - {id: a, command: go}
          - {id: b, command: go, inputs: {n: a.n}}
        ",
    );
    let run = script.complete("a", json!({"n": "x".repeat(600_000)})).run();
    let state = &run.steps[1];
    let ending = state.failure.as_ref().expect("it failed");
    assert_eq!((state.status(), ending.code.as_str()), (StepStatus::Failed, "context_too_large"));
    assert_eq!(state.dispatch_no, 0);
}

#[test]
fn an_answer_that_is_too_long_fails_the_step() {
    let text = "x".repeat(8 * 1024 * 1024 + 1);
    let run = Script::flow("steps: [{id: a, command: go}]").text("a", &text).run();
    let ending = run.steps[0].failure.as_ref().expect("it failed");
    assert_eq!(ending.code, "output_validation_failed");
}

#[test]
fn a_late_or_second_result_is_refused_and_leaves_no_event() {
    check(
        Script::flow("steps: [{id: a, command: go, retry: {attempts: 2}}, {id: b, command: go}]")
            .complete_dispatch("a", 7)
            .complete_dispatch("a", 1)
            .complete_dispatch("a", 1)
            .complete("b", json!({}))
            .complete_dispatch("b", 1)
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            6 node.completed a {}
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            7 node.completed b {}
            8 run.completed {}
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            status: completed
        "#]],
    );
}
