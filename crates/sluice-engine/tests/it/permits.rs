//! More runs than permits.

use crate::world::{PATIENCE, RunningEngine, World, config, happens, start, start_family};
use sluice_core::port::store::{Filter, Store as _};
use sluice_core::status::RunStatus;
use sluice_engine::config::Config;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FLOW: &str = "
name: flow
steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]
";
const MOCK: &str = "a: {delay_ms: 1, text: done}\nb: {text: done}";
const ROOM: usize = 8;

fn small() -> Config {
    Config { residents_max: ROOM, ..config() }
}

/// Starts runs concurrently; returns the largest number loaded at once.
async fn start_many(life: &RunningEngine, count: usize) -> usize {
    let flow = start(FLOW);
    let most = AtomicUsize::new(0);
    let watched = async {
        loop {
            most.fetch_max(life.residents(), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    };
    let starts = (0..count).map(|_| life.start(flow.clone()));
    tokio::select! {
        started = futures_util::future::join_all(starts) => {
            assert!(started.into_iter().all(|one| one.is_ok()));
        }
        () = watched => {}
    }
    most.into_inner()
}

async fn all_complete(life: &RunningEngine, count: usize) {
    happens("everything leaves memory", || life.residents() == 0).await;
    let statuses = vec![RunStatus::Completed];
    let filter = Filter { statuses, limit: 1000, ..Filter::default() };
    let counted = async {
        while life.store().list(filter.clone()).await.unwrap_or_default().len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("every run completes");
}

#[tokio::test]
async fn starts_wait_for_permits_and_all_runs_end() {
    let world = World::new(MOCK);
    let life = world.boot_with(small()).await;
    let most = start_many(&life, 200).await;
    assert!((1..=ROOM).contains(&most), "{most} in memory");
    all_complete(&life, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_runs_than_permits_are_recovered_a_few_at_a_time() {
    let world = World::new("a: {delay_ms: 600, text: done}\nb: {text: done}");
    let life = world.boot().await;
    start_many(&life, 100).await;
    life.crash().await;
    let life = world.boot_with(small()).await;
    let most = AtomicUsize::new(0);
    let done = happens("every run", || {
        most.fetch_max(life.residents(), Ordering::SeqCst);
        world.calls("b").len() == 100
    });
    done.await;
    assert!(most.into_inner() <= ROOM);
    all_complete(&life, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_runs_at_once_all_end() {
    let world = World::new(MOCK);
    let life = world.boot().await;
    start_many(&life, 1000).await;
    all_complete(&life, 1000).await;
    assert_eq!((world.calls("a").len(), world.calls("b").len()), (1000, 1000));
}

/// A parent waits for its child to exist, and the child for a permit.
#[tokio::test]
async fn nested_runs_end_with_few_permits() {
    let parent = "
name: parent
steps: [{id: p, workflow_ref: other, timeout: 15s}, {id: b, command: go}]
";
    let child = "name: other\nsteps: [{id: c, command: go}]";
    for room in [1, 3] {
        let world = World::new("'*': {delay_ms: 1, text: done}");
        let life = world.boot_with(Config { residents_max: room, ..config() }).await;
        let family = start_family(parent, "other", child);
        let starts = (0..10).map(|_| life.start(family.clone()));
        let started = futures_util::future::join_all(starts);
        let started = tokio::time::timeout(PATIENCE, started).await.expect("all find room");
        assert!(started.into_iter().all(|one| one.is_ok()));
        all_complete(&life, 20).await;
    }
}

#[tokio::test]
async fn a_step_that_talks_a_lot_does_not_fill_the_journal() {
    let flow = "name: flow\nsteps: [{id: s, agent: shell, command: 'seq 1 20000 >&2'}]";
    let world = World::new("{}");
    let life = world.boot().await;
    let id = life.start(start(flow)).await.unwrap().run;
    let run = crate::world::ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert!(run.version < 500, "{} events", run.version);
}
