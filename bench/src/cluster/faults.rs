//! What goes wrong, one thing after the other.

use super::node::Crew;
use super::{Dice, Options, told};
use anyhow::Context as _;
use sluice_store::postgres::server::Proxy;
use std::time::{Duration, Instant};

/// How often one looks whether runs were taken over, in milliseconds.
const LOOK_MS: u64 = 50;
/// How long the database is away.
const AWAY_MS: u64 = 1000;
/// How long nothing goes wrong after something did.
const CALM_MS: u64 = 2000;

/// What is done to whom.
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

/// What became of it.
pub(super) struct Fate {
    /// When each run of a node that was killed or held still had another owner.
    pub(super) times: Vec<Duration>,
}

/// About how long everything takes.
pub(super) fn lasts(options: &Options) -> Duration {
    let kills = options.kills as u64 * (options.apart_ms + options.lease_ms);
    let pauses = (options.pauses + options.parts) as u64 * (2 * options.lease_ms + CALM_MS);
    let others = (options.restarts + options.cuts + options.stops) as u64 * (CALM_MS + AWAY_MS);
    Duration::from_millis((kills + pauses + others).max(1000))
}

/// Lets everything happen, in an order that chance gives.
pub(super) async fn play(
    crew: &Crew,
    options: &Options,
    begun: Instant,
) -> anyhow::Result<Vec<Fate>> {
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
        let at = dice.below(crew.len());
        if fault == Fault::Kill {
            let since = killed.map_or(Duration::MAX, |killed| killed.elapsed());
            let apart = Duration::from_millis(options.apart_ms);
            tokio::time::sleep(apart.saturating_sub(since)).await;
            killed = Some(Instant::now());
        }
        let when = begun.elapsed();
        let (what, times) = tokio::task::block_in_place(|| inflict(crew, options, fault, at))?;
        tell(when, &what, &times)?;
        fates.push(Fate { times });
        tokio::time::sleep(Duration::from_millis(CALM_MS / 2 + dice.below(1000) as u64)).await;
    }
    Ok(fates)
}

fn tell(when: Duration, what: &str, times: &[Duration]) -> std::io::Result<()> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let second = |at: usize| sorted.get(at).map(|time| format!("{:.2}", time.as_secs_f64()));
    let p50 = second(sorted.len() / 2).unwrap_or_default();
    let max = second(sorted.len().saturating_sub(1)).unwrap_or_default();
    let taken = if times.is_empty() { String::new() } else { times.len().to_string() };
    told([&format!("{:.1}", when.as_secs_f64()), what, &taken, &p50, &max])
}

fn inflict(
    crew: &Crew,
    options: &Options,
    fault: Fault,
    at: usize,
) -> anyhow::Result<(String, Vec<Duration>)> {
    let patience = Duration::from_millis(options.lease_ms * 2 + 10_000);
    match fault {
        Fault::Kill => {
            let id = crew.kill(at)?;
            let times = taken_over(crew, &id, patience)?;
            crew.revive(at)?;
            Ok((format!("node {at} is killed with -9, and starts again"), times))
        }
        Fault::Pause => {
            let id = crew.signal(at, "-STOP")?;
            let times = taken_over(crew, &id, patience)?;
            crew.signal(at, "-CONT")?;
            Ok((format!("node {at} stands still past its lease, and wakes"), times))
        }
        Fault::Stop => {
            let id = crew.stop(at)?;
            let times = taken_over(crew, &id, patience)?;
            crew.revive(at)?;
            Ok((format!("node {at} is told to stop, and starts again"), times))
        }
        Fault::Restart => {
            let mut setup = crew.setup.lock().expect("nobody panics with it");
            setup.server.kill();
            std::thread::sleep(Duration::from_millis(AWAY_MS));
            setup.server.restart().map_err(|why| anyhow::anyhow!(why))?;
            Ok(("the database is killed with -9, and starts again".to_owned(), Vec::new()))
        }
        Fault::Cut => {
            let setup = crew.setup.lock().expect("nobody panics with it");
            let cut: usize = setup.proxies.iter().flatten().map(Proxy::cut).sum();
            Ok((format!("{cut} connections to the database are cut"), Vec::new()))
        }
        Fault::Part => {
            let id = crew.id(at)?;
            weather(crew, at, Proxy::part);
            let times = taken_over(crew, &id, patience)?;
            weather(crew, at, Proxy::go_on);
            Ok((format!("node {at} is cut off past its lease, and is back"), times))
        }
        Fault::Failover => {
            let mut setup = crew.setup.lock().expect("nobody panics with it");
            let replica = setup.replica.take().context("there is a replica")?;
            let sql = "SELECT count(*) FROM run WHERE ended_at IS NULL";
            let in_flight = setup.server.psql(sql);
            setup.server.kill();
            replica.promote().map_err(anyhow::Error::msg)?;
            setup.server = replica;
            Ok((
                format!("database killed, replica promoted, {in_flight} runs going on"),
                Vec::new(),
            ))
        }
    }
}

/// Does something with a node's ways to the database.
fn weather(crew: &Crew, at: usize, what: fn(&Proxy)) {
    crew.setup.lock().expect("nobody panics with it").proxies[at].iter().for_each(what);
}

/// Waits until nothing is a node's any more, and answers when each run was taken.
fn taken_over(crew: &Crew, id: &str, patience: Duration) -> anyhow::Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut left = crew.owned(id);
    let mut times = Vec::new();
    while left > 0 {
        anyhow::ensure!(begun.elapsed() < patience, "{left} runs of {id} were not taken over");
        std::thread::sleep(Duration::from_millis(LOOK_MS));
        let now = crew.owned(id);
        times.extend(std::iter::repeat_n(begun.elapsed(), left.saturating_sub(now)));
        left = now;
    }
    Ok(times)
}
