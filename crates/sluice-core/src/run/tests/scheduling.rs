//! The order in which steps start.

use super::{Script, check};
use crate::port::adapter::CallErrorCode;
use expect_test::expect;
use serde_json::json;

#[test]
fn ready_steps_are_taken_in_the_order_of_their_ids() {
    check(
        Script::flow(
            "
            steps:
              - {id: c, command: go}
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [c]}
            ",
        )
        .show_due()
        .complete("c", json!({}))
        .complete("b", json!({}))
        .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued c
            4 node.started a attempt=1 dispatch=1
            5 node.started c attempt=1 dispatch=1
            due: c dispatch=1 key=c2f593, a dispatch=1 key=b51ada
            6 node.completed c {}
            7 node.queued b
            8 node.started b attempt=1 dispatch=1
            9 node.completed b {}
            10 node.completed a {}
            11 run.completed {}
        "#]],
    );
}

const DIAMOND: &str = "
    steps:
      - {id: a, command: go}
      - {id: b, command: go}
      - {id: a2, command: go, depends_on: [a]}
      - {id: b2, command: go, depends_on: [b]}
";

#[test]
fn an_eager_step_does_not_wait_for_its_siblings() {
    check(
        Script::flow(DIAMOND).complete("a", json!({})).answer_all(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.completed a {}
        7 node.queued a2
        8 node.started a2 attempt=1 dispatch=1
        9 node.completed b {"n":1}
        10 node.queued b2
        11 node.started b2 attempt=1 dispatch=1
        12 node.completed a2 {"n":2}
        13 node.completed b2 {"n":3}
        14 run.completed {}
    "#]],
    );
}

#[test]
fn a_wave_waits_for_all_of_the_one_before() {
    let waves = format!("{DIAMOND}    scheduling: waves\n");
    check(
        Script::flow(&waves).complete("a", json!({})).answer_all(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.completed a {}
        7 node.completed b {"n":1}
        8 node.queued a2
        9 node.queued b2
        10 node.started a2 attempt=1 dispatch=1
        11 node.started b2 attempt=1 dispatch=1
        12 node.completed a2 {"n":2}
        13 node.completed b2 {"n":3}
        14 run.completed {}
    "#]],
    );
}

#[test]
fn a_run_whose_open_wave_waits_for_a_person_is_paused() {
    check(
        Script::flow(
            "
            scheduling: waves
            steps:
              - {id: a, command: go}
              - {id: ask, approval: required}
              - {id: after, command: go, depends_on: [a]}
            ",
        )
        .complete("a", json!({}))
        .show(|world| format!("parked: {}", world.run.is_parked()))
        .approve("ask")
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued ask
            4 approval.requested ask apr1 step "Approve `ask`?"
            5 node.started a attempt=1 dispatch=1
            6 node.completed a {}
            7 run.status.changed paused (approval)
            parked: true
            8 approval.resolved ask apr1 approved by bob
            9 run.status.changed running (approval)
            10 node.completed ask {"approved":true,"by":"bob","comment":null}
            11 node.queued after
            12 node.started after attempt=1 dispatch=1
            13 node.completed after {"n":2}
            14 run.completed {}
        "#]],
    );
}

#[test]
fn no_more_steps_than_max_parallel_are_in_flight() {
    check(
        Script::flow(
            "
            max_parallel: 2
            steps:
              - {id: a, command: go}
              - {id: b, command: go, retry: {attempts: 2}}
              - {id: c, command: go}
            ",
        )
        .show_due()
        .fail("b", CallErrorCode::ProviderError)
        .show_due()
        .advance("1s")
        .show_due()
        .complete("a", json!({}))
        .show_due()
        .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada, b dispatch=1 key=f472e5
            7 node.retried b attempt=1 provider_error delay=391
            8 node.waiting b retry_backoff attempt=2 provider_error delay=391
            9 node.started c attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada, c dispatch=1 key=c2f593
            after 391ms
            10 node.queued b
            due: a dispatch=1 key=b51ada, c dispatch=1 key=c2f593
            after 1s
            11 node.completed a {}
            12 node.started b attempt=2 dispatch=2
            due: b dispatch=2 key=991e91, c dispatch=1 key=c2f593
            13 node.completed b {"n":1}
            14 node.completed c {"n":2}
            15 run.completed {}
        "#]],
    );
}

#[test]
fn a_process_that_does_no_work_only_queues() {
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]")
            .deferred()
            .complete("a", json!({}))
            .show(|world| format!("parked: {}", world.run.is_parked()))
            .allowed()
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued b
            parked: false
            6 node.started b attempt=1 dispatch=1
            7 node.completed b {"n":1}
            8 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_in_which_nothing_can_be_ready_is_stalled() {
    let mut world = Script::flow("steps: [{id: a, command: go}, {id: b, command: go}]").world();
    // No journal leads to this state: the index has lost a step.
    let plan = world.run.definition.plan.clone();
    world.run = super::super::state::Run::new(
        world.run.id,
        std::sync::Arc::new(super::super::definition::Definition::new(plan, String::new())),
        std::sync::Arc::clone(&world.run.started),
    );
    world.run.index.ready.clear();
    let mut entropy = super::world::Seeded(1);
    let given = super::super::command::Given {
        now_ms: world.now_ms,
        entropy: &mut entropy,
        dispatching: world.dispatching,
        authority: &world.desk,
    };
    let decided = super::super::decide::Turn::new(&mut world.run, given).finish();
    let told: Vec<String> = decided.events.iter().map(|event| format!("{event:?}")).collect();
    expect![[r#"RunFailed { code: "workflow_stalled", message: "Workflow stalled: 2 step(s) have unmet dependencies: a, b" }"#]].assert_eq(&told.join("\n"));
}

#[test]
fn parts_and_log_lines_are_of_the_dispatch_in_flight() {
    check(
        Script::flow("steps: [{id: a, command: go, on_failure: retry_once}]")
            .stream("a", "one")
            .show(|world| world.run.state(world.at("a")).status().to_string())
            .process("a")
            .log("a", "a line")
            .fail("a", CallErrorCode::ProviderError)
            .stream("a", "two")
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.stream.delta a index=0 Text("one")
            streaming
            5 node.log a process 77
            6 node.log a a line
            7 node.retried a attempt=1 provider_error delay=0
            8 node.waiting a retry_backoff attempt=2 provider_error delay=0
            9 node.started a attempt=2 dispatch=2
            10 node.stream.delta a index=1 Text("two")
            11 node.completed a {}
            12 run.completed {}
        "#]],
    );
}
