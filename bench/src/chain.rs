//! Many runs of a chain of steps that do nothing: what a step costs.

use crate::ground::{Plant, Used, Where, brief, chain, per_s, quantile_ms, stored};
use crate::limit::Bare;
use clap::Args;
use serde_json::{Value, json};
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
    let mut bare = Bare::open(plant.dir())?;
    round(&plant, &stored, options.concurrency, options.concurrency).await?;
    let (before, cpu_before) = (plant.figures(), Used::now().cpu_s);
    let mut times = Vec::new();
    let mut commits = Vec::new();
    let (mut engine_s, mut bare_s, mut cpu_bare_s) = (Duration::ZERO, Duration::ZERO, 0.0);
    let per_round = options.runs.div_ceil(options.rounds);
    let rows = per_round * options.steps;
    for _ in 0..options.rounds {
        let cpu = Used::now().cpu_s;
        bare_s += bare.rows(rows)?;
        for _ in 0..50 {
            commits.push(bare.commit()?);
        }
        cpu_bare_s += Used::now().cpu_s - cpu;
        let round = round(&plant, &stored, per_round, options.concurrency).await?;
        engine_s += round.took;
        times.extend(round.times);
    }
    let after = plant.figures();
    let used = Used::now();
    let runs = per_round * options.rounds;
    let steps_per_s = per_s(runs * options.steps, engine_s);
    let limit_per_s = per_s(rows * options.rounds, bare_s);
    let commits_made = after.commits - before.commits;
    let commit_ms = quantile_ms(&mut commits, 0.5);
    let p50_ms = quantile_ms(&mut times, 0.5);
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let mean_group = (after.appends - before.appends) as f64 / commits_made.max(1) as f64;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let bare_commits_ms = commit_ms * (options.steps + 1) as f64;
    Ok(json!({
        "bench": "chain",
        "steps_per_s": brief(steps_per_s),
        "runs_per_s": brief(per_s(runs, engine_s)),
        "p50_ms": brief(p50_ms),
        "p99_ms": brief(quantile_ms(&mut times, 0.99)),
        "rss_mb": brief(used.rss_mb),
        "cpu_s": brief(used.cpu_s - cpu_before - cpu_bare_s),
        "commits": commits_made,
        "mean_group": brief(mean_group),
        "limit_per_s": brief(limit_per_s),
        "ratio_to_limit": brief(steps_per_s / limit_per_s),
        "bare_commit_ms": brief(commit_ms),
        "p50_to_bare_commits": brief(p50_ms / bare_commits_ms),
    }))
}
