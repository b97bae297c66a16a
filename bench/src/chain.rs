//! Many runs of a chain of no-op steps: the cost of a step.

use crate::fixture::{
    BenchEngine, StoreOptions, Tally, Work, brief, chain, per_s, quantile_ms, stored,
};
use clap::Args;
use serde_json::{Value, json};
use sluice_engine::definition::Stored;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Number of runs in all
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Steps of each run
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// Concurrent runs; with several nodes, for each node
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Rounds in which engine and baseline alternate
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    place: StoreOptions,
    /// Compare this many nodes on a shared database with one node
    #[arg(long, default_value_t = 1)]
    nodes: usize,
}

/// Result of one round.
pub(crate) struct Round {
    pub(crate) took: Duration,
    pub(crate) times: Vec<Duration>,
}

/// Executes `runs` runs, `concurrency` at a time.
pub(crate) async fn round(
    plant: &Arc<BenchEngine>,
    stored: &Stored,
    runs: usize,
    concurrency: usize,
) -> anyhow::Result<Round> {
    let left = Arc::new(AtomicUsize::new(runs));
    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..concurrency {
        let (plant, stored, left) = (Arc::clone(plant), stored.clone(), Arc::clone(&left));
        workers.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                times.push(plant.run(&stored).await?);
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    Ok(Round { took: begun.elapsed(), times })
}

/// Script of the mock adapter.
const MOCK: &str = "'*': {text: done}";

/// Compares rounds shared by several nodes with rounds of one node. Reports the median of
/// the rounds.
async fn together(
    options: &Options,
    one: Arc<BenchEngine>,
    stored: &Stored,
) -> anyhow::Result<Value> {
    let place = one.shared(&options.place);
    let mut nodes = vec![one];
    while nodes.len() < options.nodes {
        nodes.push(Arc::new(BenchEngine::open(&place, MOCK).await?));
    }
    let per_round = options.runs.div_ceil(options.rounds);
    let share = per_round.div_ceil(nodes.len());
    // The same number in flight on both sides, so that batches are equally large.
    let in_flight = options.concurrency * nodes.len();
    let (mut alone, mut all, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..=options.rounds {
        let single = round(&nodes[0], stored, per_round, in_flight).await?;
        let begun = Instant::now();
        let rounds = nodes.iter().map(|node| round(node, stored, share, options.concurrency));
        futures_util::future::try_join_all(rounds).await?;
        let took = begun.elapsed();
        // The first round only warms up.
        if turn > 0 {
            let steps = (per_round * options.steps, share * nodes.len() * options.steps);
            alone.push(per_s(steps.0, single.took));
            all.push(per_s(steps.1, took));
            ratios.push(per_s(steps.1, took) / per_s(steps.0, single.took));
        }
    }
    let median = |figures: &mut Vec<f64>| {
        figures.sort_unstable_by(f64::total_cmp);
        brief(figures[figures.len() / 2])
    };
    Ok(json!({
        "bench": "chain",
        "nodes": nodes.len(),
        "in_flight": in_flight,
        "one_steps_per_s": median(&mut alone),
        "together_steps_per_s": median(&mut all),
        "together_to_one": median(&mut ratios),
    }))
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = Arc::new(BenchEngine::open(&options.place, MOCK).await?);
    let stored = stored(&chain(options.steps))?;
    if options.nodes > 1 {
        anyhow::ensure!(options.place.is_shared(), "nodes share a database: `--store postgres`");
        return together(options, plant, &stored).await;
    }
    round(&plant, &stored, options.concurrency, options.concurrency).await?;
    let per_round = options.runs.div_ceil(options.rounds);
    let rows = per_round * options.steps;
    let mut tally = Tally::new(&plant, rows)?;
    let mut work = Work { steps: 0, runs: 0, took: Duration::ZERO, times: Vec::new() };
    for at in 0..options.rounds {
        if at > 0 {
            tally.yardstick(&plant, rows)?;
        }
        let round = round(&plant, &stored, per_round, options.concurrency).await?;
        work.took += round.took;
        work.times.extend(round.times);
    }
    work.runs = per_round * options.rounds;
    work.steps = work.runs * options.steps;
    let p50_ms = quantile_ms(&mut work.times, 0.5);
    let mut figures = tally.json("chain", &plant, work);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let bare_ms = tally.commit_ms() * (options.steps + 1) as f64;
    figures.insert("p50_to_bare_commits".to_owned(), brief(p50_ms / bare_ms).into());
    Ok(Value::Object(figures))
}
