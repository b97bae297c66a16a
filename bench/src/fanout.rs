//! One step, then many in parallel, then one that joins them.

use crate::fixture::{BenchEngine, StoreOptions, Tally, Work, stored};
use clap::Args;
use serde_json::Value;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Options {
    /// Parallel steps
    #[arg(long, default_value_t = 1000)]
    width: usize,
    /// Number of runs, one after the other
    #[arg(long, default_value_t = 10)]
    runs: usize,
    #[command(flatten)]
    place: StoreOptions,
}

fn document(width: usize) -> String {
    let middle: String = (0..width)
        .map(|at| format!("  - {{id: m{at}, command: nothing, depends_on: [first]}}\n"))
        .collect();
    let all: Vec<String> = (0..width).map(|at| format!("m{at}")).collect();
    format!(
        "name: fanout\nmax_parallel: 1024\nsteps:\n  - {{id: first, command: nothing}}\n{middle}  \
         - {{id: last, command: nothing, depends_on: [{}]}}\n",
        all.join(", ")
    )
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = BenchEngine::open(&options.place, "'*': {text: done}").await?;
    let stored = stored(&document(options.width))?;
    plant.run(&stored).await?;
    let mut tally = Tally::new(&plant, ROWS)?;
    let mut work = Work { steps: 0, runs: options.runs, took: Duration::ZERO, times: Vec::new() };
    for _ in 0..options.runs {
        let took = plant.run(&stored).await?;
        work.took += took;
        work.times.push(took);
        tally.yardstick(&plant, ROWS)?;
    }
    work.steps = options.runs * (options.width + 2);
    Ok(Value::Object(tally.json("fanout", &plant, work)))
}

/// Rows of each baseline measurement.
const ROWS: usize = 6400;
