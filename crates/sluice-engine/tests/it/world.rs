//! An engine on a store, with the mock and the shell as agents.
//!
//! A [`World`] is a directory in which engines are started and stopped. It records the
//! calls to its agents, so that a test can detect repeated work.

use serde_json::{Map, Value};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::shell::{Config as ShellConfig, ShellAdapter, Workspace};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::id::RunId;
use sluice_core::port::adapter::{
    Adapter, Call, Capabilities, Execution, Health, Process, Request,
};
use sluice_core::port::moderator::Moderator;
use sluice_core::port::store::Store;
use sluice_core::port::{Clock, Later};
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::state::{Run, StepState};
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::{Engine, Ground};
use sluice_engine::error::{CommandError, Delivered};
use sluice_engine::observe::Observer;
use sluice_engine::start::Start;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_store::memory::MemoryStore;
use sluice_store::sqlite::SqliteStore;
use std::future::pending;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tempfile::TempDir;

/// A directory in which engines are started and stopped.
pub(crate) struct World {
    dir: PathBuf,
    /// Removes the directory if the test owns it.
    _temporary: Option<TempDir>,
    mock: Script,
    calls: Calls,
    moderator: Option<Arc<dyn Moderator>>,
    observer: Option<Arc<dyn Observer>>,
}

/// An engine, from its start to its end.
pub(crate) struct RunningEngine {
    engine: Engine,
    store: Weak<SqliteStore>,
}

impl World {
    /// An empty directory, and a script for the mock.
    pub(crate) fn new(mock: &str) -> World {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        let world = World::at(dir.path(), mock);
        World { _temporary: Some(dir), ..world }
    }

    /// A directory that is shared with other worlds.
    pub(crate) fn at(dir: &Path, mock: &str) -> World {
        World {
            dir: dir.to_owned(),
            _temporary: None,
            mock: Script::parse(mock).expect("the script is one"),
            calls: Calls::default(),
            moderator: None,
            observer: None,
        }
    }

    /// Sets the moderator.
    pub(crate) fn judged_by(mut self, moderator: Arc<dyn Moderator>) -> World {
        self.moderator = Some(moderator);
        self
    }

    /// Sets the observer.
    pub(crate) fn observed_by(mut self, observer: Arc<dyn Observer>) -> World {
        self.observer = Some(observer);
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// The database, for inspection or damage.
    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("sluice.db")
    }

    pub(crate) fn agents(&self) -> Agents {
        let shell = ShellConfig::new(Workspace::Shared(self.path().to_owned()));
        let witness = |adapter: Arc<dyn Adapter>| {
            Arc::new(RecordingAdapter { adapter, calls: Arc::clone(&self.calls) })
                as Arc<dyn Adapter>
        };
        Agents::new()
            .with("mock", witness(Arc::new(MockAdapter::new(self.mock.clone()))))
            .with("shell", witness(Arc::new(ShellAdapter::new(shell))))
            .with("deaf", witness(Arc::new(UnresponsiveAdapter)))
            .with("away", witness(Arc::new(RemoteAdapter)))
    }

    /// Starts an engine with the usual settings.
    pub(crate) async fn boot(&self) -> RunningEngine {
        self.boot_with(config()).await
    }

    pub(crate) async fn boot_with(&self, config: Config) -> RunningEngine {
        self.boot_at(config, Arc::new(SystemClock)).await
    }

    pub(crate) async fn boot_at(&self, config: Config, clock: Arc<dyn Clock>) -> RunningEngine {
        let store = SqliteStore::open(self.path(), Arc::clone(&clock)).expect("the store opens");
        let store = Arc::new(store);
        let weak = Arc::downgrade(&store);
        let entropy = Arc::new(|| Box::new(SystemEntropy) as Box<_>);
        let (policies, sealer) = (PolicySource::default(), None);
        let (agents, moderator) = (self.agents(), self.moderator.clone());
        let observer = self.observer.clone();
        let ground = Ground {
            store,
            clock,
            entropy,
            agents,
            policies,
            catalog: None,
            sealer,
            moderator,
            observer,
        };
        let engine = Engine::open(ground, config).await.expect("the engine starts");
        RunningEngine { engine, store: weak }
    }

    /// Calls to the agents about a step.
    pub(crate) fn requests(&self, step: &str) -> Vec<Request> {
        let calls = self.calls.lock().expect("the lock is not poisoned");
        calls.iter().filter(|one| one.step == step).cloned().collect()
    }

    /// Calls to the agents about a step: dispatch, attempt, key.
    pub(crate) fn calls(&self, step: &str) -> Vec<(u32, u32, String)> {
        let calls = self.calls.lock().expect("the lock is not poisoned");
        let of = calls.iter().filter(|one| one.step == step);
        of.map(|one| (one.dispatch_no, one.attempt, one.idempotency_key.clone())).collect()
    }
}

impl Deref for RunningEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl RunningEngine {
    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        self.store.upgrade().expect("the engine holds it")
    }

    /// Crashes. Completes when all its tasks have ended.
    pub(crate) async fn crash(self) {
        drop(self.engine);
        let gone = async {
            while self.store.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("a dead engine lets go of its store");
    }

    /// Shuts down gracefully.
    pub(crate) async fn leave(self) {
        self.engine.shutdown().await;
        self.crash().await;
    }
}

type Calls = Arc<Mutex<Vec<Request>>>;

/// Records the calls to an agent.
struct RecordingAdapter {
    adapter: Arc<dyn Adapter>,
    calls: Calls,
}

impl Adapter for RecordingAdapter {
    fn provider(&self) -> &'static str {
        self.adapter.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.adapter.capabilities()
    }

    fn health(&self) -> Later<'_, Health> {
        self.adapter.health()
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        let mut calls = self.calls.lock().expect("the lock is not poisoned");
        calls.push(request.clone());
        self.adapter.execute(request, call)
    }

    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        self.adapter.stop_survivor(process)
    }
}

/// Never answers, and ignores cancellation.
struct UnresponsiveAdapter;

impl Adapter for UnresponsiveAdapter {
    fn provider(&self) -> &'static str {
        "deaf"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, _: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(pending())
    }
}

/// Accepts work as a remote worker, and would call back.
struct RemoteAdapter;

impl Adapter for RemoteAdapter {
    fn provider(&self) -> &'static str {
        "away"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, _: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(std::future::ready(Execution::Accepted))
    }
}

/// Stores that last as long as the test.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock)))
}

pub(crate) fn sqlite(dir: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).expect("the store opens"))
}

/// Dependencies of an engine on any store.
pub(crate) fn ground(store: Arc<dyn Store>, world: &World) -> Ground {
    Ground {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: world.agents(),
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: None,
        observer: None,
    }
}

pub(crate) fn config() -> Config {
    Config { sweep_ms: 50, ..Config::default() }
}

pub(crate) fn stored(document: &str) -> Stored {
    stored_with(document, &Registry::default())
}

fn stored_with(document: &str, registry: &Registry) -> Stored {
    let format = if document.contains("nodes") { Format::Lens } else { Format::Lobsterx };
    let checked = doc::check(document.as_bytes(), Some(format), registry);
    let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    Stored::new(plan, document)
}

pub(crate) fn start(document: &str) -> Start {
    let mut start = Start::new(stored(document), Map::new());
    start.default_agent = Some("mock".to_owned());
    start
}

/// A start of a workflow that refers to another.
pub(crate) fn start_family(parent: &str, name: &str, child: &str) -> Start {
    let child = stored(child);
    let registry = Registry::default().with_workflow(name, None);
    let mut start = Start::new(stored_with(parent, &registry), Map::new());
    start.default_agent = Some("mock".to_owned());
    start.children.insert(name.to_owned(), child.hash);
    start.bring.push(child);
    start
}

/// Timeout of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the run fulfils a condition.
pub(crate) async fn until(engine: &Engine, run: RunId, wanted: impl Fn(&Run) -> bool) -> Run {
    let mut tips = engine.follow(run);
    let looked = async {
        loop {
            let now = engine.load(run).await.expect("the run can be read");
            if wanted(&now) {
                return now;
            }
            let _ = tokio::time::timeout(Duration::from_millis(50), tips.changed()).await;
        }
    };
    let Ok(run) = tokio::time::timeout(PATIENCE, looked).await else {
        let run = engine.load(run).await.expect("the run can be read");
        let steps: Vec<_> = run.all().map(|(at, one)| (run.name(at), one.status())).collect();
        panic!("it does not happen in time: {} {steps:?} {:?}", run.status, run.end)
    };
    run
}

pub(crate) async fn ended(engine: &Engine, run: RunId) -> Run {
    until(engine, run, |run| run.status.is_terminal()).await
}

/// Waits for a condition that no run publishes.
pub(crate) async fn happens(what: &str, happened: impl Fn() -> bool) {
    let looked = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let looked = tokio::time::timeout(PATIENCE, looked).await;
    looked.unwrap_or_else(|_| panic!("{what} does not happen in time"));
}

pub(crate) fn outputs(run: &Run) -> Value {
    let end = run.end.as_ref().expect("it has ended");
    end.outputs.as_ref().map_or(Value::Null, |outputs| (**outputs).clone())
}

/// Status of a step.
pub(crate) fn step<'r>(run: &'r Run, name: &str) -> &'r StepState {
    run.state(run.find(name).expect("there is such a step"))
}

pub(crate) async fn cancel(engine: &Engine, run: RunId) -> Result<Delivered, CommandError> {
    let command = Command::Cancel { by: "ada".to_owned(), reason: "not needed".to_owned() };
    engine.command(run, command, "cancel").await
}

/// Resolves the last approval request of a run.
pub(crate) async fn resolve(
    engine: &Engine,
    run: &Run,
    decision: Decision,
    values: Value,
) -> Result<Delivered, CommandError> {
    let approval = *run.approvals.keys().next_back().expect("something was asked");
    let values = values.as_object().expect("values by name").clone();
    let by = "ada".to_owned();
    let (comment, roles, constraints) = (None, Vec::new(), None);
    let resolve = Resolve { approval, decision, by, comment, values, roles, constraints };
    engine.command(run.id, Command::Resolve(Box::new(resolve)), "answer").await
}
