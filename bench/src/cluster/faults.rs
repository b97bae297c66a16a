//! The faults, one after the other.

use super::node::Cluster;
use super::{Dice, Options, print_row};
use anyhow::Context as _;
use sluice_testing::postgres::Proxy;
use std::time::{Duration, Instant};

/// Poll interval while waiting for recovery, in milliseconds.
const LOOK_MS: u64 = 50;
/// How long the database is down.
const AWAY_MS: u64 = 1000;
/// Quiet time after each fault.
const CALM_MS: u64 = 2000;

/// A fault and its target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Restart,
    Cut,
    Pause,
    Stop,
    Part,
    Failover,
}

/// Result of all faults.
pub(super) struct FaultResults {
    /// Recovery time of each run of a node that was killed or paused.
    pub(super) times: Vec<Duration>,
}

/// Approximate duration of all faults.
pub(super) fn lasts(options: &Options) -> Duration {
    let kills = options.kills as u64 * (options.apart_ms + options.lease_ms);
    let pauses = (options.pauses + options.parts) as u64 * (2 * options.lease_ms + CALM_MS);
    let others = (options.restarts + options.cuts + options.stops) as u64 * (CALM_MS + AWAY_MS);
    Duration::from_millis((kills + pauses + others).max(1000))
}

/// Injects all faults in a random order.
pub(super) async fn play(
    cluster: &Cluster,
    options: &Options,
    begun: Instant,
) -> anyhow::Result<Vec<FaultResults>> {
    let mut dice = Dice::new(options.seed);
    let many = |fault, count| std::iter::repeat_n(fault, count);
    let mut faults: Vec<Fault> = many(Fault::Kill, options.kills)
        .chain(many(Fault::Restart, options.restarts))
        .chain(many(Fault::Cut, options.cuts))
        .chain(many(Fault::Pause, options.pauses))
        .chain(many(Fault::Stop, options.stops))
        .chain(many(Fault::Part, options.parts))
        .chain(many(Fault::Failover, options.failovers.min(1)))
        .collect();
    let mut fates = Vec::new();
    let mut killed = None::<Instant>;
    tokio::time::sleep(Duration::from_millis(CALM_MS)).await;
    while !faults.is_empty() {
        let fault = faults.swap_remove(dice.below(faults.len()));
        let at = dice.below(cluster.len());
        if fault == Fault::Kill {
            let since = killed.map_or(Duration::MAX, |killed| killed.elapsed());
            let apart = Duration::from_millis(options.apart_ms);
            tokio::time::sleep(apart.saturating_sub(since)).await;
            killed = Some(Instant::now());
        }
        let when = begun.elapsed();
        let (what, times) = tokio::task::block_in_place(|| inflict(cluster, options, fault, at))?;
        print_fault(when, &what, &times)?;
        fates.push(FaultResults { times });
        tokio::time::sleep(Duration::from_millis(CALM_MS / 2 + dice.below(1000) as u64)).await;
    }
    Ok(fates)
}

fn print_fault(when: Duration, what: &str, times: &[Duration]) -> std::io::Result<()> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let second = |at: usize| sorted.get(at).map(|time| format!("{:.2}", time.as_secs_f64()));
    let p50 = second(sorted.len() / 2).unwrap_or_default();
    let max = second(sorted.len().saturating_sub(1)).unwrap_or_default();
    let taken = if times.is_empty() { String::new() } else { times.len().to_string() };
    print_row([&format!("{:.1}", when.as_secs_f64()), what, &taken, &p50, &max])
}

fn inflict(
    cluster: &Cluster,
    options: &Options,
    fault: Fault,
    at: usize,
) -> anyhow::Result<(String, Vec<Duration>)> {
    let patience = Duration::from_millis(options.lease_ms * 2 + 10_000);
    match fault {
        Fault::Kill => {
            let id = cluster.kill(at)?;
            let times = taken_over(cluster, &id, patience)?;
            cluster.revive(at)?;
            Ok((format!("node {at} is killed with -9, and starts again"), times))
        }
        Fault::Pause => {
            let id = cluster.signal(at, "-STOP")?;
            let times = taken_over(cluster, &id, patience)?;
            cluster.signal(at, "-CONT")?;
            Ok((format!("node {at} is paused past its lease, and resumes"), times))
        }
        Fault::Stop => {
            let id = cluster.stop(at)?;
            let times = taken_over(cluster, &id, patience)?;
            cluster.revive(at)?;
            Ok((format!("node {at} is stopped gracefully, and starts again"), times))
        }
        Fault::Restart => {
            let mut setup = cluster.setup.lock().expect("the lock is not poisoned");
            setup.server.kill();
            std::thread::sleep(Duration::from_millis(AWAY_MS));
            setup.server.restart().map_err(|why| anyhow::anyhow!(why))?;
            Ok(("the database is killed with -9, and starts again".to_owned(), Vec::new()))
        }
        Fault::Cut => {
            let setup = cluster.setup.lock().expect("the lock is not poisoned");
            let cut: usize = setup.proxies.iter().flatten().map(Proxy::cut).sum();
            Ok((format!("{cut} connections to the database are cut"), Vec::new()))
        }
        Fault::Part => {
            let id = cluster.id(at)?;
            with_proxies(cluster, at, Proxy::part);
            let times = taken_over(cluster, &id, patience)?;
            with_proxies(cluster, at, Proxy::go_on);
            Ok((format!("node {at} is cut off past its lease, and reconnects"), times))
        }
        Fault::Failover => {
            let mut setup = cluster.setup.lock().expect("the lock is not poisoned");
            let replica = setup.replica.take().context("there is a replica")?;
            let sql = "SELECT count(*) FROM run WHERE ended_at IS NULL";
            let in_flight = setup.server.psql(sql);
            setup.server.kill();
            replica.promote().map_err(anyhow::Error::msg)?;
            setup.server = replica;
            Ok((
                format!("database killed, replica promoted, {in_flight} runs in flight"),
                Vec::new(),
            ))
        }
    }
}

/// Changes a node's connections to the database.
fn with_proxies(cluster: &Cluster, at: usize, what: fn(&Proxy)) {
    cluster.setup.lock().expect("the lock is not poisoned").proxies[at].iter().for_each(what);
}

/// Waits until a node owns no run; returns when each run was recovered.
fn taken_over(cluster: &Cluster, id: &str, patience: Duration) -> anyhow::Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut left = cluster.owned(id);
    let mut times = Vec::new();
    while left > 0 {
        anyhow::ensure!(begun.elapsed() < patience, "{left} runs of {id} were not recovered");
        std::thread::sleep(Duration::from_millis(LOOK_MS));
        let now = cluster.owned(id);
        times.extend(std::iter::repeat_n(begun.elapsed(), left.saturating_sub(now)));
        left = now;
    }
    Ok(times)
}
