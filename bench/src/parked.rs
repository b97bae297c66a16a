//! Runs that wait for people: what they cost while nothing happens.

use crate::ground::{Plant, Used, Where, brief, per_s, stored};
use clap::Args;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// How many.
    #[arg(long, default_value_t = 100_000)]
    runs: usize,
    /// Started at the same time.
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    #[command(flatten)]
    place: Where,
}

const DOCUMENT: &str = "
name: parked
steps:
  - {id: before, command: nothing}
  - {id: sure, approval: required, depends_on: [before]}
  - {id: after, command: nothing, depends_on: [sure]}
";

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = Arc::new(Plant::open(&options.place, "'*': {text: done}").await?);
    let stored = stored(DOCUMENT)?;
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
    let used = Used::now();
    Ok(json!({
        "bench": "parked",
        "runs": options.runs,
        "runs_per_s": brief(per_s(options.runs, took)),
        "rss_mb": brief(used.rss_mb),
        "peak_mb": brief(used.peak_mb),
        "cpu_s": brief(used.cpu_s),
    }))
}
