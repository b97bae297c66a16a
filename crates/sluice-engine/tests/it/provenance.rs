//! Values are followed from step to step, and from run to run.

use crate::world::{RunningEngine, World, ended, start, start_family};
use expect_test::{Expect, expect};
use sluice_core::id::RunId;
use sluice_core::journal::event::Origin;
use sluice_core::run::start::Carried;
use sluice_core::status::RunStatus;
use sluice_engine::provenance::{Ask, Direction, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const PARENT: &str = "
name: parent
steps:
  - {id: fetch, command: get, outputs: {n: integer, other: integer}}
  - {id: call, workflow_ref: child, args: {n: '${fetch.n}', other: '${fetch.other}'},
     outputs: {total: integer}}
  - {id: tell, command: 'it is ${call.outputs.total}'}
";
const CHILD: &str = "
name: child
args: {n: {type: integer}, other: {type: integer}}
outputs: {total: '${count.sum}'}
steps:
  - {id: count, command: 'count ${args.n}', outputs: {sum: string}}
  - {id: aside, command: 'look at ${args.other}'}
";
const SCRIPT: &str = "
fetch: {outputs: {n: 3, other: 4}}
count: {outputs: {sum: '7'}}
'*': {text: done}
";

async fn follow(
    life: &RunningEngine,
    run: RunId,
    step: Option<&str>,
    direction: Direction,
) -> Trace {
    let step = step.map(str::to_owned);
    life.provenance(run, &Ask { step, direction, hops_max: 8, steps_max: u32::MAX })
        .await
        .expect("the runs can be read")
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(names: &BTreeMap<RunId, &str>, trace: &Trace, expected: Expect) {
    let mut text = String::new();
    for flow in &trace.flows {
        let name = |run: &RunId| names.get(run).copied().unwrap_or("?");
        let how = flow.transform.as_ref().map(|how| format!(" ({how})")).unwrap_or_default();
        let (source, target) = (&flow.source, &flow.target);
        let _ = writeln!(
            text,
            "{}/{} {} -> {}/{} {}{how}",
            name(&source.run),
            source.node,
            flow.source_output_path,
            name(&target.run),
            target.node,
            flow.target_input_path,
        );
    }
    assert!(!trace.cut);
    expected.assert_eq(&text);
}

#[tokio::test]
async fn a_value_is_followed_into_a_child_and_back() {
    let world = World::new(SCRIPT);
    let life = world.boot().await;
    let parent = life.start(start_family(PARENT, "child", CHILD)).await.unwrap().run;
    let run = ended(&life, parent).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    let child = run.taken.keys().copied().next().expect("the child's result was taken");
    let names = BTreeMap::from([(parent, "parent"), (child, "child")]);
    let up = follow(&life, parent, Some("tell"), Direction::Up).await;
    check(
        &names,
        &up,
        expect![[r#"
            parent/call outputs.total -> parent/tell command
            child/count sum -> parent/call outputs.total (coerced string to integer)
            parent/call args.n -> child/count command
            parent/fetch n -> parent/call args.n
        "#]],
    );
    let down = follow(&life, child, Some("count"), Direction::Down).await;
    check(
        &names,
        &down,
        expect![[r#"
            child/count sum -> parent/call outputs.total (coerced string to integer)
            parent/call outputs.total -> parent/tell command
        "#]],
    );
    let down = follow(&life, parent, Some("fetch"), Direction::Down).await;
    check(
        &names,
        &down,
        expect![[r#"
        parent/fetch n -> parent/call args.n
        parent/fetch other -> parent/call args.other
        parent/call outputs.total -> parent/tell command
        parent/call args.n -> child/count command
        parent/call args.other -> child/aside command
        child/count sum -> parent/call outputs.total (coerced string to integer)
    "#]],
    );
    assert_eq!((life.taken(child).await.unwrap(), life.taken(parent).await.unwrap()), (1, 2));
    life.leave().await;
}

#[tokio::test]
async fn carried_results_are_traced_to_the_run_they_come_from() {
    let world = World::new(SCRIPT);
    let life = world.boot().await;
    let flow = "name: two\nsteps: [{id: fetch, command: get}, {id: b, command: '${fetch.n}'}]";
    let source = life.start(start(flow)).await.unwrap().run;
    let source = ended(&life, source).await;
    let mut again = start(flow);
    again.carried = Carried::for_restart(&source, BTreeSet::from([1]));
    again.origin =
        Some(Origin { kind: "restart".to_owned(), run: source.id, event: source.version });
    let restarted = life.start(again).await.unwrap().run;
    ended(&life, restarted).await;
    let names = BTreeMap::from([(source.id, "first"), (restarted, "second")]);
    let down = follow(&life, source.id, Some("fetch"), Direction::Down).await;
    check(
        &names,
        &down,
        expect![[r#"
        first/fetch n -> first/b command
        first/fetch outputs -> second/fetch outputs (carried)
        second/fetch n -> second/b command
    "#]],
    );
    let up = follow(&life, restarted, Some("b"), Direction::Up).await;
    check(
        &names,
        &up,
        expect![[r#"
        second/fetch n -> second/b command
        first/fetch outputs -> second/fetch outputs (carried)
    "#]],
    );
    assert_eq!(life.taken(source.id).await.unwrap(), 1);
    life.leave().await;
}

#[tokio::test]
async fn a_provenance_walk_respects_its_limits() {
    let world = World::new(SCRIPT);
    let life = world.boot().await;
    let parent = life.start(start_family(PARENT, "child", CHILD)).await.unwrap().run;
    ended(&life, parent).await;
    let ask = Ask {
        step: Some("tell".to_owned()),
        direction: Direction::Up,
        hops_max: 0,
        steps_max: u32::MAX,
    };
    let trace = life.provenance(parent, &ask).await.unwrap();
    assert!(trace.cut);
    assert!(trace.flows.iter().all(|flow| flow.target.run == parent));
    // Both ends name their workflow, even the run that was not visited.
    let name = trace.workflows[&parent].clone();
    let rows = trace.rows();
    assert!(rows.iter().all(|row| row["target"]["workflow"] == *name), "{rows:?}");
    assert!(rows.iter().any(|row| row["source"]["workflow"] == "child"), "{rows:?}");
    assert!(life.provenance(RunId(1), &ask).await.is_err());
    life.leave().await;
}
