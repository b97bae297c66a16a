//! A run that grows: the cost of an append and of a load, early and late.

use crate::fixture::{BenchEngine, StoreOptions, Tally, Work, brief, per_s, stored};
use clap::Args;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Items of each step; each item has three events
    #[arg(long, default_value_t = 8500)]
    items: usize,
    /// Steps, one after the other
    #[arg(long, default_value_t = 4)]
    parts: usize,
    #[command(flatten)]
    place: StoreOptions,
}

fn document(options: &Options) -> String {
    let items: Vec<String> = (0..options.items).map(|at| at.to_string()).collect();
    let part = |at: usize| {
        let after = if at == 0 { String::new() } else { format!(", depends_on: [p{}]", at - 1) };
        format!(
            "  - {{id: p{at}, command: nothing, max_items: 10000, for_each: [{}]{after}}}\n",
            items.join(",")
        )
    };
    let parts: String = (0..options.parts).map(part).collect();
    format!("name: history\nsteps:\n{parts}")
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let plant = BenchEngine::open(&options.place, "'*': {text: done}").await?;
    let stored = stored(&document(options))?;
    let mut tally = Tally::new(&plant, ROWS)?;
    let begun = Instant::now();
    let run = plant.start(&stored).await?;
    let mut tips = plant.engine.follow(run);
    // When each step was done.
    let mut done = Vec::new();
    let per_part = u64::try_from(options.items)? * 3;
    let mut version = 0;
    while version < per_part * u64::try_from(options.parts)? {
        tips.changed().await?;
        let Some(tip) = *tips.borrow_and_update() else { continue };
        version = tip.version;
        while u64::try_from(done.len())? < version / per_part {
            done.push(begun.elapsed());
        }
        if tip.status.is_terminal() {
            break;
        }
    }
    plant.ended(run).await?;
    let whole = begun.elapsed();
    tally.yardstick(&plant, ROWS)?;
    let took: Vec<Duration> = done
        .iter()
        .scan(Duration::ZERO, |before, at| Some(*at - std::mem::replace(before, *at)))
        .collect();
    let first = per_s(options.items, took[0]);
    let last = per_s(options.items, took[took.len() - 1]);
    let begun = Instant::now();
    let loaded = plant.engine.load(run).await?;
    let load = begun.elapsed();
    let begun = Instant::now();
    plant.engine.load_at(run, u64::MAX).await?;
    let replay = begun.elapsed();
    let work =
        Work { steps: options.items * options.parts, runs: 1, took: whole, times: vec![whole] };
    let mut figures = tally.json("history", &plant, work);
    let extra = json!({
        "events": loaded.version,
        "steps_per_s_first": brief(first),
        "steps_per_s_last": brief(last),
        "last_to_first": brief(last / first),
        "load_ms": brief(load.as_secs_f64() * 1000.0),
        "replay_ms": brief(replay.as_secs_f64() * 1000.0),
    });
    figures.extend(extra.as_object().cloned().unwrap_or_default());
    Ok(Value::Object(figures))
}

/// Rows of each baseline measurement.
const ROWS: usize = 64_000;
