//! Runs that wait for people: what they cost while nothing happens.

use crate::ground::{Plant, Tally, Where, Work, stored};
use clap::Args;
use serde_json::Value;
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
    tally.yardstick(ROWS)?;
    let work = Work { steps: options.runs, runs: options.runs, took, times: Vec::new() };
    let mut figures = tally.json("parked", &plant, work);
    figures.insert("runs".to_owned(), options.runs.into());
    Ok(Value::Object(figures))
}

/// Rows of each turn of the yardstick.
const ROWS: usize = 64_000;
