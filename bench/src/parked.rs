//! Runs that wait for approvals: their cost while nothing happens.

use crate::fixture::{BenchEngine, StoreOptions, Tally, Work, brief, stored};
use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use sluice_testing::postgres::Server;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Number of runs
    #[arg(long, default_value_t = 100_000)]
    runs: usize,
    /// Concurrent starts
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Nodes that serve the runs, if the database is shared
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    #[command(flatten)]
    place: StoreOptions,
}

const DOCUMENT: &str = "
name: parked
steps:
  - {id: before, command: nothing}
  - {id: sure, approval: required, depends_on: [before]}
  - {id: after, command: nothing, depends_on: [sure]}
";

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = Arc::new(BenchEngine::open(&options.place, MOCK).await?);
    let stored = stored(DOCUMENT)?;
    let mut tally = Tally::new(&plant, ROWS)?;
    let left = Arc::new(AtomicUsize::new(options.runs));
    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..options.concurrency {
        let (plant, stored, left) = (Arc::clone(&plant), stored.clone(), Arc::clone(&left));
        workers.push(tokio::spawn(async move {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                plant.start(&stored).await?;
            }
            anyhow::Ok(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    while plant.engine.residents() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = begun.elapsed();
    tally.yardstick(&plant, ROWS)?;
    let work = Work { steps: options.runs, runs: options.runs, took, times: Vec::new() };
    let mut figures = tally.json("parked", &plant, work);
    figures.insert("runs".to_owned(), options.runs.into());
    if let Some(server) = plant.database() {
        let per_s = idle(options, &plant, server).await?;
        figures.insert("idle_queries_per_s".to_owned(), brief(per_s).into());
    }
    Ok(Value::Object(figures))
}

/// Statements per second that idle nodes send to the database.
async fn idle(options: &Options, plant: &BenchEngine, server: &Server) -> anyhow::Result<f64> {
    const CALM: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_secs(30);
    plant.engine.shutdown().await;
    let (dir, url) = (tempfile::tempdir()?, server.url());
    let mut nodes = Vec::new();
    for _ in 0..options.nodes {
        nodes.push(node(dir.path(), &url)?);
    }
    server.psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    tokio::time::sleep(CALM).await;
    server.psql("SELECT pg_stat_statements_reset()");
    tokio::time::sleep(LOOK).await;
    let output =
        server.psql("SELECT calls, left(query, 60) FROM pg_stat_statements ORDER BY 1 DESC");
    writeln!(std::io::stdout(), "{output}")?;
    let calls = server.psql("SELECT sum(calls) FROM pg_stat_statements");
    Ok(calls.parse::<f64>()? / LOOK.as_secs_f64())
}

/// A node process, killed on drop.
struct NodeProcess(Child);

fn node(dir: &Path, url: &str) -> anyhow::Result<NodeProcess> {
    let program = std::env::current_exe()?.with_file_name("sluice");
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--database-url", url, "--data"]).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = child.stdout.take().context("its output is piped")?;
    let node = NodeProcess(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    anyhow::ensure!(line.contains("http://"), "a node did not start: {line}");
    Ok(node)
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Script of the mock adapter.
const MOCK: &str = "'*': {text: done}";

/// Rows of each baseline measurement.
const ROWS: usize = 64_000;
