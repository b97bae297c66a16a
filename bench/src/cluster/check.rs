//! Guarantees that must hold under all faults.

use super::api::Api;
use super::load::Acknowledged;
use super::node::Cluster;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Poll interval, in milliseconds.
const LOOK_MS: u64 = 500;
/// Runs read concurrently.
const READERS: usize = 8;
/// The budget that is checked.
const BUDGET: &str = "purse";
/// Cost of a step that is charged to this budget, in cents.
const COST_CENTS: i64 = 2;

/// Counts over all runs.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) runs: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) events: usize,
    pub(super) steps: usize,
    pub(super) spent_cents: i64,
    /// Slots of the schedule.
    pub(super) slots: usize,
    /// Number of events of each run.
    lengths: BTreeMap<String, u64>,
    /// How often each approval was resolved.
    resolved: BTreeMap<String, usize>,
}

/// Waits until every run has ended.
pub(super) async fn until_ended(cluster: &Cluster, patience: Duration) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let sql = "SELECT count(*) FROM run WHERE ended_at IS NULL";
        let left = tokio::task::block_in_place(|| {
            cluster.setup.lock().expect("the lock is not poisoned").server.psql(sql)
        });
        if left == "0" {
            return Ok(());
        }
        anyhow::ensure!(begun.elapsed() < patience, "{left} runs have not ended");
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

/// Checks continuously that the budget is never exceeded.
pub(super) async fn watch_budget(api: Arc<Api>) {
    loop {
        // All nodes may be down for a while.
        if let Ok(budget) = api.get(&format!("/api/v1/budgets/{BUDGET}")).await {
            let (used, cap) = used(&budget).expect("a budget has figures");
            assert!(used <= cap, "{used} of {cap} cents are spent or reserved: {budget}");
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS / 2)).await;
    }
}

/// ProcessUsage and total amount of a budget, in cents.
fn used(budget: &Value) -> anyhow::Result<(i64, i64)> {
    let cents = |name: &str| {
        let text = budget[name].as_str().context("a budget says what is used")?;
        let cents: i64 = text.replace('.', "").parse()?;
        anyhow::Ok(cents)
    };
    let cap = budget["amount_cents"].as_i64().context("a budget has a cap")?;
    Ok((cents("spent")? + cents("reserved")?, cap))
}

/// Checks every journal, the budget and the audit.
pub(super) async fn everything(
    api: &Arc<Api>,
    cluster: &Cluster,
    acknowledged: &Acknowledged,
    answered: &BTreeSet<String>,
) -> anyhow::Result<Seen> {
    let all = api.all("/api/v1/runs").await?;
    let ids: BTreeSet<&str> = all.iter().filter_map(|run| run["run_id"].as_str()).collect();
    let started = &acknowledged.runs;
    for (key, run) in started {
        anyhow::ensure!(ids.contains(run.as_str()), "{key}, {run}, was acknowledged but is lost");
    }
    let ticks = all.iter().filter(|run| run["workflow"] == "tick").count();
    let slots = slots(api, ticks).await?;
    let roots = all.iter().filter(|run| run["parent_run_id"].is_null()).count() - ticks;
    anyhow::ensure!(roots == started.len(), "{roots} runs were started, not {}", started.len());
    let mut readers = Vec::new();
    let shared = Arc::new(all);
    for reader in 0..READERS {
        let (api, all) = (Arc::clone(api), Arc::clone(&shared));
        readers.push(tokio::spawn(async move {
            let mut seen = Seen::default();
            for run in all.iter().skip(reader).step_by(READERS) {
                journal(&api, run, &mut seen).await?;
            }
            anyhow::Ok(seen)
        }));
    }
    let mut seen = Seen { slots, ..Seen::default() };
    for reader in readers {
        let part = reader.await??;
        seen.runs += part.runs;
        seen.completed += part.completed;
        seen.failed += part.failed;
        seen.events += part.events;
        seen.steps += part.steps;
        seen.spent_cents += part.spent_cents;
        seen.lengths.extend(part.lengths);
        for (approval, times) in part.resolved {
            *seen.resolved.entry(approval).or_default() += times;
        }
    }
    for (run, end) in &acknowledged.ends {
        let length = seen.lengths.get(run).copied().unwrap_or_default();
        anyhow::ensure!(
            length == *end,
            "{run} ended with event {end} when followed, but has {length}"
        );
    }
    for approval in answered {
        let times = seen.resolved.get(approval).copied().unwrap_or_default();
        anyhow::ensure!(times == 1, "approval {approval} was resolved {times} times");
    }
    let budget = api.get(&format!("/api/v1/budgets/{BUDGET}")).await?;
    let (used, cap) = used(&budget)?;
    anyhow::ensure!(used <= cap, "the budget is exceeded: {budget}");
    anyhow::ensure!(used == seen.spent_cents, "{} cents were spent: {budget}", seen.spent_cents);
    cluster.sluice(&["audit", "verify"]).context("the audit does not verify")?;
    Ok(seen)
}

/// Checks the schedule: one run for each slot, and no other runs.
async fn slots(api: &Api, ticks: usize) -> anyhow::Result<usize> {
    let slots = api.all("/api/v1/schedules/clock/slots").await?;
    let runs: Vec<&str> = slots.iter().filter_map(|slot| slot["run_id"].as_str()).collect();
    let distinct: BTreeSet<&&str> = runs.iter().collect();
    anyhow::ensure!(distinct.len() == runs.len(), "two slots have the same run");
    anyhow::ensure!(runs.len() == ticks, "{ticks} runs for {} slots: {slots:?}", runs.len());
    Ok(slots.len())
}

/// Checks one run: its event ids have no gap, and each step ended once.
async fn journal(api: &Api, run: &Value, seen: &mut Seen) -> anyhow::Result<()> {
    let id = run["run_id"].as_str().context("a run has an id")?;
    let events = api.all(&format!("/api/v1/runs/{id}/journal")).await?;
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    for (number, event) in (1u64..).zip(&events) {
        anyhow::ensure!(
            event["eventId"].as_u64() == Some(number),
            "{id}: no event {number}: {event}"
        );
        if event["type"] == "approval.resolved" {
            let approval = event["payload"]["approvalId"].as_str().context("it has an id")?;
            *seen.resolved.entry(approval.to_owned()).or_default() += 1;
        }
        if event["type"] != "node.completed" {
            continue;
        }
        let step = event["payload"]["nodeId"].as_str().context("a step has an id")?;
        *done.entry(step.to_owned()).or_default() += 1;
        seen.steps += 1;
        if step == "spend" {
            seen.spent_cents += COST_CENTS;
        }
    }
    let twice = done.iter().find(|(_, times)| **times > 1);
    anyhow::ensure!(twice.is_none(), "{id}: finished twice: {twice:?}");
    seen.runs += 1;
    seen.lengths.insert(id.to_owned(), events.len() as u64);
    seen.events += events.len();
    match run["status"].as_str().unwrap_or_default() {
        "completed" => seen.completed += 1,
        "failed" => seen.failed += 1,
        status => anyhow::bail!("{id} is {status}"),
    }
    Ok(())
}
