//! Engines, stores and figures that the benchmarks share.

use crate::limit::BareDatabase;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_core::id::RunId;
use sluice_core::port::adapter::Adapter;
use sluice_core::port::ledger::Change;
use sluice_core::port::store::{Gauges, NodeId, Store, StoreError};
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::Ground;
use sluice_engine::observe::Observer;
use sluice_engine::sealer::Sealer;
use sluice_engine::start::Start;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::Row;
use sluice_store::authentic::{Keyed, Mark};
use sluice_store::memory::MemoryStore;
use sluice_store::postgres::{PostgresStore, Time};
use sluice_store::sqlite::SqliteStore;
use sluice_testing::postgres::Server;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Store to measure.
#[derive(Args, Clone)]
pub(crate) struct StoreOptions {
    /// Store to use.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    store: StoreKind,
    /// Directory of the store (default: a temporary one).
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// An already running database.
    #[arg(skip)]
    database: Option<Arc<Server>>,
}

impl StoreOptions {
    /// The same options, with `dir` as the default directory.
    pub(crate) fn within(&self, dir: &Path) -> StoreOptions {
        let data = self.data.clone().unwrap_or_else(|| dir.to_owned());
        StoreOptions { data: Some(data), ..self.clone() }
    }

    /// The same options, with a directory of its own inside the configured one.
    pub(crate) fn apart(&self, name: &str) -> StoreOptions {
        StoreOptions { data: self.data.as_ref().map(|dir| dir.join(name)), ..self.clone() }
    }

    /// Whether several nodes can share the store.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.store, StoreKind::Postgres)
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum StoreKind {
    Sqlite,
    Memory,
    /// In a server that the benchmark starts.
    Postgres,
}

/// Makes PostgreSQL count statements.
const COUNTED: &str = "shared_preload_libraries=pg_stat_statements";

/// Gives a store a MAC key, as a server does.
async fn keyed(store: &dyn Keyed) -> Result<(), StoreError> {
    let key = MacKey::derive(&[7; 32]);
    match store.marked(&key) {
        Mark::Own => store.unlock(key),
        Mark::Empty | Mark::Missing | Mark::Foreign => store.adopt(key, Doubts::default()).await?,
    }
    Ok(())
}

/// A sealer with a fixed key.
pub(crate) fn sealer() -> Sealer {
    Sealer { signer: Signer::new(&[7; 32]), witness: None }
}

/// An engine, its store and its directory.
pub(crate) struct BenchEngine {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<dyn Store>,
    database: Option<Arc<Server>>,
    dir: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl BenchEngine {
    pub(crate) async fn open(place: &StoreOptions, mock: &str) -> anyhow::Result<BenchEngine> {
        let script = Script::parse(mock).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
        let adapter = Arc::new(MockAdapter::new(script));
        BenchEngine::open_with(place, adapter, Config::default()).await
    }

    /// Opens an engine on registry rows.
    pub(crate) async fn governed(
        place: &StoreOptions,
        mock: &str,
        rows: Vec<Row>,
        config: Config,
        sealer: Option<Sealer>,
    ) -> anyhow::Result<BenchEngine> {
        let script = Script::parse(mock).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
        let adapter = Arc::new(MockAdapter::new(script));
        BenchEngine::on(place, adapter, config, (rows, sealer), None).await
    }

    /// Opens an engine with an observer.
    pub(crate) async fn observed(
        place: &StoreOptions,
        adapter: Arc<dyn Adapter>,
        config: Config,
        sealer: Option<Sealer>,
        observer: Arc<dyn Observer>,
    ) -> anyhow::Result<BenchEngine> {
        BenchEngine::on(place, adapter, config, (Vec::new(), sealer), Some(observer)).await
    }

    pub(crate) async fn open_with(
        place: &StoreOptions,
        adapter: Arc<dyn Adapter>,
        config: Config,
    ) -> anyhow::Result<BenchEngine> {
        BenchEngine::on(place, adapter, config, (Vec::new(), Some(sealer())), None).await
    }

    async fn on(
        place: &StoreOptions,
        adapter: Arc<dyn Adapter>,
        config: Config,
        (rows, sealer): (Vec<Row>, Option<Sealer>),
        observer: Option<Arc<dyn Observer>>,
    ) -> anyhow::Result<BenchEngine> {
        let own = if place.data.is_none() { Some(tempfile::tempdir()?) } else { None };
        let dir = place.data.clone().or_else(|| own.as_ref().map(|dir| dir.path().to_owned()));
        let dir = dir.context("there is a directory")?;
        let mut database = place.database.clone();
        let store: Arc<dyn Store> = match place.store {
            StoreKind::Sqlite => {
                let store = SqliteStore::open(&dir, Arc::new(SystemClock))?;
                keyed(&store).await?;
                Arc::new(store)
            }
            StoreKind::Memory => Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            StoreKind::Postgres => {
                let start = || Server::start(&[COUNTED]).map(Arc::new);
                let server = database.map_or_else(start, Ok).map_err(anyhow::Error::msg)?;
                let store = PostgresStore::open_by(&server.url(), Time::Database)?;
                keyed(&store).await?;
                database = Some(server);
                Arc::new(store)
            }
        };
        if !rows.is_empty() {
            let (node, entries) = (NodeId(1), Vec::new());
            let change = Change { expect: None, put: rows, remove: Vec::new(), node, entries };
            store.change(change).await?;
        }
        let fixture = Ground {
            store: Arc::clone(&store),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(|| Box::new(SystemEntropy)),
            agents: Agents::new().with("mock", adapter),
            policies: PolicySource::default(),
            catalog: None,
            sealer,
            moderator: None,
            observer,
        };
        let engine = Arc::new(Engine::open(fixture, config).await?);
        Ok(BenchEngine { engine, store, database, dir, _own: own })
    }

    /// Options for another node on the same store.
    pub(crate) fn shared(&self, place: &StoreOptions) -> StoreOptions {
        StoreOptions { database: self.database.clone(), ..place.clone() }
    }

    /// The PostgreSQL server, if that is the store.
    pub(crate) fn database(&self) -> Option<&Server> {
        self.database.as_deref()
    }

    /// URL of the PostgreSQL server, if that is the store.
    pub(crate) fn url(&self) -> Option<String> {
        self.database.as_ref().map(|server| server.url())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a run and waits for its end.
    pub(crate) async fn run(&self, stored: &Stored) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let run = self.start(stored).await?;
        self.ended(run).await?;
        Ok(begun.elapsed())
    }

    pub(crate) async fn start(&self, stored: &Stored) -> anyhow::Result<RunId> {
        let mut start = Start::new(stored.clone(), Map::new());
        start.default_agent = Some("mock".to_owned());
        Ok(self.engine.start(start).await?.run)
    }

    pub(crate) async fn ended(&self, run: RunId) -> anyhow::Result<()> {
        let mut tips = self.engine.follow(run);
        loop {
            let status = tips.borrow_and_update().map(|tip| tip.status);
            let status = match status {
                Some(status) => status,
                // The run may have ended before it was followed.
                None => self.engine.load(run).await?.status,
            };
            if status.is_terminal() {
                anyhow::ensure!(status == RunStatus::Completed, "{run} is {status}");
                return Ok(());
            }
            tips.changed().await?;
        }
    }
}

/// Parses a document into a stored definition.
pub(crate) fn stored(document: &str) -> anyhow::Result<Stored> {
    let checked = doc::check(document.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    let plan = checked.plan.with_context(|| format!("{:?}", checked.diagnostics))?;
    Ok(Stored::new(plan, document))
}

/// A workflow of `steps` no-op steps in sequence.
pub(crate) fn chain(steps: usize) -> String {
    let step = |at: usize| match at {
        0 => "  - {id: s0, command: nothing}\n".to_owned(),
        at => format!("  - {{id: s{at}, command: nothing, depends_on: [s{}]}}\n", at - 1),
    };
    let steps: String = (0..steps).map(step).collect();
    format!("name: chain\nsteps:\n{steps}")
}

/// CPU time of this process, in seconds.
pub(crate) fn cpu_s() -> f64 {
    ProcessUsage::now().cpu_s
}

/// Counters of a benchmark, and the figures that every benchmark prints.
pub(crate) struct Tally {
    gauges: Gauges,
    cpu_s: f64,
    bare: BareDatabase,
    bare_rows: usize,
    bare_took: Duration,
    bare_cpu_s: f64,
    commits: Vec<Duration>,
}

/// Completed work and its duration.
pub(crate) struct Work {
    pub(crate) steps: usize,
    pub(crate) runs: usize,
    pub(crate) took: Duration,
    /// Duration of each run.
    pub(crate) times: Vec<Duration>,
}

impl Tally {
    /// Starts counting, with a first measurement of the baseline.
    pub(crate) fn new(plant: &BenchEngine, rows: usize) -> anyhow::Result<Tally> {
        let mut tally = Tally {
            gauges: plant.store.gauges(),
            cpu_s: ProcessUsage::now().cpu_s,
            bare: match plant.url() {
                Some(url) => BareDatabase::connect(&url)?,
                None => BareDatabase::open(plant.dir())?,
            },
            bare_rows: 0,
            bare_took: Duration::ZERO,
            bare_cpu_s: 0.0,
            commits: Vec::new(),
        };
        tally.yardstick(plant, rows)?;
        Ok(tally)
    }

    /// Counts from the start of the process instead.
    pub(crate) fn since_the_beginning(&mut self) {
        self.gauges = Gauges::default();
        self.cpu_s = 0.0;
    }

    /// Measures the baseline: `rows` rows in commits as large as the store's, and some
    /// commits of one row.
    pub(crate) fn yardstick(&mut self, plant: &BenchEngine, rows: usize) -> anyhow::Result<()> {
        const COMMITS: usize = 50;
        let cpu_s = ProcessUsage::now().cpu_s;
        let gauges = plant.store.gauges();
        let group = usize::try_from(gauges.appends / gauges.commits.max(1)).unwrap_or(1).max(1);
        self.bare_took += self.bare.rows(rows, group)?;
        self.bare_rows += rows;
        for _ in 0..COMMITS {
            self.commits.push(self.bare.commit()?);
        }
        self.bare_cpu_s += ProcessUsage::now().cpu_s - cpu_s;
        Ok(())
    }

    /// Median duration of a commit of one row.
    pub(crate) fn commit_ms(&mut self) -> f64 {
        quantile_ms(&mut self.commits, 0.5)
    }

    /// All figures as JSON.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(crate) fn json(
        &mut self,
        bench: &str,
        plant: &BenchEngine,
        mut work: Work,
    ) -> Map<String, Value> {
        let after = plant.store.gauges();
        let used = ProcessUsage::now();
        let commits = after.commits - self.gauges.commits;
        let appends = after.appends - self.gauges.appends;
        let steps_per_s = per_s(work.steps, work.took);
        let limit_per_s = per_s(self.bare_rows, self.bare_took);
        let figures = json!({
            "bench": bench,
            "steps_per_s": brief(steps_per_s),
            "runs_per_s": brief(per_s(work.runs, work.took)),
            "p50_ms": brief(quantile_ms(&mut work.times, 0.5)),
            "p99_ms": brief(quantile_ms(&mut work.times, 0.99)),
            "rss_mb": brief(used.rss_mb),
            "peak_mb": brief(used.peak_mb),
            "cpu_s": brief(used.cpu_s - self.cpu_s - self.bare_cpu_s),
            "commits": commits,
            "mean_group": brief(appends as f64 / commits.max(1) as f64),
            "limit_per_s": brief(limit_per_s),
            "ratio_to_limit": brief(steps_per_s / limit_per_s),
            "bare_commit_ms": brief(self.commit_ms()),
        });
        match figures {
            Value::Object(figures) => figures,
            _ => Map::new(),
        }
    }
}

/// Memory and CPU time of this process.
pub(crate) struct ProcessUsage {
    pub(crate) peak_mb: f64,
    pub(crate) rss_mb: f64,
    pub(crate) cpu_s: f64,
}

impl ProcessUsage {
    pub(crate) fn now() -> ProcessUsage {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|one| one.parse::<f64>().ok());
        const TICKS_PER_S: f64 = 100.0;
        ProcessUsage {
            peak_mb: kib("VmHWM").unwrap_or(0.0) / 1024.0,
            rss_mb: kib("VmRSS").unwrap_or(0.0) / 1024.0,
            cpu_s: (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS_PER_S,
        }
    }
}

/// Quantile of the times, in milliseconds.
pub(crate) fn quantile_ms(times: &mut [Duration], share: f64) -> f64 {
    if times.is_empty() {
        return 0.0;
    }
    times.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list"
    )]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at].as_secs_f64() * 1000.0
}

/// Rate per second.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn per_s(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Rounds to two decimals.
pub(crate) fn brief(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
