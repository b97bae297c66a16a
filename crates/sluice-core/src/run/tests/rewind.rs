//! Rewinding a run to a checkpoint.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::Auth;
use expect_test::expect;
use serde_json::json;

const CHAIN: &str = "
    steps:
      - {id: a, command: go, outputs: {x: integer}}
      - {id: b, command: go, depends_on: [a], outputs: {x: integer}}
      - {id: c, command: go, depends_on: [b]}
";

#[test]
fn later_results_no_longer_count_and_the_run_goes_on() {
    check(
        Script::flow(CHAIN)
            .complete("a", json!({"x": 1}))
            .complete("b", json!({"x": 2}))
            .show_due()
            .show_variables()
            .rewind(&["a"])
            .show_variables()
            .show_due()
            .complete_dispatch("c", 1)
            .complete("b", json!({"x": 3}))
            .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":1}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            7 node.completed b {"x":2}
            8 node.queued c
            9 node.started c attempt=1 dispatch=1
            due: c dispatch=1 key=c2f593
            variables: {"x":2}
            10 run.status.changed running (rewind) by ada
            11 node.invalidated b
            12 node.invalidated c
            13 node.queued b
            14 node.started b attempt=1 dispatch=2
            variables: {"x":1}
            due: b dispatch=2 key=34ec89
            refused: completion_late (the result is of a dispatch that is no longer in flight)
            15 node.completed b {"x":3}
            16 node.queued c
            17 node.started c attempt=1 dispatch=2
            18 node.completed c {}
            19 run.completed {"x":3}
        "#]],
    );
}

#[test]
fn a_run_that_has_ended_can_go_back_too() {
    check(
        Script::flow(CHAIN)
            .complete("a", json!({"x": 1}))
            .complete("b", json!({"x": 2}))
            .complete("c", json!({}))
            .rewind(&["a", "b", "c"])
            .rewind(&["a", "b"])
            .complete("c", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {"x":1}
            5 node.queued b
            6 node.started b attempt=1 dispatch=1
            7 node.completed b {"x":2}
            8 node.queued c
            9 node.started c attempt=1 dispatch=1
            10 node.completed c {}
            11 run.completed {"x":2}
            refused: nothing_to_rewind (nothing happened after this checkpoint)
            12 run.status.changed running (rewind) by ada
            13 node.invalidated c
            14 node.queued c
            15 node.started c attempt=1 dispatch=2
            16 node.completed c {}
            17 run.completed {"x":2}
        "#]],
    );
}

#[test]
fn instances_questions_and_waits_go_back_with_their_steps() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: each, command: go, for_each: {items: [1, 2, 3], max_parallel: 1}, depends_on: [a], retry: {attempts: 2}}
              - {id: ask, approval: required, depends_on: [a]}
              - {id: held, command: go, approval: required, for_each: [1, 2], depends_on: [a]}
            ",
        )
        .complete("a", json!({}))
        .complete("each[0]", json!({}))
        .fail("each[1]", crate::port::adapter::CallErrorCode::ProviderError)
        .approve("held[0]")
        .rewind(&["a"])
        .show_due(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 node.queued ask
            6 node.queued each items=3
            7 node.started each attempt=1 dispatch=1 fan_out
            8 node.queued each[0]
            9 node.queued each[1]
            10 node.queued each[2]
            11 node.queued held items=2
            12 node.started held attempt=1 dispatch=1 fan_out
            13 node.queued held[0]
            14 node.queued held[1]
            15 approval.requested ask apr1 step "Approve `ask`?"
            16 governance.decided held[0] "hold" null
            17 approval.requested held[0] apr2 step "Let `held[0]` do this?\ngo"
            18 governance.decided held[1] "hold" null
            19 approval.requested held[1] apr3 step "Let `held[1]` do this?\ngo"
            20 node.started each[0] attempt=1 dispatch=1
            21 node.completed each[0] {}
            22 node.started each[1] attempt=1 dispatch=1
            23 node.retried each[1] attempt=1 provider_error delay=469
            24 node.waiting each[1] retry_backoff attempt=2 provider_error delay=469
            25 node.started each[2] attempt=1 dispatch=1
            26 approval.resolved held[0] apr2 approved by bob
            27 node.started held[0] attempt=1 dispatch=1
            28 approval.resolved ask apr1 cancelled
            29 approval.resolved held[1] apr3 cancelled
            30 run.status.changed running (rewind) by ada
            31 node.invalidated each
            32 node.invalidated ask
            33 node.invalidated held
            34 node.queued ask
            35 node.queued each items=3
            36 node.started each attempt=1 dispatch=2 fan_out
            37 node.queued each[0]
            38 node.queued each[1]
            39 node.queued each[2]
            40 node.queued held items=2
            41 node.started held attempt=1 dispatch=2 fan_out
            42 node.queued held[0]
            43 node.queued held[1]
            44 approval.requested ask apr4 step "Approve `ask`?"
            45 governance.decided held[0] "hold" null
            46 approval.requested held[0] apr5 step "Let `held[0]` do this?\ngo"
            47 governance.decided held[1] "hold" null
            48 approval.requested held[1] apr6 step "Let `held[1]` do this?\ngo"
            49 node.started each[0] attempt=1 dispatch=2
            due: each[0] dispatch=2 key=8ef729
        "#]],
    );
}

#[test]
fn a_failed_run_is_taken_up_again_where_it_failed_and_recovers() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go}
              - {id: b, command: go}
              - {id: c, command: go, depends_on: [b]}
              - {id: d, command: go, depends_on: [a]}
            ",
        )
        .complete("a", json!({}))
        .fail("b", Auth)
        .complete("d", json!({}))
        .retry()
        .show(|world| format!("reopened: {}", world.run.reopened))
        .complete("b", json!({}))
        .complete("c", json!({}))
        .retry(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            6 node.completed a {}
            7 node.queued d
            8 node.started d attempt=1 dispatch=1
            9 node.failed b auth: it broke
            10 node.failed c upstream_failure: Blocked by upstream failure
            11 node.completed d {}
            12 run.failed auth: `b` failed: it broke
            13 run.status.changed running (retry) by ada
            14 node.invalidated b
            15 node.invalidated c
            16 node.queued b
            17 node.started b attempt=1 dispatch=2
            reopened: 1
            18 node.completed b {}
            19 node.queued c
            20 node.started c attempt=1 dispatch=1
            21 node.completed c {}
            22 run.recovered
            23 run.completed {}
            refused: run_not_failed (only a run that failed can be retried; this one is completed)
        "#]],
    );
}

#[test]
fn only_a_run_that_failed_can_be_taken_up_again() {
    check(
        Script::flow(CHAIN).retry().cancel().retry(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        refused: run_not_failed (only a run that failed can be retried; this one is running)
        4 run.status.changed cancelling (not needed) by ada
        5 node.cancelled b cancelled: not needed
        6 node.cancelled c cancelled: not needed
        refused: run_not_failed (only a run that failed can be retried; this one is cancelling)
    "#]],
    );
}

#[test]
fn attempts_start_anew_and_dispatches_count_on() {
    let flow = "steps: [{id: a, command: go, on_failure: retry_once}]";
    check(
        Script::flow(flow)
            .show_due()
            .fail("a", Auth)
            .fail("a", Auth)
            .retry()
            .show_due()
            .fail("a", Auth)
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            due: a dispatch=1 key=b51ada
            4 node.retried a attempt=1 auth delay=0
            5 node.waiting a retry_backoff attempt=2 auth delay=0
            6 node.started a attempt=2 dispatch=2
            7 node.failed a auth: it broke
            8 run.failed auth: `a` failed: it broke
            9 run.status.changed running (retry) by ada
            10 node.invalidated a
            11 node.queued a
            12 node.started a attempt=1 dispatch=3
            due: a dispatch=3 key=61e625
            13 node.retried a attempt=1 auth delay=0
            14 node.waiting a retry_backoff attempt=2 auth delay=0
            15 node.started a attempt=2 dispatch=4
            16 node.completed a {}
            17 run.recovered
            18 run.completed {}
        "#]],
    );
}

#[test]
fn what_instances_counted_and_cost_stays_with_their_step() {
    let flow =
        "steps: [{id: a, command: go}, {id: each, command: go, for_each: [1, 2], depends_on: [a]}]";
    let run = Script::flow(flow)
        .complete("a", json!({}))
        .complete("each[0]", json!({}))
        .complete("each[1]", json!({}))
        .rewind(&["a"])
        .complete("each[0]", json!({}))
        .run();
    let each = &run.steps[1];
    let instances = &each.fan_out.as_ref().expect("a fan-out").instances;
    assert_eq!((instances[0].dispatch_no, instances[0].generation), (2, 1));
    let total =
        each.usage.input_tokens + instances.iter().map(|one| one.usage.input_tokens).sum::<u64>();
    assert_eq!(total, 3);
}

#[test]
fn a_failed_lens_run_is_taken_up_again_with_what_was_skipped_for_it() {
    check(
        Script::lens(
            "
            nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}, {id: c, lens_id: l}]
            edges: [{id: e, source_node_id: a, target_node_id: b, target_param_label: x}]
            ",
        )
        .fail("a", Auth)
        .fail("c", Auth)
        .retry()
        .text("a", "A")
        .text("c", "C")
        .text("b", "B"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued c
            4 node.started a attempt=1 dispatch=1
            5 node.started c attempt=1 dispatch=1
            6 node.failed a auth: it broke
            7 node.skipped b parent_failure: `a` failed
            8 node.failed c auth: it broke
            9 run.failed auth: `a` failed: it broke
            10 run.status.changed running (retry) by ada
            11 node.invalidated a
            12 node.invalidated b
            13 node.invalidated c
            14 node.queued a
            15 node.queued c
            16 node.started a attempt=1 dispatch=2
            17 node.started c attempt=1 dispatch=2
            18 node.completed a {"output":"A"}
            19 node.queued b
            20 node.provenance b x <- a output
            21 node.started b attempt=1 dispatch=1
            22 node.completed c {"output":"C"}
            23 node.completed b {"output":"B"}
            24 run.recovered
            25 run.completed {"b":"B","c":"C"}
        "#]],
    );
}

#[test]
fn a_run_that_recovers_while_an_operator_holds_it_ends() {
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .fail("a", Auth)
            .retry()
            .pause()
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            6 run.status.changed running (retry) by ada
            7 node.invalidated a
            8 node.queued a
            9 node.started a attempt=1 dispatch=2
            10 run.status.changed paused (operator) by ada
            11 node.completed a {}
            12 run.recovered
            13 run.completed {}
        "#]],
    );
}

#[test]
fn a_run_taken_up_again_has_all_its_time() {
    check(
        Script::flow("timeout: 10s\nsteps: [{id: a, command: go}]")
            .advance("8s")
            .fail("a", Auth)
            .retry()
            .advance("9s")
            .show_status()
            .advance("1s"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 8s
            4 node.failed a auth: it broke
            5 run.failed auth: `a` failed: it broke
            6 run.status.changed running (retry) by ada
            7 node.invalidated a
            8 node.queued a
            9 node.started a attempt=1 dispatch=2
            status: running
            after 18s
            10 node.cancelled a timeout: the run took longer than 10s
            11 run.timed_out 10s
        "#]],
    );
}

#[test]
fn every_completion_and_skip_is_a_checkpoint() {
    let run = Script::flow(
        "
        steps:
          - {id: a, command: go}
          - {id: b, command: go, condition: 'false'}
          - {id: c, command: go, for_each: [1, 2]}
          - {id: d, command: go, depends_on: [a, c]}
        ",
    )
    .complete("a", json!({}))
    .complete("c[0]", json!({}))
    .complete("c[1]", json!({}))
    .fail("d", Auth)
    .run();
    assert_eq!(run.checkpoints, 3);
}
