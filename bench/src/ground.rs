//! What the benchmarks of the engine stand on.

use crate::limit::Bare;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_core::port::adapter::Adapter;
use sluice_core::port::ledger::Change;
use sluice_core::port::store::{Gauges, NodeId, Store, StoreError};
use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
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
use sluice_store::postgres::server::Server;
use sluice_store::postgres::{PostgresStore, Time};
use sluice_store::sqlite::SqliteStore;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where journals are kept while measuring.
#[derive(Args, Clone)]
pub(crate) struct Where {
    /// Which store.
    #[arg(long, value_enum, default_value_t = Kind::Sqlite)]
    store: Kind,
    /// Where the store keeps its files; a directory of its own when absent.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// The database that is there already.
    #[arg(skip)]
    database: Option<Arc<Server>>,
}

impl Where {
    /// The same, in `dir` unless another directory was named.
    pub(crate) fn within(&self, dir: &Path) -> Where {
        let data = self.data.clone().unwrap_or_else(|| dir.to_owned());
        Where { data: Some(data), ..self.clone() }
    }

    /// Whether nodes can share it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.store, Kind::Postgres)
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Sqlite,
    Memory,
    /// In a server that is started for it.
    Postgres,
}

/// Has the database count statements.
const COUNTED: &str = "shared_preload_libraries=pg_stat_statements";

/// Gives a store the key that a server would: everything it writes has MACs.
async fn keyed(store: &dyn Keyed) -> Result<(), StoreError> {
    let key = MacKey::derive(&[7; 32]);
    match store.marked(&key) {
        Mark::Own => store.unlock(key),
        Mark::Empty | Mark::Missing | Mark::Foreign => store.adopt(key, Doubts::default()).await?,
    }
    Ok(())
}

/// What seals are made with.
pub(crate) fn sealer() -> Sealer {
    Sealer { signer: Signer::new(&[7; 32]), witness: None }
}

/// An engine, its store and its directory.
pub(crate) struct Plant {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<dyn Store>,
    database: Option<Arc<Server>>,
    dir: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Plant {
    pub(crate) async fn open(place: &Where, mock: &str) -> anyhow::Result<Plant> {
        let script = Script::parse(mock).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
        let adapter = Arc::new(MockAdapter::new(script));
        Plant::open_with(place, adapter, Config::default()).await
    }

    /// An engine on rows of a registry, with seals or without.
    pub(crate) async fn governed(
        place: &Where,
        mock: &str,
        rows: Vec<Row>,
        config: Config,
        sealer: Option<Sealer>,
    ) -> anyhow::Result<Plant> {
        let script = Script::parse(mock).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
        let adapter = Arc::new(MockAdapter::new(script));
        Plant::on(place, adapter, config, (rows, sealer), None).await
    }

    /// An engine whose appends somebody is told of.
    pub(crate) async fn observed(
        place: &Where,
        adapter: Arc<dyn Adapter>,
        config: Config,
        sealer: Option<Sealer>,
        observer: Arc<dyn Observer>,
    ) -> anyhow::Result<Plant> {
        Plant::on(place, adapter, config, (Vec::new(), sealer), Some(observer)).await
    }

    pub(crate) async fn open_with(
        place: &Where,
        adapter: Arc<dyn Adapter>,
        config: Config,
    ) -> anyhow::Result<Plant> {
        Plant::on(place, adapter, config, (Vec::new(), Some(sealer())), None).await
    }

    async fn on(
        place: &Where,
        adapter: Arc<dyn Adapter>,
        config: Config,
        (rows, sealer): (Vec<Row>, Option<Sealer>),
        observer: Option<Arc<dyn Observer>>,
    ) -> anyhow::Result<Plant> {
        let own = if place.data.is_none() { Some(tempfile::tempdir()?) } else { None };
        let dir = place.data.clone().or_else(|| own.as_ref().map(|dir| dir.path().to_owned()));
        let dir = dir.context("there is a directory")?;
        let mut database = place.database.clone();
        let store: Arc<dyn Store> = match place.store {
            Kind::Sqlite => {
                let store = SqliteStore::open(&dir, Arc::new(SystemClock))?;
                keyed(&store).await?;
                Arc::new(store)
            }
            Kind::Memory => Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            Kind::Postgres => {
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
        let ground = Ground {
            store: Arc::clone(&store),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(|| Box::new(SystemEntropy)),
            agents: Agents::new().with("mock", adapter),
            policies: PolicySource::default(),
            sealer,
            moderator: None,
            observer,
        };
        let engine = Arc::new(Engine::open(ground, config).await?);
        Ok(Plant { engine, store, database, dir, _own: own })
    }

    /// Where another node finds what this one writes.
    pub(crate) fn shared(&self, place: &Where) -> Where {
        Where { database: self.database.clone(), ..place.clone() }
    }

    /// The database, if it is in one.
    pub(crate) fn database(&self) -> Option<&Server> {
        self.database.as_deref()
    }

    /// The database's URL, if it is in one.
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
                // It may have ended before it was followed.
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

/// A document as the engine takes it.
pub(crate) fn stored(document: &str) -> anyhow::Result<Stored> {
    let checked = doc::check(document.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    let plan = checked.plan.with_context(|| format!("{:?}", checked.diagnostics))?;
    Ok(Stored::new(plan, document))
}

/// A workflow of `steps` steps that do nothing, one after the other.
pub(crate) fn chain(steps: usize) -> String {
    let step = |at: usize| match at {
        0 => "  - {id: s0, command: nothing}\n".to_owned(),
        at => format!("  - {{id: s{at}, command: nothing, depends_on: [s{}]}}\n", at - 1),
    };
    let steps: String = (0..steps).map(step).collect();
    format!("name: chain\nsteps:\n{steps}")
}

/// Processor time this process has used, in seconds.
pub(crate) fn cpu_s() -> f64 {
    Used::now().cpu_s
}

/// What a benchmark counted, and the figures that every one of them prints.
pub(crate) struct Tally {
    gauges: Gauges,
    cpu_s: f64,
    bare: Bare,
    bare_rows: usize,
    bare_took: Duration,
    bare_cpu_s: f64,
    commits: Vec<Duration>,
}

/// What was done, and how long it took.
pub(crate) struct Work {
    pub(crate) steps: usize,
    pub(crate) runs: usize,
    pub(crate) took: Duration,
    /// How long each run took.
    pub(crate) times: Vec<Duration>,
}

impl Tally {
    /// Begins to count, with a first turn of the yardstick.
    pub(crate) fn new(plant: &Plant, rows: usize) -> anyhow::Result<Tally> {
        let mut tally = Tally {
            gauges: plant.store.gauges(),
            cpu_s: Used::now().cpu_s,
            bare: match plant.url() {
                Some(url) => Bare::connect(&url)?,
                None => Bare::open(plant.dir())?,
            },
            bare_rows: 0,
            bare_took: Duration::ZERO,
            bare_cpu_s: 0.0,
            commits: Vec::new(),
        };
        tally.yardstick(plant, rows)?;
        Ok(tally)
    }

    /// Counts what was done since the process began.
    pub(crate) fn since_the_beginning(&mut self) {
        self.gauges = Gauges::default();
        self.cpu_s = 0.0;
    }

    /// The yardstick's turn: so many rows, as many in a commit as the store has, and
    /// some commits of one.
    pub(crate) fn yardstick(&mut self, plant: &Plant, rows: usize) -> anyhow::Result<()> {
        const COMMITS: usize = 50;
        let cpu_s = Used::now().cpu_s;
        let gauges = plant.store.gauges();
        let group = usize::try_from(gauges.appends / gauges.commits.max(1)).unwrap_or(1).max(1);
        self.bare_took += self.bare.rows(rows, group)?;
        self.bare_rows += rows;
        for _ in 0..COMMITS {
            self.commits.push(self.bare.commit()?);
        }
        self.bare_cpu_s += Used::now().cpu_s - cpu_s;
        Ok(())
    }

    /// The time of one commit of one row, usually.
    pub(crate) fn commit_ms(&mut self) -> f64 {
        quantile_ms(&mut self.commits, 0.5)
    }

    /// Everything, for the last line.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(crate) fn json(
        &mut self,
        bench: &str,
        plant: &Plant,
        mut work: Work,
    ) -> Map<String, Value> {
        let after = plant.store.gauges();
        let used = Used::now();
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

/// What the process used: memory at its highest and now, processor time.
pub(crate) struct Used {
    pub(crate) peak_mb: f64,
    pub(crate) rss_mb: f64,
    pub(crate) cpu_s: f64,
}

impl Used {
    pub(crate) fn now() -> Used {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|one| one.parse::<f64>().ok());
        const TICKS_PER_S: f64 = 100.0;
        Used {
            peak_mb: kib("VmHWM").unwrap_or(0.0) / 1024.0,
            rss_mb: kib("VmRSS").unwrap_or(0.0) / 1024.0,
            cpu_s: (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS_PER_S,
        }
    }
}

/// The value below which this share of the times lies.
pub(crate) fn quantile_ms(times: &mut [Duration], share: f64) -> f64 {
    if times.is_empty() {
        return 0.0;
    }
    times.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at].as_secs_f64() * 1000.0
}

/// How many in a second.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn per_s(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Two digits after the point are enough.
pub(crate) fn brief(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
