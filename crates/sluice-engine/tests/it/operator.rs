//! Actions of operators and approvers, and an agent with costs.

use crate::world::{RunningEngine, World, config};
use serde_json::{Map, Value};
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::journal::envelope::Seen;
use sluice_core::money::Money;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, Capabilities, Execution, Health, Quote, Request, Usage,
};
use sluice_core::port::ledger::{Change, Changed, Counter};
use sluice_core::port::store::{NodeId, Store};
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::state::Run;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::engine::Ground;
use sluice_engine::error::{CommandError, Delivered};
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::policy::DEFAULT;
use sluice_govern::registry::{Kind, Row};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A cent in micro-cents.
pub(crate) const CENT: u64 = 1_000_000;

/// A change that puts rows.
pub(crate) fn puts(rows: &[(Kind, &str, Value)]) -> Change {
    let row = |(kind, name, body): &(Kind, &str, Value)| Row {
        kind: *kind,
        name: (*name).to_owned(),
        body: body.clone(),
    };
    let put = rows.iter().map(row).collect();
    Change { expect: None, put, remove: Vec::new(), node: NodeId(1), entries: Vec::new() }
}

pub(crate) async fn put(store: &dyn Store, rows: &[(Kind, &str, Value)]) {
    let changed = store.change(puts(rows)).await.expect("the store answers");
    assert!(matches!(changed, Changed::Done { .. }), "{changed:?}");
}

pub(crate) async fn remove(store: &dyn Store, kind: Kind, name: &str) {
    let change = Change { remove: vec![(kind, name.to_owned())], ..puts(&[]) };
    store.change(change).await.expect("the store answers");
}

/// A policy file in addition to the built-in ones.
pub(crate) async fn policy(store: &dyn Store, name: &str, text: &str) {
    let row = |text: &str| serde_json::json!({"text": text});
    put(store, &[(Kind::Policy, DEFAULT.0, row(DEFAULT.1)), (Kind::Policy, name, row(text))]).await;
}

/// Long enough for every engine to notice a change.
pub(crate) async fn heard() {
    tokio::time::sleep(Duration::from_millis(250)).await;
}

/// Value of a counter.
pub(crate) async fn count(store: &dyn Store, name: &str) -> i64 {
    let counts = store.counts(vec![Counter::plain(name)]).await;
    counts.expect("the store answers")[0]
}

/// Waits until a counter has a value.
pub(crate) async fn until_count(store: &dyn Store, name: &str, wanted: i64) {
    for _ in 0..2000 {
        if count(store, name).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name} is {}, not {wanted}", count(store, name).await);
}

/// The open approval request of a run.
pub(crate) fn open_approval(run: &Run) -> ApprovalId {
    let mut open = run.approvals.iter().filter(|(_, one)| one.resolution.is_none());
    *open.next().expect("something is asked").0
}

/// Votes on an approval request.
pub(crate) async fn answer(
    engine: &Engine,
    run: RunId,
    approval: ApprovalId,
    decision: Decision,
    by: &str,
    roles: &[&str],
) -> Result<Delivered, CommandError> {
    let resolve = Resolve {
        approval,
        decision,
        by: by.to_owned(),
        comment: Some("because".to_owned()),
        values: Map::new(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        constraints: None,
    };
    let key = format!("answer:{approval}:{by}");
    engine.command(run, Command::Resolve(Box::new(resolve)), &key).await
}

/// Events of a run by name, with their payloads.
pub(crate) async fn events(engine: &Engine, run: &Run, name: &str) -> Vec<Value> {
    let shown = engine.events(run, 0).await.expect("the journal can be read");
    let named = shown.into_iter().filter_map(Seen::event).filter(|one| one.kind == name);
    named.map(|one| serde_json::from_str(&one.json).expect("an envelope is JSON")).collect()
}

/// An agent that takes time and money, and counts its concurrent calls.
pub(crate) struct Meter {
    pub(crate) worst: Money,
    pub(crate) cost: Money,
    pub(crate) delay: fn(&Request) -> Duration,
    pub(crate) calls: Mutex<Vec<(Request, Instant)>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Meter {
    pub(crate) fn new(worst: u64, cost: u64, delay: fn(&Request) -> Duration) -> Arc<Meter> {
        Arc::new(Meter {
            worst: Money::from_micro_cents(worst),
            cost: Money::from_micro_cents(cost),
            delay,
            calls: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        })
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.lock().expect("the lock is not poisoned").len()
    }

    /// The largest number of concurrent calls.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Adapter for Meter {
    fn provider(&self) -> &'static str {
        "meter"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn quote(&self, _: &str) -> Quote {
        Quote::AtMost(self.worst)
    }

    fn execute<'a>(&'a self, request: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            let call = (request.clone(), Instant::now());
            self.calls.lock().expect("the lock is not poisoned").push(call);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep((self.delay)(request)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            let usage = Usage { cost: self.cost, ..Usage::default() };
            let text = Some("done".to_owned());
            Execution::Done(Box::new(Answer { text, usage, ..Answer::default() }))
        })
    }
}

/// An engine on a store whose agent `mock` is a meter.
pub(crate) async fn metered(store: Arc<dyn Store>, meter: &Arc<Meter>, config: Config) -> Engine {
    let adapter: Arc<dyn Adapter> = Arc::clone(meter) as _;
    let ground = Ground {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: Agents::new().with("mock", adapter),
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: None,
        observer: None,
    };
    Engine::open(ground, config).await.expect("the engine starts")
}

/// A world and an engine in it, with rows.
pub(crate) async fn governed(mock: &str, rows: &[(Kind, &str, Value)]) -> (World, RunningEngine) {
    let world = World::new(mock);
    let life = world.boot_with(config()).await;
    put(&*life.store(), rows).await;
    (world, life)
}
