//! New runs that carry over results of another run.

use super::{Script, check};
use crate::port::adapter::CallErrorCode::Auth;
use crate::run::start::Carried;
use crate::run::state::Run;
use expect_test::expect;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const FLOW: &str = "
    steps:
      - {id: b, command: go, outputs: {x: integer}}
      - {id: a, command: go, outputs: {x: integer}}
      - {id: no, command: go, condition: 'false'}
      - {id: bad, command: 'x is ${x}', depends_on: [a, b, no]}
      - {id: after, command: go, depends_on: [bad]}
      - {id: spread, command: go, for_each: [1, 2], depends_on: [a]}
";

fn source() -> Run {
    Script::flow(FLOW)
        .complete("a", json!({"x": 1}))
        .complete("spread[1]", json!({"n": 1}))
        .complete("spread[0]", json!({"n": 0}))
        .complete("b", json!({"x": 2}))
        .fail("bad", Auth)
        .run()
}

#[test]
fn a_restart_does_again_what_failed_and_what_depends_on_it() {
    check(
        Script::flow(FLOW)
            .carrying(|| Carried::for_restart(&source(), BTreeSet::new()))
            .show_variables()
            .show_prompt("bad")
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.provenance a outputs <- run a outputs (carried)
            3 node.completed a {"x":1} carried
            4 node.provenance spread outputs <- run spread outputs (carried)
            5 node.completed spread {"items":[{"n":0},{"n":1}]} carried
            6 node.provenance b outputs <- run b outputs (carried)
            7 node.completed b {"x":2} carried
            8 node.skipped no condition_false: its condition is false carried
            9 node.queued bad
            10 node.provenance bad command <- b x
            11 node.started bad attempt=1 dispatch=1
            variables: {"x":2}
            bad is given {} and "x is 2"
            12 node.completed bad {"n":3}
            13 node.queued after
            14 node.started after attempt=1 dispatch=1
            15 node.completed after {"n":4}
            16 run.completed {"x":2}
        "#]],
    );
}

#[test]
fn a_restart_from_a_step_does_that_step_again() {
    check(
        Script::flow(FLOW)
            .carrying(|| {
                let source = source();
                let at = source.find("a").expect("a step").step;
                Carried::for_restart(&source, BTreeSet::from([at]))
            })
            .complete("a", json!({"x": 3}))
            .show_variables()
            .show_prompt("bad")
            .answer_all(),
        expect![[r#"
            1 run.started
            2 node.provenance b outputs <- run b outputs (carried)
            3 node.completed b {"x":2} carried
            4 node.skipped no condition_false: its condition is false carried
            5 node.queued a
            6 node.started a attempt=1 dispatch=1
            7 node.completed a {"x":3}
            8 node.queued bad
            9 node.queued spread items=2
            10 node.started spread attempt=1 dispatch=1 fan_out
            11 node.queued spread[0]
            12 node.queued spread[1]
            13 node.provenance bad command <- a x
            14 node.started bad attempt=1 dispatch=1
            15 node.started spread[0] attempt=1 dispatch=1
            16 node.started spread[1] attempt=1 dispatch=1
            variables: {"x":3}
            bad is given {} and "x is 3"
            17 node.completed bad {"n":3}
            18 node.queued after
            19 node.started after attempt=1 dispatch=1
            20 node.completed after {"n":4}
            21 node.completed spread[0] {"n":5}
            22 node.completed spread[1] {"n":5}
            23 node.completed spread {"items":[{"n":5},{"n":5}]}
            24 run.completed {"x":3}
        "#]],
    );
}

#[test]
fn variables_and_their_writers_are_as_they_were() {
    let source = source();
    let run = Script::flow(FLOW)
        .carrying(|| Carried::for_restart(&self::source(), BTreeSet::new()))
        .run();
    assert_eq!(run.writers, source.writers);
    assert_eq!(run.index.variables, source.index.variables);
    assert!(run.variables().eq(source.variables()));
    let a = run.find("a").expect("a step");
    assert_eq!((run.state(a).attempt, run.state(a).dispatch_no), (1, 0));
}

#[test]
fn what_is_done_again_is_known_before() {
    let source = source();
    let again = |steps: &[&str]| {
        let steps = steps.iter().map(|id| source.find(id).expect("a step").step).collect();
        let carried = Carried::for_restart(&source, steps);
        let repeats = carried.repeats(&source.definition.plan);
        let name = |step: u32| source.definition.plan.steps[step as usize].id.clone();
        repeats.into_iter().map(name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(again(&[]), "bad after");
    assert_eq!(again(&["spread"]), "bad after spread");
    assert_eq!(again(&["a"]), "a bad after spread");
}

#[test]
fn what_depends_on_an_uncarried_failure_is_done_again_too() {
    let flow = "
        steps:
          - {id: a, command: go}
          - {id: b, command: go}
          - {id: c, command: go, depends_on: [b], on_parent_failure: skip}
    ";
    let source = Script::flow(flow).fail("b", Auth).complete("a", json!({})).run();
    let carried = Carried::for_restart(&source, BTreeSet::from([0]));
    assert_eq!(carried.repeats(&source.definition.plan), [0, 1, 2]);
}

#[test]
fn a_branch_goes_on_with_other_outputs() {
    check(
        Script::flow(FLOW)
            .carrying(|| {
                let checkpoint = Script::flow(FLOW)
                    .complete("a", json!({"x": 1}))
                    .complete("b", json!({"x": 2}))
                    .run();
                let step = checkpoint.find("b").expect("a step").step;
                let changed = Map::from_iter([("x".to_owned(), Value::from(9))]);
                Carried::for_branch(&checkpoint, &BTreeMap::from([(step, changed)]))
            })
            .show_prompt("bad"),
        expect![[r#"
            1 run.started
            2 node.provenance a outputs <- run a outputs (carried)
            3 node.completed a {"x":1} carried
            4 node.provenance b outputs <- run b outputs (carried, changed)
            5 node.completed b {"x":9} carried
            6 node.skipped no condition_false: its condition is false carried
            7 node.queued bad
            8 node.queued spread items=2
            9 node.started spread attempt=1 dispatch=1 fan_out
            10 node.queued spread[0]
            11 node.queued spread[1]
            12 node.provenance bad command <- b x
            13 node.started bad attempt=1 dispatch=1
            14 node.started spread[0] attempt=1 dispatch=1
            15 node.started spread[1] attempt=1 dispatch=1
            bad is given {} and "x is 9"
        "#]],
    );
}

#[test]
fn a_branch_of_a_lens_run_changes_what_edges_carry() {
    let flow = "
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}]
        edges: [{id: e, source_node_id: a, target_node_id: b, target_param_label: x}]
    ";
    let changed = Map::from_iter([("output".to_owned(), Value::from("new"))]);
    check(
        Script::lens(flow)
            .carrying(move || {
                let checkpoint = Script::lens(flow).text("a", "old").run();
                Carried::for_branch(&checkpoint, &BTreeMap::from([(0, changed)]))
            })
            .show_prompt("b"),
        expect![[r#"
            1 run.started
            2 node.provenance a outputs <- run a outputs (carried, changed)
            3 node.completed a {"output":"new"} carried
            4 node.queued b
            5 node.provenance b x <- a output
            6 node.started b attempt=1 dispatch=1
            b is given {"x":"new"} and "new"
        "#]],
    );
}

#[test]
fn a_run_that_takes_over_everything_ends_at_once() {
    check(
        Script::flow("steps: [{id: a, command: go}]").carrying(|| {
            let source = Script::flow("steps: [{id: a, command: go}]").answer_all().run();
            Carried::for_branch(&source, &BTreeMap::new())
        }),
        expect![[r#"
            1 run.started
            2 node.provenance a outputs <- run a outputs (carried)
            3 node.completed a {"n":0} carried
            4 run.completed {}
        "#]],
    );
}
