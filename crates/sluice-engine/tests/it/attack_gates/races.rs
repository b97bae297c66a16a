//! Many concurrent dispatches, from several processes, against one limit.

use super::{HELD, SPENT, budget};
use crate::gate::Gate;
use crate::operator::{CENT, Meter, count, metered, put, until_count};
use crate::world::{config, ended, sqlite, start};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::store::Store;
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_govern::registry::Kind;
use std::sync::Arc;
use std::time::Duration;

/// Two processes on one database, with a store each.
async fn two(dir: &std::path::Path, meter: &Arc<Meter>) -> Vec<(Arc<dyn Store>, Engine)> {
    let mut all = Vec::new();
    for _ in 0..2 {
        let store = sqlite(dir);
        all.push((Arc::clone(&store), metered(store, meter, config()).await));
    }
    all
}

async fn start_all(all: &[(Arc<dyn Store>, Engine)], flow: &str, runs: usize) -> Vec<RunId> {
    let flow = start(flow);
    let starts = (0..runs).map(|number| all[number % all.len()].1.start(flow.clone()));
    let started = futures_util::future::join_all(starts).await;
    started.into_iter().map(|one| one.expect("it starts").run).collect()
}

const FLOW: &str = "
name: flow
steps:
  - {id: a, command: go, on_failure: skip}
  - {id: b, command: go, on_failure: skip, for_each: {items: [1, 2, 3]}}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_together_spend_no_more_than_the_cap() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let meter = Meter::new(CENT, CENT, |_| Duration::from_millis(2));
    let all = two(dir.path(), &meter).await;
    let store = Arc::clone(&all[0].0);
    put(&*store, &[(Kind::Budget, "cap", budget(7))]).await;
    let runs = start_all(&all, FLOW, 16).await;
    for (number, run) in runs.into_iter().enumerate() {
        ended(&all[number % 2].1, run).await;
    }
    assert_eq!(meter.calls(), 7);
    let cents = i64::try_from(7 * CENT).expect("small");
    assert_eq!((count(&*store, HELD).await, count(&*store, SPENT).await), (cents, cents));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_together_respect_an_agents_concurrency() {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let meter = Meter::new(0, 0, |_| Duration::from_millis(3));
    let all = two(dir.path(), &meter).await;
    let store = Arc::clone(&all[0].0);
    put(&*store, &[(Kind::Agent, "mock", json!({"max_concurrent_steps": 3}))]).await;
    let runs = start_all(&all, FLOW, 12).await;
    for (number, run) in runs.into_iter().enumerate() {
        assert_eq!(ended(&all[number % 2].1, run).await.status, RunStatus::Completed);
    }
    assert_eq!(meter.calls(), 48, "and all of it is done");
    assert!((1..=3).contains(&meter.most()), "{} at once", meter.most());
    until_count(&*store, "busy:mock", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_second_sees_more_dispatches_than_the_rate() {
    const LIMIT: usize = 6;
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let meter = Meter::new(0, 0, |_| Duration::ZERO);
    let all = two(dir.path(), &meter).await;
    let store = Arc::clone(&all[0].0);
    let rate = json!({"rate": {"limit": LIMIT, "window_s": 1}});
    put(&*store, &[(Kind::Agent, "mock", rate)]).await;
    let runs = start_all(&all, super::ONE, 14).await;
    for (number, run) in runs.into_iter().enumerate() {
        assert_eq!(ended(&all[number % 2].1, run).await.status, RunStatus::Completed);
    }
    let calls = meter.calls.lock().expect("the lock is not poisoned");
    let mut times: Vec<_> = calls.iter().map(|(_, at)| *at).collect();
    times.sort_unstable();
    for pair in times.windows(LIMIT + 1) {
        // A call begins a moment after it was counted.
        let span = pair[LIMIT] - pair[0];
        assert!(span > Duration::from_millis(900), "{} calls in {span:?}", LIMIT + 1);
    }
    assert_eq!(times.len(), 14);
}

#[tokio::test]
async fn spent_and_reserved_keep_to_the_cap_after_every_append() {
    let gate = Arc::new(Gate::new(crate::world::memory()));
    gate.watch(HELD);
    put(&*gate, &[(Kind::Budget, "cap", budget(5))]).await;
    let meter = Meter::new(CENT, CENT / 2, |_| Duration::from_millis(1));
    let engine = metered(Arc::clone(&gate) as _, &meter, config()).await;
    let all = vec![(Arc::clone(&gate) as Arc<dyn Store>, engine)];
    for run in start_all(&all, FLOW, 20).await {
        ended(&all[0].1, run).await;
    }
    let cents = i64::try_from(5 * CENT).expect("small");
    assert!(gate.most() <= cents, "{} held", gate.most());
    // Unused reservations were released and used by other steps.
    assert!((5..=9).contains(&meter.calls()), "{} calls", meter.calls());
    assert_eq!(count(&*gate, HELD).await, count(&*gate, SPENT).await);
}
