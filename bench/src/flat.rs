//! Whether a store full of finished runs slows new runs down.

use crate::chain::round;
use crate::fixture::{BenchEngine, StoreOptions, brief, chain, per_s, stored};
use clap::Args;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Options {
    /// Finished three-step runs in the full store
    #[arg(long, default_value_t = 200_000)]
    finished: usize,
    /// Runs measured in each store
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Rounds in which the two stores alternate
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    place: StoreOptions,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    const CONCURRENCY: usize = 64;
    let own = tempfile::tempdir()?;
    let full = options.place.within(&own.path().join("full"));
    let empty = options.place.within(&own.path().join("empty"));
    let full = Arc::new(BenchEngine::open(&full, "'*': {text: done}").await?);
    let empty = Arc::new(BenchEngine::open(&empty, "'*': {text: done}").await?);
    let three = stored(&chain(3))?;
    let seeded = round(&full, &three, options.finished, 256).await?;
    let ten = stored(&chain(10))?;
    let (mut in_full, mut in_empty) = (Duration::ZERO, Duration::ZERO);
    let per_round = options.runs.div_ceil(options.rounds);
    for plant in [&full, &empty] {
        round(plant, &ten, CONCURRENCY, CONCURRENCY).await?;
    }
    for _ in 0..options.rounds {
        in_empty += round(&empty, &ten, per_round, CONCURRENCY).await?.took;
        in_full += round(&full, &ten, per_round, CONCURRENCY).await?.took;
    }
    let steps = per_round * options.rounds * 10;
    Ok(json!({
        "bench": "flat",
        "finished": options.finished,
        "seed_runs_per_s": brief(per_s(options.finished, seeded.took)),
        "steps_per_s_full": brief(per_s(steps, in_full)),
        "steps_per_s_empty": brief(per_s(steps, in_empty)),
        "full_to_empty": brief(in_empty.as_secs_f64() / in_full.as_secs_f64()),
    }))
}
