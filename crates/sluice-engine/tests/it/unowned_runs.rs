//! Runs without an owner, released on purpose or forgotten.

use crate::world::{World, cancel, config, ended, happens, start, step, until};
use sluice_core::id::RunId;
use sluice_core::port::store::{Filter, RunRow, Store as _};
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::config::{Claims, Config};
use sluice_engine::error::{CommandError, StartError};
use std::time::Duration;

const FLOW: &str = "
name: flow
steps:
  - {id: a, command: go}
  - {id: s, agent: shell, command: '[ $SLUICE_DISPATCH_NO = 2 ] || sleep 30'}
";

async fn row(life: &crate::world::RunningEngine, run: RunId) -> RunRow {
    let filter = Filter { run: Some(run), ..Filter::default() };
    life.store().list(filter).await.expect("it can be listed").remove(0)
}

#[tokio::test]
async fn an_engine_that_stops_releases_its_runs_to_the_next() {
    let world = World::new("a: [{hang: true}, {text: done}]");
    let life = world.boot().await;
    let reader = world.boot_with(Config { claims: Claims::None, ..config() }).await;
    let id = life.start(start(FLOW)).await.unwrap().run;
    let begun = |run: &sluice_core::run::state::Run| {
        step(run, "s").dispatch.as_ref().is_some_and(|one| one.process.is_some())
    };
    until(&life, id, begun).await;
    let stopped = tokio::time::timeout(Duration::from_secs(5), life.shutdown()).await;
    stopped.expect("it stops in time");
    let refused = life.start(start(FLOW)).await;
    assert!(matches!(refused, Err(StartError::Stopping)), "{refused:?}");
    let refused = cancel(&life, id).await;
    assert!(matches!(refused, Err(CommandError::Stopping)), "{refused:?}");
    life.crash().await;
    let left = row(&reader, id).await;
    assert_eq!((left.status, left.owner), (RunStatus::Running, None));
    assert!(left.due_at_ms.is_some());
    assert_eq!(step(&reader.load(id).await.unwrap(), "a").status(), StepStatus::Running);

    let life = world.boot().await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    for name in ["a", "s"] {
        let calls = world.calls(name);
        assert_eq!(calls.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(calls[0].2, calls[1].2);
    }
}

#[tokio::test]
async fn an_engine_that_stops_hands_over_to_one_that_runs() {
    let world = World::new("a: [{hang: true}, {text: done}]");
    let (one, other) = (world.boot().await, world.boot().await);
    let id = one.start(start("name: flow\nsteps: [{id: a, command: go}]")).await.unwrap().run;
    happens("the step", || world.calls("a").len() == 1).await;
    one.leave().await;
    assert_eq!(ended(&other, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 2);
}

#[tokio::test]
async fn a_run_without_an_owner_or_due_time_is_found() {
    let world = World::new("a: [{error: broke}, {text: done}]");
    let flow = "
name: flow
steps: [{id: a, command: go, retry: {attempts: 2, backoff_ms: 100}}]
";
    let parks = || Config { park_after_ms: 0, ..config() };
    let life = world.boot_with(parks()).await;
    let id = life.start(start(flow)).await.unwrap().run;
    until(&life, id, |run| step(run, "a").status() == StepStatus::Retrying).await;
    life.crash().await;
    let file = rusqlite::Connection::open(world.file()).unwrap();
    let forget = "UPDATE run SET owner = NULL, due_at = NULL WHERE ended_at IS NULL";
    assert_eq!(file.execute(forget, []).unwrap(), 1);
    file.close().unwrap();

    let life = world.boot_with(parks()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.calls("a").len(), 1, "nothing wakes it");
    life.crash().await;
    let life = world.boot_with(Config { watchdog_ms: 100, ..parks() }).await;
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    assert_eq!(world.calls("a").len(), 2);
}

/// `sluice run` wakes only its own runs, including their timers.
#[tokio::test]
async fn a_process_that_claims_nothing_else_wakes_its_own_parked_runs() {
    let flow = "
name: flow
steps:
  - {id: a, command: go, retry: {attempts: 2, backoff_ms: 400, max_backoff_ms: 400}}
  - {id: ask, approval: {expires_in: 1s}, depends_on: [a], on_failure: skip}
  - {id: b, command: go, depends_on: [a, ask]}
";
    let world = World::new("a: [{error: no}, {text: done}]\nb: {text: done}");
    let own = Config { claims: Claims::Own, park_after_ms: 0, ..config() };
    let life = world.boot_with(own).await;
    let id = life.start(start(flow)).await.unwrap().run;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(step(&run, "ask").status(), StepStatus::Skipped);
    assert_eq!(world.calls("a").len(), 2);
}
