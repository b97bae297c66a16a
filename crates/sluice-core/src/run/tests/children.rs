//! Sub-workflows.

use super::{Script, check};
use crate::run::command::Command;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::json;

fn parent(more: &str) -> Script {
    let document = "
        args: {who: {type: string}}
        steps:
          - {id: a, workflow_ref: other, args: {name: '${args.who}', deep: [{n: 1}]}MORE}
          - {id: b, command: 'got ${a.outputs.n}'}
    ";
    Script::flow(&document.replace("MORE", more)).knows("other").arg("who", "ada")
}

#[test]
fn the_outputs_of_a_child_become_the_step_s() {
    check(
        parent(", outputs: {n: integer}")
            .show_due()
            .show_prompt("a")
            .show(|world| format!("{:?}", world.run.child_reference(world.at("a"))))
            .child("a", RunStatus::Completed, Some(json!({"n": "5"})), "")
            .show_prompt("b")
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            due: a child1
            a is given {"name":"ada","deep":[{"n":1}]} and ""
            Some("other")
            4 node.provenance a outputs <- child1 outputs
            5 node.completed a {"n":5} coerced
            6 node.queued b
            7 node.provenance b command <- a outputs.n
            8 node.started b attempt=1 dispatch=1
            b is given {} and "got 5"
            9 node.completed b {"n":1}
            10 run.completed {"n":5}
        "#]],
    );
}

#[test]
fn a_failed_child_fails_the_step_by_its_policy() {
    check(
        parent("").child("a", RunStatus::Failed, None, "it broke"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1 child1
        4 node.failed a child_failed: child1: it broke
        5 node.failed b upstream_failure: Blocked by upstream failure
        6 run.failed child_failed: `a` failed: child1: it broke
    "#]],
    );
    check(
        parent(", on_failure: retry_once")
            .child("a", RunStatus::TimedOut, None, "too slow")
            .show_due()
            .child("a", RunStatus::Completed, Some(json!({"n": 1})), ""),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.retried a attempt=1 provider_error delay=0
            5 node.waiting a retry_backoff attempt=2 provider_error delay=0
            6 node.started a attempt=2 dispatch=2 child2
            due: a child2
            7 node.provenance a outputs <- child2 outputs
            8 node.completed a {"n":1}
            9 node.queued b
            10 node.provenance b command <- a outputs.n
            11 node.started b attempt=1 dispatch=1
        "#]],
    );
    check(
        parent(", on_failure: skip").child("a", RunStatus::Failed, None, "it broke"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.skipped a failure: child1: it broke [child_failed]
            5 node.skipped b dependencies_skipped: everything it depends on was skipped
            6 run.completed {}
        "#]],
    );
}

#[test]
fn a_cancelled_child_is_not_started_again() {
    check(
        parent(", on_failure: retry").child("a", RunStatus::Cancelled, None, "not needed"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.failed a child_failed: child1 was cancelled: not needed
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed child_failed: `a` failed: child1 was cancelled: not needed
        "#]],
    );
}

#[test]
fn a_cancel_reaches_the_child_and_waits_for_its_end() {
    check(
        parent("").cancel().show_status().child("a", RunStatus::Cancelled, None, "not needed"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 run.status.changed cancelling (not needed) by ada
            5 node.cancelled b cancelled: not needed
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"not needed"}
            status: cancelling
            6 node.cancelled a cancelled: not needed
            7 run.cancelled not needed
        "#]],
    );
}

#[test]
fn a_child_that_takes_too_long_is_told_to_stop_and_its_end_comes_late() {
    check(
        parent(", timeout: 5s").advance("5s").child("a", RunStatus::Cancelled, None, "too long"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            after 5s
            4 node.timed_out a timeout: the attempt took longer than 5s
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed timeout: `a` failed: the attempt took longer than 5s
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"the attempt took longer than 5s"}
            refused: completion_late (the result is of a dispatch that is no longer in flight)
        "#]],
    );
}

#[test]
fn the_parent_is_told_how_its_child_ended() {
    let child =
        || Script::flow("steps: [{id: a, command: go, outputs: {n: integer}}]").started_by_a_step();
    check(
        child().complete("a", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"n":1}
            5 run.completed {"n":1}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{"n":1},"error":null,"origins":[{"run":null,"node":"a","path":"n","to":"outputs.n","how":null}],"labels":{"all":{"classes":["agent"],"since":1700000000000},"fields":{}}}
        "#]],
    );
    check(
        child()
            .fail("a", crate::port::adapter::CallErrorCode::Auth)
            .retry()
            .complete("a", json!({"n": 1})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"failed","outputs":null,"error":["auth","`a` failed: it broke"],"origins":[]}
            6 run.status.changed running (retry) by ada
            7 node.invalidated a
            8 node.queued a
            9 node.started a attempt=1 dispatch=2
            10 node.completed a {"n":1}
            11 run.recovered
            12 run.completed {"n":1}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{"n":1},"error":null,"origins":[{"run":null,"node":"a","path":"n","to":"outputs.n","how":null}],"labels":{"all":{"classes":["agent"],"since":1700000000000},"fields":{}}}
        "#]],
    );
    check(
        child().cancel().complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 run.status.changed cancelling (not needed) by ada
            5 node.cancelled a cancelled: not needed
            6 run.cancelled not needed
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"cancelled","outputs":null,"error":["cancelled","not needed"],"origins":[]}
        "#]],
    );
    check(
        Script::flow("timeout: 5s\nsteps: [{id: a, command: go}]")
            .started_by_a_step()
            .advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 5s
            4 node.cancelled a timeout: the run took longer than 5s
            5 run.timed_out 5s
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"timed_out","outputs":null,"error":["timeout","the run took longer than 5s"],"origins":[]}
        "#]],
    );
}

#[test]
fn a_step_that_goes_back_stops_its_child() {
    check(
        Script::flow(
            "steps: [{id: s, command: go}, {id: a, workflow_ref: other, depends_on: [s]}]",
        )
        .knows("other")
        .complete("s", json!({}))
        .rewind(&["s"]),
        expect![[r#"
            1 run.started
            2 node.queued s
            3 node.started s attempt=1 dispatch=1
            4 node.completed s {}
            5 node.queued a
            6 node.started a attempt=1 dispatch=1 child1
            7 run.status.changed running (rewind) by ada
            8 node.invalidated a
            9 node.queued a
            10 node.started a attempt=1 dispatch=2 child2
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"rewind"}
        "#]],
    );
}

#[test]
fn a_child_that_cannot_be_started_is_not_tried_again() {
    check(
        parent(", on_failure: retry").turn(|world| Command::ChildEnded {
            child: world.child_of("a"),
            status: RunStatus::Failed,
            outputs: None,
            error: Some(("recursion_too_deep".to_owned(), "5 runs stand above it".to_owned())),
            origins: Vec::new(),
            labels: None,
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.failed a recursion_too_deep: child1: 5 runs stand above it
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed recursion_too_deep: `a` failed: child1: 5 runs stand above it
        "#]],
    );
}

#[test]
fn a_failure_that_stops_at_once_reaches_children() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, workflow_ref: other}
              - {id: b, command: go, parallel_failure_policy: fail_fast}
            ",
        )
        .knows("other")
        .fail("b", crate::port::adapter::CallErrorCode::Auth),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1 child1
            5 node.started b attempt=1 dispatch=1
            6 node.failed b auth: it broke
            7 node.cancelled a condition_failed: stopped because `b` failed
            8 run.failed auth: `b` failed: it broke
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"stopped because `b` failed"}
        "#]],
    );
}
