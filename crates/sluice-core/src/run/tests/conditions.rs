//! Steps that a condition skips.

use super::{Script, check};
use crate::port::adapter::CallErrorCode;
use expect_test::expect;
use serde_json::json;

const BRANCH: &str = "
    args: {go: {type: boolean}}
    steps:
      - {id: a, command: go, condition: args.go}
      - {id: b, command: go, depends_on: [a]}
      - {id: c, command: go, depends_on: [b]}
      - {id: d, command: go}
      - {id: e, command: 'got <${a.outputs.x}>', depends_on: [c, d]}
";

#[test]
fn a_false_condition_skips_and_the_skip_cascades_only_through_steps_with_nothing_else() {
    check(
        Script::flow(BRANCH)
            .arg("go", false)
            .show(|world| format!("{:?}", world.run.state(world.at("a")).phase.waiting()))
            .complete("d", json!({}))
            .show_prompt("e")
            .complete("e", json!({})),
        expect![[r#"
            1 run.started
            2 node.skipped a condition_false: its condition is false
            3 node.skipped b dependencies_skipped: everything it depends on was skipped
            4 node.skipped c dependencies_skipped: everything it depends on was skipped
            5 node.queued d
            6 node.started d attempt=1 dispatch=1
            Some(ConditionFalse)
            7 node.completed d {}
            8 node.queued e
            9 node.started e attempt=1 dispatch=1
            e is given {} and "got <>"
            10 node.completed e {}
            11 run.completed {}
        "#]],
    );
}

#[test]
fn a_true_condition_runs_the_step() {
    check(
        Script::flow(BRANCH).arg("go", true).complete("a", json!({"x": 5})).answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued d
            4 node.started a attempt=1 dispatch=1
            5 node.started d attempt=1 dispatch=1
            6 node.completed a {"x":5}
            7 node.queued b
            8 node.started b attempt=1 dispatch=1
            9 node.completed b {"n":1}
            10 node.queued c
            11 node.started c attempt=1 dispatch=1
            12 node.completed c {"n":2}
            13 node.completed d {"n":3}
            14 node.queued e
            15 node.provenance e command <- a outputs.x
            16 node.started e attempt=1 dispatch=1
            17 node.completed e {"n":4}
            18 run.completed {}
        "#]],
    );
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_the_step_and_is_never_retried() {
    let long = "x".repeat(64 * 1024);
    let scan = vec!["contains(a.x, 'y')"; 170].join(" or ");
    let document = "
        steps:
          - {id: a, command: go}
          - {id: b, command: go, on_failure: retry, condition: \"SCAN\"}
    ";
    let world =
        Script::flow(&document.replace("SCAN", &scan)).complete("a", json!({"x": long})).world();
    let told = world.told.lines().skip(3).filter(|line| !line.contains("completed"));
    expect![[r#"
        5 node.failed b condition_error: expression took more than 100000 units of work
        6 run.failed condition_error: `b` failed: expression took more than 100000 units of work"#]]
    .assert_eq(&told.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_criterion_that_cannot_be_evaluated_is_never_retried() {
    let scan = vec!["contains(outputs.x, 'y')"; 140].join(" or ");
    let document = "steps: [{id: a, command: go, on_failure: retry, success_criteria: [\"SCAN\"]}]";
    let world = Script::flow(&document.replace("SCAN", &scan))
        .complete("a", json!({"x": "x".repeat(64 * 1024)}))
        .world();
    let told: Vec<&str> = world.told.lines().skip(3).collect();
    expect![[r#"
        4 node.failed a condition_error: expression took more than 100000 units of work
        5 run.failed condition_error: `a` failed: expression took more than 100000 units of work"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_step_that_skips_on_failure_lets_others_go_on() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, on_failure: skip}
              - {id: b, command: go, depends_on: [a]}
              - {id: other, command: go}
              - {id: c, command: '<${a.outputs.x}>', depends_on: [a, other]}
            ",
        )
        .fail("a", CallErrorCode::Auth)
        .complete("other", json!({}))
        .show_prompt("c")
        .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued other
            4 node.started a attempt=1 dispatch=1
            5 node.started other attempt=1 dispatch=1
            6 node.skipped a failure: it broke [auth]
            7 node.skipped b dependencies_skipped: everything it depends on was skipped
            8 node.completed other {}
            9 node.queued c
            10 node.started c attempt=1 dispatch=1
            c is given {} and "<>"
            11 node.completed c {}
            12 run.completed {}
        "#]],
    );
}
