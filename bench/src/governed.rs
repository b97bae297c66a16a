//! A chain of steps under full governance, compared with a chain under the built-in
//! policies, which allow everything, and with one that is not sealed either.
//!
//! Every dispatch passes the gates, so no chain is without them. What they cost is timed
//! apart, under the same policies and as many caps.

use crate::chain::round;
use crate::fixture::{BenchEngine, StoreOptions, brief, chain, cpu_s, sealer, stored};
use clap::Args;
use serde_json::{Value, json};
use sluice_core::journal::event::{Event, StepEvent};
use sluice_core::journal::wire;
use sluice_engine::config::Config;
use sluice_engine::sealer::Sealer;
use sluice_govern::policy::{DEFAULT, Policies};
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
    /// Measure one kind only, for a profiler: 0 full, 1 no rows, 2 no rows and no seals
    #[arg(long)]
    only: Option<usize>,
    #[command(flatten)]
    place: StoreOptions,
}

/// The default policies, and ten more that apply.
fn policy_files() -> [(String, String); 2] {
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
    [(DEFAULT.0.to_owned(), DEFAULT.1.to_owned()), ("house".to_owned(), policies)]
}

/// The budgets of full governance: name, scope and what the scope is limited to.
const BUDGETS: [(&str, &str, Option<&str>); 3] = [
    ("everything", "global", None),
    ("the-agent", "agent", Some("mock")),
    ("the-flow", "workflow", Some("chain")),
];

/// Policies and budgets of full governance.
pub(crate) fn rows() -> Vec<Row> {
    let budgets = BUDGETS.map(|(name, scope, of)| {
        let body = json!({"scope": scope, "of": of, "period": "daily", "amount_cents": 1e9});
        Row { kind: Kind::Budget, name: name.to_owned(), body }
    });
    let policies = policy_files().map(|(name, text)| {
        let body = json!({"text": text, "set": "active"});
        Row { kind: Kind::Policy, name, body }
    });
    budgets.into_iter().chain(policies).collect()
}

/// Decisions that are timed apart.
const DECISIONS: usize = 100_000;

/// Median time of one decision under full governance, in seconds.
fn gates_s() -> anyhow::Result<f64> {
    let policies = Policies::load(&policy_files());
    let policies = policies.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let (times, _) = crate::gates::decide(&policies, BUDGETS.len(), DECISIONS)?;
    Ok(times[times.len() / 2].as_secs_f64())
}

/// The length of a decision as the engine journals it.
async fn decision_bytes(plant: &BenchEngine) -> anyhow::Result<usize> {
    let run = plant.start(&stored(&chain(1))?).await?;
    plant.ended(run).await?;
    let loaded = plant.engine.load(run).await?;
    for frame in plant.store.frames(run, 0, 1 << 20).await? {
        let plan = Some(&loaded.definition.plan);
        for event in wire::decode(&frame.body, plan, &BTreeMap::new())?.events {
            if let Event::Step(_, StepEvent::GovernanceDecided(record)) = event {
                return Ok(record.text().len());
            }
        }
    }
    anyhow::bail!("no decision was journalled")
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let gates_s = gates_s()?;
    let open = async |name: &str, rows: Vec<Row>, sealer: Option<Sealer>| {
        let (place, config) = (options.place.apart(name), Config::default());
        BenchEngine::governed(&place, MOCK, rows, config, sealer).await.map(Arc::new)
    };
    let plants = [
        open("full", rows(), Some(sealer())).await?,
        open("no_rows", Vec::new(), Some(sealer())).await?,
        open("no_seals", Vec::new(), None).await?,
    ];
    let bytes = [decision_bytes(&plants[0]).await?, decision_bytes(&plants[1]).await?];
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
    let cpu_s = [0, 1, 2].map(|which| cpu[which] / (steps * took[which].len() as f64));
    Ok(json!({
        "bench": "governed",
        "decision_bytes": {"full": bytes[0], "no_rows": bytes[1]},
        "steps_per_s": {"full": speed[0], "no_rows": speed[1], "no_seals": speed[2]},
        "of_no_rows": of(1), "of_no_seals": of(2),
        "all_of_no_rows": all_of(1), "all_of_no_seals": all_of(2),
        "cpu_us_per_step": cpu_s.map(|cpu_s| brief(cpu_s * 1e6)),
        "cpu_of_no_rows": brief(cpu_s[1] / cpu_s[0]),
        "cpu_of_no_seals": brief(cpu_s[2] / cpu_s[0]),
        "gates_us_per_step": brief(gates_s * 1e6),
        "cpu_of_no_gates": brief(1.0 - gates_s / cpu_s[0]),
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
