//! An engine on a store, with the mock and the shell for agents.

use serde_json::{Map, Value};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::shell::{Config as ShellConfig, ShellAdapter, Workspace};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::port::store::Store;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::{Engine, Ground};
use sluice_engine::start::Start;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_store::memory::MemoryStore;
use sluice_store::sqlite::SqliteStore;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Stores that forget nothing while a test lasts.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock)))
}

pub(crate) fn sqlite(dir: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).expect("the store opens"))
}

pub(crate) fn ground(store: Arc<dyn Store>, mock: &str, workspace: &Path) -> Ground {
    let script = Script::parse(mock).expect("the script is one");
    let shell = ShellConfig::new(Workspace::Shared(workspace.to_owned()));
    Ground {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents: Agents::new()
            .with("mock", Arc::new(MockAdapter::new(script)))
            .with("shell", Arc::new(ShellAdapter::new(shell))),
    }
}

pub(crate) fn config() -> Config {
    Config { sweep_ms: 50, ..Config::default() }
}

pub(crate) fn stored(document: &str) -> Stored {
    let format = if document.contains("nodes") { Format::Lens } else { Format::Lobsterx };
    let checked = doc::check(document.as_bytes(), Some(format), &Registry::default());
    let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    Stored::new(plan, document)
}

pub(crate) fn start(document: &str) -> Start {
    let mut start = Start::new(stored(document), Map::new());
    start.default_agent = Some("mock".to_owned());
    start
}

/// Waits until the run is as wanted, for at most ten seconds.
pub(crate) async fn until(engine: &Engine, run: RunId, wanted: impl Fn(&Run) -> bool) -> Run {
    let mut tips = engine.follow(run);
    let looked = async {
        loop {
            let now = engine.load(run).await.expect("the run can be read");
            if wanted(&now) {
                return now;
            }
            let _ = tokio::time::timeout(Duration::from_millis(100), tips.changed()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looked).await.expect("it happens in time")
}

pub(crate) async fn ended(engine: &Engine, run: RunId) -> Run {
    until(engine, run, |run| run.status.is_terminal()).await
}

pub(crate) fn outputs(run: &Run) -> Value {
    let end = run.end.as_ref().expect("it has ended");
    end.outputs.as_ref().map_or(Value::Null, |outputs| (**outputs).clone())
}
