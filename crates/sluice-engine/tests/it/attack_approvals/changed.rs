//! The dispatched action differs from the approved one.

use super::asks;
use crate::operator::{answer, governed, open_approval, policy, put, remove};
use crate::world::{RunningEngine, ended, start, until};
use serde_json::{Map, json};
use sluice_core::id::RunId;
use sluice_core::journal::event::{ChangedValue, Origin};
use sluice_core::run::command::{Command, Decision, Refusal, Resolve};
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::error::CommandError;
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Kind;
use std::collections::BTreeSet;

const MOCK: &str = "a: {outputs: {x: 1}}\npay: {text: done}";
const FLOW: &str = "
name: flow
args: {amount: {type: integer, default: 5}}
steps:
  - {id: a, command: go, outputs: {x: integer}}
  - {id: pay, command: 'pay ${args.amount} to ${a.outputs.x}', approval: required, depends_on: [a]}
";

/// The differences that the open approval request of a run shows, by path.
fn shown(run: &Run) -> Vec<String> {
    let asked = run.approvals[&open_approval(run)].action.clone().expect("it is about an action");
    asked.changes.iter().map(|change: &ChangedValue| change.path.clone()).collect()
}

async fn approve(life: &RunningEngine, run: &Run) {
    approve_as(life, run, "bob").await;
}

async fn approve_as(life: &RunningEngine, run: &Run, by: &str) {
    answer(life, run.id, open_approval(run), Decision::Approve, by, &[]).await.expect("it counts");
}

/// A run of the workflow, with one payment.
async fn paid(life: &RunningEngine) -> Run {
    let id = life.start(start(FLOW)).await.expect("it starts").run;
    approve(life, &asks(life, id).await).await;
    let run = ended(life, id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    run
}

async fn made_from(
    life: &RunningEngine,
    source: &Run,
    document: &str,
    args: Map<String, serde_json::Value>,
) -> RunId {
    let mut start = start(document);
    start.args = args;
    start.origin =
        Some(Origin { kind: "restart".to_owned(), run: source.id, event: source.version });
    start.carried = Carried::for_restart(source, BTreeSet::from([1]));
    start.agreed = Carried::agreed(source);
    life.start(start).await.expect("it starts").run
}

#[tokio::test]
async fn a_changed_definition_needs_another_approval_that_shows_the_difference() {
    let (world, life) = governed(MOCK, &[]).await;
    let source = paid(&life).await;
    let document = FLOW.replace("pay ${args", "pay twice ${args");
    let id = made_from(&life, &source, &document, Map::new()).await;
    let run = asks(&life, id).await;
    let shown = shown(&run);
    assert!(shown.iter().any(|path| path.contains("command")), "{shown:?}");
    assert!(shown.iter().any(|path| path.contains("definition")), "{shown:?}");
    assert_eq!(world.calls("pay").len(), 1);
}

#[tokio::test]
async fn changed_arguments_need_another_approval_that_shows_the_difference() {
    let (world, life) = governed(MOCK, &[]).await;
    let source = paid(&life).await;
    let args = Map::from_iter([("amount".to_owned(), json!(500))]);
    let id = made_from(&life, &source, FLOW, args).await;
    let run = asks(&life, id).await;
    let shown = shown(&run);
    assert!(shown.iter().any(|path| path.contains("command")), "{shown:?}");
    assert_eq!(world.calls("pay").len(), 1);
}

#[tokio::test]
async fn the_same_action_in_another_run_needs_another_approval() {
    let (world, life) = governed(MOCK, &[]).await;
    let source = paid(&life).await;
    let id = made_from(&life, &source, FLOW, Map::new()).await;
    assert_eq!(shown(&asks(&life, id).await), Vec::<String>::new());
    assert_eq!(world.calls("pay").len(), 1, "a grant is for one dispatch");
}

#[tokio::test]
async fn a_rewound_step_is_decided_again_with_its_new_command() {
    let mock = "a: [{outputs: {x: 1}}, {outputs: {x: 666}}]\npay: {text: done}";
    let (world, life) = governed(mock, &[]).await;
    let source = paid(&life).await;
    let command = Command::Rewind { by: "eve".to_owned(), keep: BTreeSet::new() };
    life.command(source.id, command, "rewind").await.unwrap();
    let run = asks(&life, source.id).await;
    let shown = shown(&run);
    assert!(shown.iter().any(|path| path.contains("command")), "{shown:?}");
    assert_eq!(world.calls("pay").len(), 1);
    approve(&life, &run).await;
    assert_eq!(ended(&life, source.id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("pay").len(), 2);
}

const TIGHT: &str = "@id(\"pay\") @action(\"require_approval\") \
    forbid (principal, action == Action::\"dispatch_step\", resource) \
    when { context has step && context.step.id == \"pay\" };";

/// Approved, but no slot is free: the rules change before the dispatch.
async fn waits_for_a_slot(life: &RunningEngine, id: RunId) -> Run {
    put(&*life.store(), &[(Kind::Agent, "mock", json!({"status": "paused"}))]).await;
    let run = asks(life, id).await;
    approve(life, &run).await;
    until(life, id, |run| run.gated().next().is_some()).await
}

async fn resume(life: &RunningEngine) {
    put(&*life.store(), &[(Kind::Agent, "mock", json!({"status": "idle"}))]).await;
}

#[tokio::test]
async fn a_policy_that_matches_after_the_approval_requires_another() {
    let (world, life) = governed(MOCK, &[]).await;
    let id = life.start(start(FLOW)).await.unwrap().run;
    asks(&life, id).await;
    waits_for_a_slot(&life, id).await;
    policy(&*life.store(), "pay.cedar", TIGHT).await;
    resume(&life).await;
    let run = until(&life, id, |run| run.approvals.len() == 2).await;
    let shown = shown(&run);
    assert!(shown.iter().any(|path| path.contains("polic")), "{shown:?}");
    assert!(world.calls("pay").is_empty());
    approve(&life, &run).await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("pay").len(), 1);
}

#[tokio::test]
async fn an_unrelated_policy_does_not_void_an_approval() {
    let (world, life) = governed(MOCK, &[]).await;
    let id = life.start(start(FLOW)).await.unwrap().run;
    asks(&life, id).await;
    waits_for_a_slot(&life, id).await;
    policy(&*life.store(), "other.cedar", &TIGHT.replace("== \"pay\"", "== \"mail\"")).await;
    resume(&life).await;
    let run = ended(&life, id).await;
    assert_eq!((run.status, run.approvals.len()), (RunStatus::Completed, 1));
    assert_eq!(world.calls("pay").len(), 1);
    remove(&*life.store(), Kind::Policy, "other.cedar").await;
}

/// An approval that limits the use of data.
fn bounded(run: &Run, by: &str, data_access: &str) -> Command {
    Command::Resolve(Box::new(Resolve {
        approval: open_approval(run),
        decision: Decision::Approve,
        by: by.to_owned(),
        comment: None,
        values: Map::new(),
        roles: Vec::new(),
        constraints: Some(Constraints {
            data_access: Some(data_access.to_owned()),
            ..Constraints::default()
        }),
    }))
}

#[tokio::test]
async fn an_approval_may_tighten_but_never_widen() {
    let (world, life) = governed(MOCK, &[]).await;
    let document = FLOW.replace("approval: required", "approval: {quorum: 2}");
    let id = life.start(start(&document)).await.unwrap().run;
    let run = asks(&life, id).await;
    life.command(id, bounded(&run, "bob", "read_only"), "bob").await.unwrap();
    let wider = life.command(id, bounded(&run, "eve", "read_write"), "eve").await;
    assert!(matches!(wider, Err(CommandError::Refused(Refusal::Widens(_)))), "{wider:?}");
    assert!(world.calls("pay").is_empty());
    approve_as(&life, &run, "eve").await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    let pays = world.requests("pay");
    assert_eq!(pays[0].constraints.data_access.as_deref(), Some("read_only"));
}
