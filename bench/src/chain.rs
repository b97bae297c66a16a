//! Many runs of a chain of steps that do nothing: what a step costs.

use crate::ground::{Plant, Tally, Where, Work, brief, chain, quantile_ms, stored};
use clap::Args;
use serde_json::Value;
use sluice_engine::definition::Stored;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// How many runs in all.
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Steps of each.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// Runs at the same time.
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// How often engine and yardstick take turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    place: Where,
}

/// What one round of runs came to.
pub(crate) struct Round {
    pub(crate) took: Duration,
    pub(crate) times: Vec<Duration>,
}

/// Runs `runs` runs, `concurrency` of them at a time.
pub(crate) async fn round(
    plant: &Arc<Plant>,
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

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = Arc::new(Plant::open(&options.place, "'*': {text: done}").await?);
    let stored = stored(&chain(options.steps))?;
    round(&plant, &stored, options.concurrency, options.concurrency).await?;
    let per_round = options.runs.div_ceil(options.rounds);
    let rows = per_round * options.steps;
    let mut tally = Tally::new(&plant, rows)?;
    let mut work = Work { steps: 0, runs: 0, took: Duration::ZERO, times: Vec::new() };
    for at in 0..options.rounds {
        if at > 0 {
            tally.yardstick(rows)?;
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
