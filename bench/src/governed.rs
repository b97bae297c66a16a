//! A chain of steps under full governance, compared with a chain that writes as much but
//! skips the gates, and with one that writes no decisions at all.

use crate::chain::round;
use crate::fixture::{BenchEngine, StoreOptions, brief, chain, cpu_s, sealer, stored};
use clap::Args;
use serde_json::{Value, json};
use sluice_core::journal::event::{Event, Record, StepEvent};
use sluice_core::journal::wire;
use sluice_core::port::authority::Unasked;
use sluice_engine::config::Config;
use sluice_govern::policy::DEFAULT;
use sluice_govern::registry::{Kind, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const MOCK: &str = "'*': {text: done, cost: 0.0001}";

#[derive(Args)]
pub(crate) struct Options {
    /// Runs in all, of each kind. A round of a thousand is long enough to include the
    /// checkpoints of the write-ahead log
    #[arg(long, default_value_t = 20_000)]
    runs: usize,
    /// Steps of each run
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// Concurrent runs
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Rounds in which the kinds alternate
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Measure one kind only, for a profiler: 0 full, 1 same rows, 2 no rows
    #[arg(long)]
    only: Option<usize>,
    #[command(flatten)]
    place: StoreOptions,
}

/// The default policies, ten more that apply, three budgets, and an agent.
pub(crate) fn rows() -> Vec<Row> {
    let envelope = |name: &str, scope: &str, of: Option<&str>| {
        let body = json!({"scope": scope, "of": of, "period": "daily", "amount_cents": 1e9});
        Row { kind: Kind::Envelope, name: name.to_owned(), body }
    };
    let policies: String = (0..10)
        .map(|number| {
            format!(
                "@id(\"rule-{number}\")\n@action(\"block\")\n@enforcement(\"hard\")\n\
                 @category(\"guardrail\")\nforbid (principal, action == Action::\"dispatch_step\", \
                 resource) when {{ context has cost && context.cost > {} && context has step && \
                 context.step.attempt > {number} }};\n",
                1_000_000_000 + number
            )
        })
        .collect();
    let policy = |name: &str, text: &str| Row {
        kind: Kind::Policy,
        name: name.to_owned(),
        body: json!({"text": text, "set": "active"}),
    };
    vec![
        envelope("everything", "global", None),
        envelope("the-agent", "agent", Some("mock")),
        envelope("the-flow", "workflow", Some("chain")),
        policy(DEFAULT.0, DEFAULT.1),
        policy("house", &policies),
    ]
}

/// A decision as full governance writes it, for the chain that skips the gates.
async fn sample(options: &Options) -> anyhow::Result<Record> {
    let config = Config::default();
    let plant = BenchEngine::governed(&options.place, MOCK, rows(), config, None).await?;
    let run = plant.start(&stored(&chain(1))?).await?;
    plant.ended(run).await?;
    let loaded = plant.engine.load(run).await?;
    for frame in plant.store.frames(run, 0, 1 << 20).await? {
        let plan = Some(&loaded.definition.plan);
        for event in wire::decode(&frame.body, plan, &BTreeMap::new())?.events {
            if let Event::Step(_, StepEvent::GovernanceDecided(record)) = event {
                return Ok(record);
            }
        }
    }
    anyhow::bail!("no decision was journalled")
}

fn unasked(unasked: Unasked) -> Config {
    let mut config = Config::default();
    // Leaked: the measurement lasts as long as the process.
    config.sabotage.unasked = Some(Box::leak(Box::new(unasked)));
    config
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let record = sample(options).await?;
    let bytes = record.text().len();
    let full =
        BenchEngine::governed(&options.place, MOCK, rows(), Config::default(), Some(sealer()));
    let decision = crate::gates::decision()?;
    let noted = unasked(Unasked::Noted(Box::new(decision), record));
    let noted = BenchEngine::governed(&options.place, MOCK, rows(), noted, Some(sealer()));
    let silent = unasked(Unasked::Silent);
    let silent = BenchEngine::governed(&options.place, MOCK, Vec::new(), silent, None);
    let plants = [Arc::new(full.await?), Arc::new(noted.await?), Arc::new(silent.await?)];
    let stored = stored(&chain(options.steps))?;
    for plant in &plants {
        round(plant, &stored, options.concurrency, options.concurrency).await?;
    }
    let per_round = options.runs.div_ceil(options.rounds);
    let mut took = [const { Vec::new() }; 3];
    let mut cpu = [0.0; 3];
    for at in 0..options.rounds {
        for turn in 0..plants.len() {
            let which = options.only.unwrap_or((at + turn) % plants.len());
            let before = cpu_s();
            let round = round(&plants[which], &stored, per_round, options.concurrency).await?;
            cpu[which] += cpu_s() - before;
            took[which].push(round.took);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let steps = (per_round * options.steps) as f64;
    let of = |base: usize| share(&took[base], &took[0]);
    let all_of = |base: usize| brief(seconds(&took[base]) / seconds(&took[0]));
    let speed = took.each_ref().map(|took| brief(steps * took.len() as f64 / seconds(took)));
    let cpu_us =
        [0, 1, 2].map(|which| brief(cpu[which] / (steps * took[which].len() as f64) * 1e6));
    Ok(json!({
        "bench": "governed", "decision_bytes": bytes,
        "steps_per_s": {"full": speed[0], "same_rows": speed[1], "no_rows": speed[2]},
        "of_same_rows": of(1), "of_no_rows": of(2),
        "all_of_same_rows": all_of(1), "all_of_no_rows": all_of(2),
        "cpu_us_per_step": cpu_us,
        "cpu_of_same_rows": brief(cpu[1] / cpu[0]), "cpu_of_no_rows": brief(cpu[2] / cpu[0]),
    }))
}

fn seconds(took: &[Duration]) -> f64 {
    took.iter().sum::<Duration>().as_secs_f64()
}

/// Speed of one kind relative to another: the median of the rounds, so that a round
/// disturbed by the machine does not matter.
fn share(base: &[Duration], took: &[Duration]) -> f64 {
    let ratio = |(base, took): (&Duration, &Duration)| base.as_secs_f64() / took.as_secs_f64();
    let mut ratios: Vec<f64> = base.iter().zip(took).map(ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).map_or(0.0, |ratio| brief(*ratio))
}
