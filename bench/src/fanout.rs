//! One step, then many at once, then one that waits for all of them.

use crate::ground::{Plant, Used, Where, brief, quantile_ms, stored};
use clap::Args;
use serde_json::{Value, json};

#[derive(Args)]
pub(crate) struct Options {
    /// How many at once.
    #[arg(long, default_value_t = 1000)]
    width: usize,
    /// How many runs, one after the other.
    #[arg(long, default_value_t = 10)]
    runs: usize,
    #[command(flatten)]
    place: Where,
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
    let plant = Plant::open(&options.place, "'*': {text: done}").await?;
    let stored = stored(&document(options.width))?;
    plant.run(&stored).await?;
    let before = plant.figures();
    let mut times = Vec::new();
    for _ in 0..options.runs {
        times.push(plant.run(&stored).await?);
    }
    let after = plant.figures();
    Ok(json!({
        "bench": "fanout",
        "width": options.width,
        "p50_ms": brief(quantile_ms(&mut times, 0.5)),
        "p99_ms": brief(quantile_ms(&mut times, 0.99)),
        "appends": after.appends - before.appends,
        "commits": after.commits - before.commits,
        "rss_mb": brief(Used::now().rss_mb),
    }))
}
