//! Every other path to a dispatch: each is decided like the first.
//!
//! The first dispatch is allowed; then a policy forbids all. Whatever path is tried after
//! that, no agent is called, and the journal has the reason.

use super::error;
use crate::operator::{answer, events, governed, open_approval, policy};
use crate::world::{
    RunningEngine, World, config, ended, happens, start, start_family, step, stored, until,
};
use serde_json::{Map, json};
use sluice_core::id::RunId;
use sluice_core::journal::event::Origin;
use sluice_core::port::store::{Filter, Store as _};
use sluice_core::run::command::{Command, Decision};
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use std::collections::{BTreeMap, BTreeSet};

const FORBID: &str =
    "@id(\"no\") forbid (principal, action == Action::\"dispatch_step\", resource);";

async fn forbid(life: &RunningEngine) {
    policy(&*life.store(), "no.cedar", FORBID).await;
}

/// Checks that the gates decided, and blocked.
async fn refused(life: &RunningEngine, run: RunId) -> Run {
    let run = ended(life, run).await;
    assert_eq!(error(&run), "policy_blocked", "{:?}", run.end);
    let decided = events(life, &run, "governance.decided").await;
    let blocked = decided.iter().any(|one| one.to_string().contains("\"block\""));
    assert!(blocked, "{decided:?}");
    run
}

const TWO: &str = "
name: flow
steps:
  - {id: a, command: go, outputs: {x: integer}}
  - {id: b, command: 'use ${a.outputs.x}', depends_on: [a]}
";

#[tokio::test]
async fn a_retry_is_decided_again() {
    let (world, life) = governed("a: {error: no, delay_ms: 20}", &[]).await;
    let flow = "name: flow\nsteps: [{id: a, command: go, retry: {attempts: 3, backoff_ms: 300}}]";
    let id = life.start(start(flow)).await.unwrap().run;
    until(&life, id, |run| step(run, "a").status() == StepStatus::Retrying).await;
    forbid(&life).await;
    refused(&life, id).await;
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn the_recovery_of_a_failed_run_is_decided_again() {
    let (world, life) = governed("a: {error: no}", &[]).await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    assert_eq!(error(&ended(&life, id).await), "provider_error");
    forbid(&life).await;
    life.command(id, Command::Retry { by: "ada".to_owned() }, "retry").await.unwrap();
    until(&life, id, |run| error(run) == "policy_blocked").await;
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn a_rewind_is_decided_again() {
    let (world, life) = governed("a: {outputs: {x: 1}}\nb: {text: done}", &[]).await;
    let id = life.start(start(TWO)).await.unwrap().run;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    forbid(&life).await;
    let command = Command::Rewind { by: "ada".to_owned(), keep: BTreeSet::from([0]) };
    life.command(id, command, "rewind").await.unwrap();
    until(&life, id, |run| error(run) == "policy_blocked").await;
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 1));
}

/// A run restarted from another.
async fn renewed(life: &RunningEngine, source: &Run, kind: &str, carried: Carried) -> RunId {
    let mut start = start(TWO);
    start.origin = Some(Origin { kind: kind.to_owned(), run: source.id, event: source.version });
    start.carried = carried;
    life.start(start).await.expect("it starts").run
}

#[tokio::test]
async fn a_restart_and_a_branch_are_decided_again() {
    let (world, life) = governed("a: {outputs: {x: 1}}\nb: {text: done}", &[]).await;
    let id = life.start(start(TWO)).await.unwrap().run;
    let source = ended(&life, id).await;
    forbid(&life).await;
    let restart = Carried::for_restart(&source, BTreeSet::from([1]));
    refused(&life, renewed(&life, &source, "restart", restart).await).await;
    // The state in which only the first step was done.
    let mut then = source.clone();
    while step(&then, "b").status() != StepStatus::Pending {
        then = life.load_at(id, then.version - 1).await.unwrap();
    }
    let changed = BTreeMap::from([(0, Map::from_iter([("x".to_owned(), json!(2))]))]);
    let branch = Carried::for_branch(&then, &changed);
    refused(&life, renewed(&life, &source, "branch", branch).await).await;
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 1));
}

#[tokio::test]
async fn the_steps_of_a_child_are_decided() {
    let (world, life) = governed("'*': {text: done}", &[]).await;
    forbid(&life).await;
    let child = "name: other\nsteps: [{id: c, command: go}]";
    let parent = "name: parent\nsteps: [{id: p, workflow_ref: other}]";
    let id = life.start(start_family(parent, "other", child)).await.unwrap().run;
    assert_eq!(error(&ended(&life, id).await), "child_failed");
    let filter = Filter { parent: Some(id), ..Filter::default() };
    let children = life.store().list(filter).await.unwrap();
    refused(&life, children[0].run).await;
    assert!(world.calls("c").is_empty());
}

#[tokio::test]
async fn the_start_of_a_child_is_decided() {
    let (world, life) = governed("'*': {text: done}", &[]).await;
    let text = "@id(\"no\") forbid (principal, action == Action::\"start_run\", \
                resource == Workflow::\"other\") when { context has step };";
    policy(&*life.store(), "no.cedar", text).await;
    let child = "name: other\nsteps: [{id: c, command: go}]";
    let parent = "name: parent\nsteps: [{id: p, workflow_ref: other}]";
    let id = life.start(start_family(parent, "other", child)).await.unwrap().run;
    refused(&life, id).await;
    assert!(world.calls("c").is_empty());
}

#[tokio::test]
async fn every_instance_of_a_batch_is_decided() {
    let (world, life) = governed("each: {text: done, delay_ms: 100}", &[]).await;
    let flow = "
name: flow
steps: [{id: each, command: go, for_each: {items: [1, 2, 3, 4], max_parallel: 1}}]
";
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the first", || !world.calls("each[0]").is_empty()).await;
    forbid(&life).await;
    refused(&life, id).await;
    let calls = (0..4).map(|item| world.calls(&format!("each[{item}]")).len()).sum::<usize>();
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_dispatch_repeated_after_a_crash_is_decided_again() {
    let world = World::new("a: {hang: true}");
    let life = world.boot_with(config()).await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    happens("the first", || world.calls("a").len() == 1).await;
    forbid(&life).await;
    life.crash().await;
    let life = world.boot_with(config()).await;
    refused(&life, id).await;
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn an_approved_action_is_decided_again() {
    let (world, life) = governed("a: {text: done}", &[]).await;
    let flow = "name: flow\nsteps: [{id: a, command: go, approval: required}]";
    let id = life.start(start(flow)).await.unwrap().run;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    forbid(&life).await;
    answer(&life, id, open_approval(&run), Decision::Approve, "ada", &[]).await.unwrap();
    refused(&life, id).await;
    assert!(world.calls("a").is_empty());
}

#[tokio::test]
async fn a_denied_run_does_not_start() {
    let (world, life) = governed("a: {text: done}", &[]).await;
    let text = "@id(\"no\") forbid (principal, action == Action::\"start_run\", resource);";
    policy(&*life.store(), "no.cedar", text).await;
    // A process that has not seen the change notices it in time.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let flow = stored("name: flow\nsteps: [{id: a, command: go}]");
    let mut asked = sluice_engine::start::Start::new(flow, Map::new());
    asked.default_agent = Some("mock".to_owned());
    let refused = life.start(asked).await;
    assert!(refused.is_err(), "{refused:?}");
    let entries = life.store().list(Filter::default()).await.unwrap();
    assert!(entries.is_empty() && world.calls("a").is_empty());
}
