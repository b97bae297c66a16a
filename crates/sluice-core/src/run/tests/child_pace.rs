//! The timeout of a sub-workflow step while its child run waits only for people.

use super::{Script, check};
use crate::journal::event::ChildPace::{self, Paused, Resumed};
use crate::run::command::Command;
use crate::status::RunStatus;
use expect_test::expect;
use serde_json::json;

const PARENT: &str = "
    timeout: 20s
    steps: [{id: a, workflow_ref: other, timeout: 10s}, {id: b, command: go, depends_on: [a]}]
";

fn parent(document: &str) -> Script {
    Script::flow(document).knows("other")
}

impl Script {
    /// The child run of a step reports its pace, some time after it changed.
    fn child_paced(self, step: &str, pace: ChildPace, ago_ms: u64) -> Script {
        let step = step.to_owned();
        self.turn(move |world| {
            let (child, at_ms) = (world.child_of(&step), world.now_ms - ago_ms);
            Command::ChildPaced { child, pace, at_ms }
        })
    }

    fn show_left(self, step: &str) -> Script {
        let step = step.to_owned();
        self.show(move |world| {
            let state = world.run.state(world.at(&step));
            let left = state.phase.deadline_ms().map(|until_ms| until_ms - world.now_ms);
            let clock = world.run.deadline_ms().map(|until_ms| until_ms - world.now_ms);
            let waiting = state.phase.waiting().map(|waiting| waiting.to_string());
            format!("left: step {left:?}, run {clock:?}, waiting {waiting:?}")
        })
    }
}

#[test]
fn the_time_of_a_step_stands_still_while_its_child_waits_for_people() {
    check(
        parent(PARENT)
            .advance("4s")
            .child_paced("a", Paused, 0)
            .show_left("a")
            .show_status()
            .advance("2d")
            .child_paced("a", Resumed, 0)
            .show_left("a")
            .advance("3s")
            .child_paced("a", Paused, 0)
            .advance("1h")
            .child_paced("a", Resumed, 0)
            .show_left("a")
            .child("a", RunStatus::Completed, Some(json!({})), "")
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            after 4s
            4 node.log a child paused
            5 run.status.changed paused (approval)
            left: step None, run None, waiting Some("human_input")
            status: paused (approval)
            after 172804s
            6 run.status.changed running (approval)
            7 node.log a child resumed
            left: step Some(6000), run Some(16000), waiting None
            after 172807s
            8 node.log a child paused
            9 run.status.changed paused (approval)
            after 176407s
            10 run.status.changed running (approval)
            11 node.log a child resumed
            left: step Some(3000), run Some(13000), waiting None
            12 node.provenance a outputs <- child1 outputs
            13 node.completed a {}
            14 node.queued b
            15 node.started b attempt=1 dispatch=1
            16 node.completed b {"n":1}
            17 run.completed {}
        "#]],
    );
}

#[test]
fn what_is_left_of_the_time_counts_again_when_the_child_goes_on() {
    check(
        parent(PARENT)
            .advance("4s")
            .child_paced("a", Paused, 0)
            .advance("2d")
            .child_paced("a", Resumed, 0)
            .advance("6s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            after 4s
            4 node.log a child paused
            5 run.status.changed paused (approval)
            after 172804s
            6 run.status.changed running (approval)
            7 node.log a child resumed
            after 172810s
            8 node.timed_out a timeout: the attempt took longer than 10s
            9 node.failed b upstream_failure: Blocked by upstream failure
            10 run.failed timeout: `a` failed: the attempt took longer than 10s
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"the attempt took longer than 10s"}
        "#]],
    );
}

#[test]
fn what_a_child_says_counts_from_when_it_was_so() {
    // No process had loaded the run meanwhile, so both messages are read at once.
    check(
        parent(PARENT)
            .advance("4s")
            .neglected("1h")
            .child_paced("a", Paused, 3_600_000)
            .show_left("a")
            .child_paced("a", Resumed, 1000)
            .show_left("a")
            .advance("5s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            after 3604s
            4 node.log a child paused
            5 run.status.changed paused (approval)
            left: step None, run None, waiting Some("human_input")
            6 run.status.changed running (approval)
            7 node.log a child resumed
            left: step Some(5000), run Some(16000), waiting None
            after 3609s
            8 node.timed_out a timeout: the attempt took longer than 10s
            9 node.failed b upstream_failure: Blocked by upstream failure
            10 run.failed timeout: `a` failed: the attempt took longer than 10s
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"the attempt took longer than 10s"}
        "#]],
    );
}

#[test]
fn a_child_that_ends_while_it_was_waited_for_ends_the_step() {
    check(
        parent(PARENT)
            .child_paced("a", Paused, 0)
            .advance("1h")
            .child("a", RunStatus::Completed, Some(json!({})), "")
            .child_paced("a", Resumed, 0)
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.log a child paused
            5 run.status.changed paused (approval)
            after 1h
            6 run.status.changed running (approval)
            7 node.provenance a outputs <- child1 outputs
            8 node.completed a {}
            9 node.queued b
            10 node.started b attempt=1 dispatch=1
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            11 node.completed b {"n":1}
            12 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_with_other_work_goes_on_while_a_child_waits_for_people() {
    check(
        parent(
            "
            timeout: 20s
            steps: [{id: a, workflow_ref: other, timeout: 10s}, {id: b, command: go, timeout: 15s}]
            ",
        )
        .child_paced("a", Paused, 0)
        .show_status()
        .advance("9s")
        .complete("b", json!({}))
        .show_status()
        .show_left("a")
        .advance("1h")
        .child_paced("a", Resumed, 0)
        .show_left("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1 child1
            5 node.started b attempt=1 dispatch=1
            6 node.log a child paused
            status: running
            after 9s
            7 node.completed b {}
            8 run.status.changed paused (approval)
            status: paused (approval)
            left: step None, run None, waiting Some("human_input")
            after 3609s
            9 run.status.changed running (approval)
            10 node.log a child resumed
            left: step Some(10000), run Some(11000), waiting None
        "#]],
    );
}

#[test]
fn a_cancelled_run_stops_a_child_that_waits_for_people_in_time() {
    check(
        parent(PARENT)
            .child_paced("a", Paused, 0)
            .advance("1h")
            .cancel()
            .child_paced("a", Resumed, 0)
            .child_paced("a", Paused, 0)
            .show_left("a")
            .advance("10s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.log a child paused
            5 run.status.changed paused (approval)
            after 1h
            6 run.status.changed cancelling (not needed) by ada
            7 node.cancelled b cancelled: not needed
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"not needed"}
            8 node.log a child resumed
            left: step Some(10000), run Some(20000), waiting None
            after 3610s
            9 node.cancelled a cancelled: it did not stop in time
            10 run.cancelled not needed
            message to child1: {"v":1,"do":"cancel","by":"run","reason":"it did not stop in time"}
        "#]],
    );
}

#[test]
fn a_child_says_when_it_waits_only_for_people_and_when_it_goes_on() {
    check(
        Script::flow(
            "
            steps:
              - {id: work, command: go}
              - {id: ask, approval: required, depends_on: [work]}
              - {id: more, command: go, depends_on: [ask]}
            ",
        )
        .started_by_a_step()
        .complete("work", json!({}))
        .advance("1h")
        .approve("ask")
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued work
            3 node.started work attempt=1 dispatch=1
            4 node.completed work {}
            5 node.queued ask
            6 approval.requested ask apr1 step "Approve `ask`?"
            7 run.status.changed paused (approval)
            message to parent: {"v":1,"do":"child_paced","child":"run","pace":"paused","at_ms":1700000000000}
            after 1h
            8 approval.reminded ask apr1 normal
            9 approval.resolved ask apr1 approved by bob
            10 run.status.changed running (approval)
            11 node.completed ask {"approved":true,"by":"bob","comment":null}
            12 node.queued more
            13 node.started more attempt=1 dispatch=1
            message to parent: {"v":1,"do":"child_paced","child":"run","pace":"resumed","at_ms":1700003600000}
            14 node.completed more {"n":2}
            15 run.completed {}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{},"error":null,"origins":[],"labels":{"all":{},"fields":{}}}
        "#]],
    );
    // The wait begins with an approval request and ends with the decision.
    check(
        Script::flow("steps: [{id: ask, approval: required}]")
            .started_by_a_step()
            .advance("1h")
            .approve("ask"),
        expect![[r#"
            1 run.started
            2 node.queued ask
            3 approval.requested ask apr1 step "Approve `ask`?"
            4 run.status.changed paused (approval)
            message to parent: {"v":1,"do":"child_paced","child":"run","pace":"paused","at_ms":1700000000000}
            after 1h
            5 approval.reminded ask apr1 normal
            6 approval.resolved ask apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.completed ask {"approved":true,"by":"bob","comment":null}
            9 run.completed {}
            message to parent: {"v":1,"do":"child_ended","child":"run","status":"completed","outputs":{},"error":null,"origins":[],"labels":{"all":{},"fields":{}}}
        "#]],
    );
}

#[test]
fn a_wait_of_a_grandchild_goes_up_to_the_run_at_the_top() {
    check(
        parent("steps: [{id: a, workflow_ref: other, timeout: 10s}]")
            .started_by_a_step()
            .child_paced("a", Paused, 0)
            .show_status()
            .advance("1h")
            .child_paced("a", Resumed, 0)
            .show_status(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1 child1
            4 node.log a child paused
            5 run.status.changed paused (approval)
            message to parent: {"v":1,"do":"child_paced","child":"run","pace":"paused","at_ms":1700000000000}
            status: paused (approval)
            after 1h
            6 run.status.changed running (approval)
            7 node.log a child resumed
            message to parent: {"v":1,"do":"child_paced","child":"run","pace":"resumed","at_ms":1700003600000}
            status: running
        "#]],
    );
}
