//! What a run was doing when its process died continues in the next process.
//!
//! A crash is an engine that is dropped; a restart is a new engine on its directory.

use crate::world::{
    PATIENCE, RunningEngine, World, cancel, config, ended, happens, outputs, resolve, start,
    start_family, step, until,
};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::journal::event::Path;
use sluice_core::port::store::{Filter, Store as _};
use sluice_core::run::command::{Command, Decision, Refusal};
use sluice_core::run::state::{Run, StepState};
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::config::{Claims, Config};
use sluice_engine::error::{CommandError, Delivered};
use std::time::Duration;

#[tokio::test]
async fn a_finished_step_is_not_done_again_and_one_in_flight_is_sent_again() {
    let world = World::new("a: {outputs: {x: 1}}\nb: [{hang: true}, {text: done}]");
    let flow = "
name: flow
steps:
  - {id: a, command: go}
  - {id: b, command: 'with ${a.outputs.x}'}
";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the second step", || world.calls("b").len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 1);
    let calls = world.calls("b");
    let numbers: Vec<_> =
        calls.iter().map(|(dispatch, attempt, _)| (*dispatch, *attempt)).collect();
    assert_eq!(numbers, [(1, 1), (2, 1)]);
    assert_eq!(calls[0].2, calls[1].2, "a crash does not change the key");
    let events = life.events(&run, 0).await.unwrap();
    let taken = |json: &str| json.contains("taken_over");
    let shown = events.into_iter().filter_map(Seen::event);
    assert_eq!(shown.filter(|one| taken(&one.json)).count(), 1);
}

#[tokio::test]
async fn a_step_that_must_not_be_repeated_waits_for_an_operator() {
    let world = World::new("a: [{hang: true}, {text: done}]");
    let flow = "name: flow\nsteps: [{id: a, command: go, idempotent: false}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    assert_eq!(world.calls("a").len(), 1);
    life.crash().await;
    let life = world.boot().await;
    resolve(&life, &run, Decision::Retry, json!({})).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 2);
}

#[tokio::test]
async fn a_cancel_requested_before_a_crash_is_finished_after_it() {
    let world = World::new("b: {text: done}");
    let flow = "
name: flow
steps:
  - {id: a, agent: deaf, command: go}
  - {id: b, command: go, depends_on: [a]}
";
    let life = world.boot_with(Config { grace_ms: 60_000, ..config() }).await;
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    cancel(&life, id).await.unwrap();
    let run = life.load(id).await.unwrap();
    assert_eq!(run.status, RunStatus::Cancelling);
    assert_eq!(step(&run, "b").status(), StepStatus::Cancelled);
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Cancelled);
    assert_eq!(run.cancel_reason.as_deref(), Some("not needed"));
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 0));
    assert_eq!(cancel(&life, id).await.unwrap(), Delivered::Done);
}

#[tokio::test]
async fn a_cancel_reaches_a_run_whose_process_died() {
    let world = World::new("a: {hang: true}");
    let life = world.boot().await;
    let id = life.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    life.crash().await;
    let life = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    assert_eq!(cancel(&life, id).await.unwrap(), Delivered::Done);
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Cancelled);
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn an_attempt_sent_again_has_its_time_and_then_times_out() {
    let world = World::new("a: {hang: true}");
    let flow = "name: flow\nsteps: [{id: a, command: go, timeout: 300ms}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    let deadline_ms = step(&life.load(id).await.unwrap(), "a").phase.deadline_ms().unwrap();
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(step(&run, "a").status(), StepStatus::TimedOut);
    assert!(run.ended_at_ms.unwrap() >= deadline_ms);
    assert!(world.calls("a").len() <= 2);
}

/// The run is loaded while it waits, and then only in the store.
#[tokio::test]
async fn a_wait_before_another_attempt_ends_when_it_would_have() {
    for park_after_ms in [30_000, 0] {
        let world = World::new("a: [{error: broke}, {text: done}]");
        let flow = "
name: flow
steps: [{id: a, command: go, retry: {attempts: 2, backoff_ms: 1500, max_backoff_ms: 1500}}]
";
        let config = || Config { park_after_ms, ..config() };
        let life = world.boot_with(config()).await;
        let id = life.start(start(flow)).await.unwrap().run;
        let waits = |run: &Run| step(run, "a").status() == StepStatus::Retrying;
        let run = until(&life, id, waits).await;
        let wake_at_ms = step(&run, "a").phase.wakes_at_ms().unwrap();
        life.crash().await;
        let life = world.boot_with(config()).await;
        let run = life.load(id).await.unwrap();
        assert_eq!(step(&run, "a").phase.wakes_at_ms(), Some(wake_at_ms));
        assert_eq!(world.calls("a").len(), 1);
        let run = ended(&life, id).await;
        assert_eq!(run.status, RunStatus::Completed);
        assert!(step(&run, "a").attempt_at_ms().unwrap() >= wake_at_ms);
        let calls = world.calls("a");
        assert_eq!((calls[1].0, calls[1].1), (2, 2));
        assert_ne!(calls[0].2, calls[1].2, "another attempt has another key");
    }
}

const ASK: &str = "
name: ask
steps:
  - {id: first, command: go}
  - {id: sure, approval: {expires_in: EXPIRES}, outputs: {amount: integer}, depends_on: [first]}
  - {id: pay, command: 'pay ${amount}', depends_on: [sure]}
";

fn ask(expires_in: &str) -> String {
    ASK.replace("EXPIRES", expires_in)
}

#[tokio::test]
async fn an_approval_without_a_working_node_is_kept_until_there_is_one() {
    let world = World::new("'*': {text: done}");
    let life = world.boot().await;
    let id = life.start(start(&ask("1h"))).await.unwrap().run;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    life.crash().await;
    let clerk = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    let wrong = resolve(&clerk, &run, Decision::Approve, json!({"amount": "much"})).await;
    assert!(matches!(wrong, Err(CommandError::Refused(Refusal::BadValues(_)))), "{wrong:?}");
    let given = resolve(&clerk, &run, Decision::Approve, json!({"amount": "12"})).await;
    assert_eq!(given.unwrap(), Delivered::Done);
    let run = clerk.load(id).await.unwrap();
    assert_eq!(step(&run, "sure").status(), StepStatus::Completed);
    let again = resolve(&clerk, &run, Decision::Approve, json!({"amount": "13"})).await;
    assert!(matches!(again, Err(CommandError::Refused(Refusal::Resolved(_)))), "{again:?}");
    assert!(world.calls("pay").is_empty());
    clerk.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(outputs(&run), json!({"amount": 12}));
    assert_eq!((world.calls("first").len(), world.calls("pay").len()), (1, 1));
}

#[tokio::test]
async fn supplied_values_are_checked_and_used_after_a_restart() {
    let world = World::new("'*': {text: done}");
    let life = world.boot().await;
    let id = life.start(start(&ask("1h"))).await.unwrap().run;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    life.crash().await;
    let life = world.boot().await;
    let wrong = resolve(&life, &run, Decision::Approve, json!({})).await;
    assert!(matches!(wrong, Err(CommandError::Refused(Refusal::BadValues(_)))), "{wrong:?}");
    resolve(&life, &run, Decision::Approve, json!({"amount": 7})).await.unwrap();
    assert_eq!(outputs(&ended(&life, id).await), json!({"amount": 7}));
}

#[tokio::test]
async fn an_approval_expires_without_a_working_node() {
    let world = World::new("'*': {text: done}");
    let life = world.boot().await;
    let id = life.start(start(&ask("600ms"))).await.unwrap().run;
    let run = until(&life, id, |run| run.status == RunStatus::Paused).await;
    let expires_at_ms = run.approvals.values().next().unwrap().expires_at_ms;
    life.crash().await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(run.end.as_ref().unwrap().error.as_ref().unwrap().0, "approval_rejected");
    assert!(run.ended_at_ms.unwrap() >= expires_at_ms);
    assert!(world.calls("pay").is_empty());
}

#[tokio::test]
async fn an_approval_expires_while_its_run_is_not_loaded() {
    let world = World::new("'*': {text: done}");
    let life = world.boot().await;
    let id = life.start(start(&ask("900ms"))).await.unwrap().run;
    until(&life, id, |run| run.status == RunStatus::Paused).await;
    life.crash().await;
    let life = world.boot().await;
    let run = life.load(id).await.unwrap();
    let expires_at_ms = run.approvals.values().next().unwrap().expires_at_ms;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.ended_at_ms.unwrap() >= expires_at_ms);
}

#[tokio::test]
async fn a_run_s_own_time_goes_on_over_a_crash() {
    let world = World::new("a: {hang: true}");
    let flow = "name: flow\ntimeout: 800ms\nsteps: [{id: a, command: go}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::TimedOut);
    let lived_ms = run.ended_at_ms.unwrap() - run.started_at_ms;
    assert!((800..5000).contains(&lived_ms), "{lived_ms}");
}

#[tokio::test]
async fn instances_that_are_done_stay_done() {
    let world = World::new("each: {delay_ms: 60, outputs: {n: 1}}");
    let flow = "
name: flow
steps: [{id: each, command: 'do ${item}', for_each: {items: [1, 2, 3, 4, 5, 6], max_parallel: 2}}]
outputs: {all: '${$each.outputs.items}'}
";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    let done = |run: &Run| run.all().filter(|(_, one)| is_done(one)).count();
    until(&life, id, |run| done(run) >= 2).await;
    life.crash().await;
    let before: Vec<_> = (0..6).map(|item| world.calls(&format!("each[{item}]")).len()).collect();
    let life = world.boot().await;
    let run = life.load(id).await.unwrap();
    let settled: Vec<_> =
        (0..6).map(|item| is_done(step(&run, &format!("each[{item}]")))).collect();
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(outputs(&run)["all"], json!(vec![json!({"n": 1}); 6]));
    for item in 0..6 {
        let calls = world.calls(&format!("each[{item}]"));
        if settled[item] {
            assert_eq!((before[item], calls.len()), (1, 1), "instance {item}");
        } else {
            assert_eq!(calls.last().unwrap().0 as usize, calls.len(), "instance {item}");
        }
    }
}

fn is_done(one: &StepState) -> bool {
    one.status() == StepStatus::Completed
}

const PARENT: &str = "
name: parent
steps:
  - {id: a, workflow_ref: other}
  - {id: b, command: 'got ${a.outputs.n}'}
";

#[tokio::test]
async fn a_child_goes_on_and_its_parent_with_it() {
    let world =
        World::new("c: {text: done}\nd: [{hang: true}, {outputs: {n: 5}}]\nb: {echo: true}");
    let child = "
name: other
steps:
  - {id: c, command: go}
  - {id: d, command: go, depends_on: [c], outputs: {n: integer}}
";
    let life = world.boot().await;
    let id = life.start(start_family(PARENT, "other", child)).await.unwrap().run;
    happens("the child's second step", || world.calls("d").len() == 1).await;
    life.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    assert_eq!(step(&run, "b").prepared.as_ref().unwrap().prompt, "got 5");
    assert_eq!((world.calls("c").len(), world.calls("b").len()), (1, 1));
    assert_eq!(children(&life, id).await.len(), 1);
}

#[tokio::test]
async fn a_child_that_waits_for_approval_wakes_its_parent_after_a_restart() {
    let world = World::new("b: {echo: true}");
    let child = "name: other\nsteps: [{id: sure, approval: required, outputs: {n: integer}}]";
    let life = world.boot().await;
    let id = life.start(start_family(PARENT, "other", child)).await.unwrap().run;
    let of = |run: &Run| step(run, "a").path();
    let run = until(&life, id, |run| of(run).is_some()).await;
    let Some(Path::Child(child)) = of(&run) else { panic!("{:?}", of(&run)) };
    let exists = async { while life.load(child).await.is_err() {} };
    tokio::time::timeout(PATIENCE, exists).await.expect("the child is started");
    until(&life, child, |run| run.status == RunStatus::Paused).await;
    happens("both are parked", || life.residents() == 0).await;
    life.crash().await;
    let life = world.boot().await;
    let asked = life.load(child).await.unwrap();
    resolve(&life, &asked, Decision::Approve, json!({"n": 3})).await.unwrap();
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    assert_eq!(step(&run, "b").prepared.as_ref().unwrap().prompt, "got 3");
}

#[tokio::test]
async fn a_cancel_reaches_the_children_of_a_run_whose_process_died() {
    let world = World::new("c: {hang: true}");
    let child = "name: other\nsteps: [{id: c, command: go}]";
    let life = world.boot().await;
    let id = life.start(start_family(PARENT, "other", child)).await.unwrap().run;
    happens("the child's step", || world.calls("c").len() == 1).await;
    let child = children(&life, id).await[0];
    life.crash().await;
    // Recorded by a process that dispatches nothing, and which then died.
    let clerk = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    cancel(&clerk, id).await.unwrap();
    assert_eq!(clerk.load(id).await.unwrap().status, RunStatus::Cancelling);
    clerk.crash().await;
    let life = world.boot().await;
    assert_eq!(ended(&life, child).await.status, RunStatus::Cancelled);
    assert_eq!(ended(&life, id).await.status, RunStatus::Cancelled);
    assert!(world.calls("b").is_empty());
}

#[tokio::test]
async fn a_run_that_an_operator_stopped_stays_stopped() {
    let world = World::new("a: {delay_ms: 30, text: done}\nb: {text: done}");
    let flow = "name: flow\nsteps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]";
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    life.command(id, Command::Pause { by: "ada".to_owned() }, "pause").await.unwrap();
    until(&life, id, |run| is_done(step(run, "a"))).await;
    life.crash().await;
    let life = world.boot().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(life.load(id).await.unwrap().status, RunStatus::Paused);
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 0));
    life.command(id, Command::Unpause { by: "ada".to_owned() }, "go on").await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1, 1));
}

async fn children(life: &RunningEngine, parent: RunId) -> Vec<RunId> {
    let filter = Filter { parent: Some(parent), ..Filter::default() };
    let rows = life.store().list(filter).await.expect("they can be listed");
    rows.into_iter().map(|row| row.run).collect()
}
