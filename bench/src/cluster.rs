//! Several nodes on one database under faults: nodes are killed with -9 and paused, the
//! database is killed, connections are cut.
//!
//! Real processes, a real PostgreSQL, real HTTP, all on loopback. The faults are printed
//! as a table; at the end all guarantees are checked, and a violation is an error.

mod api;
mod check;
mod faults;
mod follow;
mod load;
mod node;

use anyhow::Context as _;
use api::Api;
use clap::Args;
use faults::FaultResults;
use node::{Cluster, Setup};
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for the remaining runs to end after the last fault.
const CALM_S: u64 = 180;

#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Nodes at the same time
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Runs in all
    #[arg(long, default_value_t = 600)]
    runs: usize,
    /// Lease of a node, in milliseconds
    #[arg(long, default_value_t = 2000)]
    lease_ms: u64,
    /// Number of nodes to kill with -9, one after the other
    #[arg(long, default_value_t = 4)]
    kills: usize,
    /// Shortest time between kills, in seconds
    #[arg(long, default_value_t = 6000)]
    apart_ms: u64,
    /// How often the database is killed with -9 and restarted
    #[arg(long, default_value_t = 2)]
    restarts: usize,
    /// How often all connections to the database are cut
    #[arg(long, default_value_t = 4)]
    cuts: usize,
    /// How often a node is paused for longer than its lease
    #[arg(long, default_value_t = 1)]
    pauses: usize,
    /// How often a node is stopped gracefully and restarted, as in an upgrade
    #[arg(long, default_value_t = 2)]
    stops: usize,
    /// How often a node is cut off from the database for longer than its lease
    #[arg(long, default_value_t = 1)]
    parts: usize,
    /// Whether the database has a replica that is promoted after it is killed: 0 or 1
    #[arg(long, default_value_t = 0)]
    failovers: usize,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show the logs of the nodes
    #[arg(long)]
    loud: bool,
}

/// Reproducible random numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or_default()
    }
}

/// Prints a row of the table.
fn print_row([when, what, taken, p50, max]: [&str; 5]) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{when:>8}  {what:<52} {taken:>10} {p50:>8} {max:>8}")
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let setup = Setup::new(options)?;
    let cluster = Arc::new(Cluster::start(setup, options).await?);
    let api = Arc::new(Api::new(Arc::clone(&cluster))?);
    print_row(["s", "fault", "recovered", "p50 s", "max s"])?;
    let begun = Instant::now();
    // Meanwhile runs are started and approvals are resolved.
    let rate = load::StartRate::over(options.runs, faults::lasts(options));
    let starting = tokio::spawn(load::start(Arc::clone(&api), options.runs, rate, options.seed));
    let answered = load::Answered::default();
    let answering = tokio::spawn(load::answer(Arc::clone(&api), Arc::clone(&answered)));
    let watching = tokio::spawn(check::watch_budget(Arc::clone(&api)));
    let fates = faults::play(&cluster, options, begun).await?;
    let acknowledged = starting.await??;
    let all = acknowledged.runs.len();
    cluster.sluice(&["schedules", "disable", "clock"])?;
    check::until_ended(&cluster, Duration::from_secs(CALM_S)).await.context("runs did not end")?;
    let took = begun.elapsed();
    answering.abort();
    watching.abort();
    if let Err(error) = watching.await
        && !error.is_cancelled()
    {
        anyhow::bail!("a budget was exceeded: {error}");
    }
    let answered = std::mem::take(&mut *answered.lock().expect("the lock is not poisoned"));
    let seen = check::everything(&api, &cluster, &acknowledged, &answered).await?;
    let mut times: Vec<Duration> =
        fates.iter().flat_map(|fate: &FaultResults| fate.times.clone()).collect();
    times.sort_unstable();
    let p99_s = times.get(times.len().saturating_sub(1) * 99 / 100).map(Duration::as_secs_f64);
    let bound_s = Duration::from_millis(options.lease_ms + 2000).as_secs_f64();
    let p99_s = p99_s.unwrap_or_default();
    anyhow::ensure!(p99_s < bound_s, "recovery took {p99_s:.2} s, more than {bound_s:.2} s");
    let (runs, took_s) = (seen.runs, took.as_secs_f64());
    let line = format!("{all} runs, {runs} with child runs: all ended, {took_s:.1} s");
    writeln!(std::io::stdout(), "{line}")?;
    Ok(json!({
        "bench": "cluster",
        "nodes": options.nodes,
        "runs": seen.runs,
        "completed": seen.completed,
        "failed": seen.failed,
        "events": seen.events,
        "followed": acknowledged.ends.len(),
        "approved": answered.len(),
        "slots": seen.slots,
        "steps_done": seen.steps,
        "spent_cents": seen.spent_cents,
        "taken_over": times.len(),
        "take_over_p99_s": crate::fixture::brief(p99_s),
        "took_s": crate::fixture::brief(took.as_secs_f64()),
    }))
}
