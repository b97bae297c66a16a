//! The time that a sub-workflow waits for approval is not charged to its step's timeout,
//! even across a crash.

use crate::world::{RunningEngine, World, config, ended, start_family, step, until};
use sluice_core::id::RunId;
use sluice_core::journal::event::Path;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use std::time::Duration;

const PARENT: &str = "name: parent\nsteps: [{id: sub, workflow_ref: child, timeout: 1s}]";
const ASKS: &str = "name: child\nsteps: [{id: ask, approval: required}, \
                    {id: work, agent: AGENT, depends_on: [ask], command: go}]";

fn child(run: &Run) -> RunId {
    let Some(Path::Child(child)) = step(run, "sub").path() else { panic!("it has no child") };
    child
}

/// Waits until a child run exists and fulfils a condition.
async fn child_until(life: &RunningEngine, child: RunId, wanted: fn(&Run) -> bool) -> Run {
    for _ in 0..2000 {
        if life.load(child).await.is_ok() {
            return until(life, child, wanted).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{child} is not there")
}

fn asks(run: &Run) -> bool {
    step(run, "ask").status() == StepStatus::AwaitingApproval
}

/// A parent and a child that waits for approval, for several timeouts of the step.
async fn waiting(life: &RunningEngine, agent: &str) -> (RunId, RunId) {
    let start = start_family(PARENT, "child", &ASKS.replace("AGENT", agent));
    let id = life.start(start).await.expect("it starts").run;
    let parent = until(life, id, |run| step(run, "sub").path().is_some()).await;
    let child = child(&parent);
    child_until(life, child, asks).await;
    until(life, id, |run| run.status == RunStatus::Paused).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    (id, child)
}

async fn approve(life: &RunningEngine, child: RunId) {
    let run = life.load(child).await.expect("the run can be read");
    let approval = crate::operator::open_approval(&run);
    let decision = sluice_core::run::command::Decision::Approve;
    crate::operator::answer(life, child, approval, decision, "ada", &[])
        .await
        .expect("the answer is taken");
}

#[tokio::test]
async fn a_child_may_wait_for_approval_longer_than_its_steps_timeout() {
    let world = World::new("'*': {text: done}");
    let life = world.boot_with(config()).await;
    let (id, child) = waiting(&life, "mock").await;
    assert_eq!(step(&life.load(id).await.unwrap(), "sub").status(), StepStatus::Running);
    approve(&life, child).await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    life.leave().await;
}

#[tokio::test]
async fn the_wait_survives_a_crash_and_the_remaining_time_applies() {
    let world = World::new("'*': {text: done}");
    let life = world.boot_with(config()).await;
    let (id, child) = waiting(&life, "deaf").await;
    life.crash().await;
    let life = world.boot_with(config()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(step(&life.load(id).await.unwrap(), "sub").status(), StepStatus::Running);
    approve(&life, child).await;
    // Now the child works, and never ends.
    let run = ended(&life, id).await;
    assert_eq!(step(&run, "sub").status(), StepStatus::TimedOut);
    assert_eq!(ended(&life, child).await.status, RunStatus::Cancelled);
    life.leave().await;
}

#[tokio::test]
async fn a_grandchild_may_wait_for_approval_too() {
    let world = World::new("'*': {text: done}");
    let life = world.boot_with(config()).await;
    let asks_mock = ASKS.replace("AGENT", "mock");
    let parent = start_family(PARENT, "child", &asks_mock);
    let top = "name: top\nsteps: [{id: sub, workflow_ref: parent, timeout: 1s}]";
    let mut start = start_family(top, "parent", &asks_mock);
    start.children = parent.children;
    start.children.insert("parent".to_owned(), parent.stored.hash);
    start.bring = parent.bring;
    start.bring.push(parent.stored);
    let id = life.start(start).await.unwrap().run;
    let top = until(&life, id, |run| step(run, "sub").path().is_some()).await;
    let begun = |run: &Run| step(run, "sub").path().is_some();
    let parent = child_until(&life, child(&top), begun).await;
    let grandchild = child(&parent);
    child_until(&life, grandchild, asks).await;
    until(&life, id, |run| run.status == RunStatus::Paused).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    approve(&life, grandchild).await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    life.leave().await;
}
