//! Crashes at the worst moments: a reservation is neither lost nor doubled.

use super::{HELD, ONE, OVER, SPENT, budget};
use crate::gate::{Gate, StoreOperation, dispatches, settles};
use crate::operator::{CENT, Meter, count, metered, put};
use crate::world::{config, ended, happens, memory, start};
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::store::Store;
use sluice_core::status::RunStatus;
use sluice_engine::config::Config;
use sluice_govern::registry::Kind;
use std::sync::Arc;
use std::time::Duration;

fn short() -> Config {
    Config { lease_ms: 300, ..config() }
}

async fn prepared() -> (Arc<dyn Store>, Arc<Gate>, Arc<Meter>) {
    let store = memory();
    let gate = Arc::new(Gate::new(Arc::clone(&store)));
    let agent = json!({"max_concurrent_steps": 1});
    put(&*store, &[(Kind::Budget, "cap", budget(1)), (Kind::Agent, "mock", agent)]).await;
    let meter = Meter::new(CENT, CENT, |_| Duration::ZERO);
    (store, gate, meter)
}

async fn counters(store: &dyn Store) -> [i64; 4] {
    let mut all = [0; 4];
    for (at, name) in [HELD, SPENT, OVER, "busy:mock"].into_iter().enumerate() {
        all[at] = count(store, name).await;
    }
    all
}

const TAKEN: [i64; 4] = [1_000_000, 0, 0, 1];
const PAID: [i64; 4] = [1_000_000, 1_000_000, 0, 0];

/// Another process recovers the run, which then completes.
async fn taken_up(store: &Arc<dyn Store>, meter: &Arc<Meter>, run: RunId) {
    let engine = metered(Arc::clone(store), meter, short()).await;
    let run = ended(&engine, run).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
}

#[tokio::test]
async fn a_crash_between_reserve_and_dispatch_neither_loses_nor_doubles() {
    let (store, gate, meter) = prepared().await;
    let engine = metered(Arc::clone(&gate) as _, &meter, short()).await;
    gate.mute(dispatches);
    let id = RunId(7);
    let mut flow = start(ONE);
    flow.id = Some(id);
    let started = engine.start(flow);
    // The caller never learns that it was started.
    assert!(tokio::time::timeout(Duration::from_millis(200), started).await.is_err());
    assert!(gate.is_sprung());
    drop(engine);
    assert_eq!((meter.calls(), counters(&*store).await), (0, TAKEN));
    taken_up(&store, &meter, id).await;
    assert_eq!((meter.calls(), counters(&*store).await), (1, PAID));
}

#[tokio::test]
async fn a_crash_before_an_answer_is_settled_keeps_what_is_reserved() {
    let (store, gate, meter) = prepared().await;
    let engine = metered(Arc::clone(&gate) as _, &meter, short()).await;
    let meter_slow = Meter::new(CENT, CENT, |_| Duration::from_millis(100));
    drop(engine);
    let engine = metered(Arc::clone(&gate) as _, &meter_slow, short()).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    happens("the call", || meter_slow.calls() == 1).await;
    gate.close(StoreOperation::Write, "the disk is full");
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(engine);
    assert_eq!(counters(&*store).await, TAKEN);
    taken_up(&store, &meter, id).await;
    assert_eq!((meter.calls(), counters(&*store).await), (1, PAID));
}

#[tokio::test]
async fn a_crash_after_an_answer_is_settled_settles_it_once() {
    let (store, gate, meter) = prepared().await;
    let engine = metered(Arc::clone(&gate) as _, &meter, short()).await;
    gate.mute(settles);
    let id = engine.start(start(ONE)).await.unwrap().run;
    happens("the settlement", || gate.is_sprung()).await;
    drop(engine);
    taken_up(&store, &meter, id).await;
    assert_eq!((meter.calls(), counters(&*store).await), (1, PAID));
}

#[tokio::test]
async fn reservations_of_a_dead_node_are_not_free() {
    let (store, gate, meter) = prepared().await;
    put(&*store, &[(Kind::Agent, "mock", json!({}))]).await;
    let engine = metered(Arc::clone(&gate) as _, &meter, Config { lease_ms: 60_000, ..config() });
    let engine = engine.await;
    gate.mute(dispatches);
    let started = engine.start(start(ONE));
    assert!(tokio::time::timeout(Duration::from_millis(200), started).await.is_err());
    drop(engine);
    // The lease of the dead node is still valid; its reservation is not free.
    let engine = metered(Arc::clone(&store), &meter, config()).await;
    let id = engine.start(start(ONE)).await.unwrap().run;
    let run = ended(&engine, id).await;
    assert_eq!(super::error(&run), "budget_exceeded");
    assert_eq!(meter.calls(), 0);
}
