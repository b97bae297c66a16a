//! A process is killed with many runs in flight: time until another has recovered them.

use crate::fixture::{BenchEngine, StoreOptions, Tally, Work, brief, stored};
use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Adapter, Call, Capabilities, Execution, Health, Request};
use sluice_engine::config::Config;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Runs in flight
    #[arg(long, default_value_t = 10_000)]
    runs: usize,
    /// Run as the process that is killed: start the runs, report, wait
    #[arg(long, hide = true)]
    victim: bool,
    #[command(flatten)]
    place: StoreOptions,
}

const DOCUMENT: &str = "
name: recover
steps:
  - {id: one, command: nothing}
  - {id: two, command: nothing, depends_on: [one]}
";

/// Accepts work, counts it, and never finishes.
#[derive(Default)]
struct Hanging(AtomicUsize);

impl Adapter for Hanging {
    fn provider(&self) -> &'static str {
        "hanging"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn execute<'a>(&'a self, _: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            call.cancelled().await;
            Execution::Accepted
        })
    }
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    if options.victim {
        return die(options).await;
    }
    let own = tempfile::tempdir()?;
    let place = options.place.within(own.path());
    let dir = place.data.as_ref().context("the place has a directory")?;
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["recover", "--victim", "--runs", &options.runs.to_string(), "--data"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    BufReader::new(victim.stdout.take().context("its output is piped")?).read_line(&mut said)?;
    victim.kill()?;
    victim.wait()?;
    anyhow::ensure!(said.trim() == "ready", "the first process said `{said}`");
    let adapter = Arc::new(Hanging::default());
    let begun = Instant::now();
    let agent: Arc<dyn Adapter> = Arc::clone(&adapter) as Arc<dyn Adapter>;
    let plant = BenchEngine::open_with(&place, agent, Config::default()).await?;
    while adapter.0.load(Ordering::Relaxed) < options.runs {
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(120), "not recovered in 120 s");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = begun.elapsed();
    anyhow::ensure!(plant.engine.residents() == options.runs, "every run is in memory");
    // Counting starts with the process: it has only opened the store so far.
    let mut tally = Tally::new(&plant, ROWS)?;
    tally.since_the_beginning();
    let work = Work { steps: options.runs, runs: options.runs, took, times: vec![took] };
    let mut figures = tally.json("recover", &plant, work);
    figures.insert("runs".to_owned(), options.runs.into());
    figures.insert("took_s".to_owned(), brief(took.as_secs_f64()).into());
    Ok(Value::Object(figures))
}

/// Rows of the baseline measurement.
const ROWS: usize = 64_000;

/// Starts the runs, reports when all are in flight, and waits to be killed.
async fn die(options: &Options) -> anyhow::Result<Value> {
    let adapter = Arc::new(Hanging::default());
    let agent: Arc<dyn Adapter> = Arc::clone(&adapter) as Arc<dyn Adapter>;
    let plant = Arc::new(BenchEngine::open_with(&options.place, agent, Config::default()).await?);
    let stored = stored(DOCUMENT)?;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..options.runs {
        let (plant, stored) = (Arc::clone(&plant), stored.clone());
        starts.spawn(async move { plant.start(&stored).await });
    }
    while let Some(started) = starts.join_next().await {
        started??;
    }
    while adapter.0.load(Ordering::Relaxed) < options.runs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    writeln!(std::io::stdout(), "ready")?;
    tokio::time::sleep(Duration::from_secs(300)).await;
    anyhow::bail!("this process was not killed")
}
