//! Many readers of live runs: latency from the append to the client, compared with a bare
//! broadcast of the same frames at the same rate.

use super::client::{Client, get, post};
use super::{Options, PATIENCE_S, bare, serve, wide};
use crate::fixture::{BenchEngine, brief, sealer};
use serde_json::{Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_core::id::RunId;
use sluice_engine::config::Config;
use sluice_engine::observe::{Observer, Turned};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Barrier, broadcast};

/// Parts of each answer, and the interval between them: five seconds in all.
const PARTS: usize = 50;
const APART_MS: u64 = 100;
/// Delay of the first part, so that all readers are connected.
const BEFORE_MS: u64 = 8000;

/// When each event became durable.
#[derive(Default)]
struct Clock(Mutex<BTreeMap<(RunId, u64), Instant>>);

impl Observer for Clock {
    fn turned(&self, turned: &Turned<'_>) {
        let now = Instant::now();
        let mut seen = self.0.lock().expect("the lock is not poisoned");
        for id in turned.first..=turned.run.version {
            seen.insert((turned.run.id, id), now);
        }
    }
}

/// What a reader received: event ids, arrival times, and frame sizes.
type Arrivals = Vec<(u64, Instant, usize)>;

pub(super) async fn run(options: &Options) -> anyhow::Result<Value> {
    let clock = Arc::new(Clock::default());
    let words = (0..PARTS).map(|_| "\"some words of an answer \"").collect::<Vec<_>>().join(", ");
    let mock =
        format!("talk: {{delay_ms: {BEFORE_MS}, chunks: [{words}], chunk_delay_ms: {APART_MS}}}");
    let script = Script::parse(&mock).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
    let adapter = Arc::new(MockAdapter::new(script));
    let observer: Arc<dyn Observer> = Arc::clone(&clock) as Arc<dyn Observer>;
    let plant =
        BenchEngine::observed(&options.place, adapter, Config::default(), Some(sealer()), observer);
    let served = serve(plant.await?, wide()).await?;
    let start = post("/api/v1/workflows/live/runs", r#"{"default_agent": "mock"}"#);
    let mut client = Client::open(served.address).await?;
    let mut runs = Vec::new();
    for _ in 0..options.live {
        let (_, body) = client.send(&start).await?;
        let answer: Value = serde_json::from_slice(&body)?;
        let text = answer["data"]["run_id"].as_str().unwrap_or_default().to_owned();
        let id = RunId::parse(&text).ok_or_else(|| anyhow::anyhow!("no run: {answer}"))?;
        runs.push((id, text));
    }
    let rss_before = rss_mib();
    let paths = (0..options.readers).map(|at| {
        let (_, text) = &runs[at % runs.len()];
        format!("/api/v1/runs/{text}/events")
    });
    let arrivals = read_all(served.address, paths.collect()).await?;
    let rss_after = rss_mib();
    served.app.stop().cancel();
    let appended = clock.0.lock().expect("the lock is not poisoned").clone();
    let mut ours = Vec::new();
    let mut frames: BTreeMap<usize, Vec<(Instant, usize)>> = BTreeMap::new();
    for (at, reader) in arrivals.iter().enumerate() {
        let (run, _) = runs[at % runs.len()];
        for (id, when, bytes) in reader {
            let Some(appended) = appended.get(&(run, *id)) else { continue };
            // Events from before the reader connected are not measured.
            if reader.first().is_some_and(|first| first.1 > *appended) {
                continue;
            }
            ours.push(when.saturating_duration_since(*appended));
            if at < runs.len() {
                frames.entry(at).or_default().push((*appended, *bytes));
            }
        }
    }
    let events = ours.len();
    let theirs = broadcasted(options, &frames).await?;
    let (p50, p99) = (quantile(&mut ours, 0.5), quantile(&mut ours, 0.99));
    let mut theirs = theirs;
    let (bare50, bare99) = (quantile(&mut theirs, 0.5), quantile(&mut theirs, 0.99));
    Ok(json!({
        "readers": options.readers, "events_read": events, "bare_events_read": theirs.len(),
        "p50_ms": brief(p50), "p99_ms": brief(p99),
        "bare_p50_ms": brief(bare50), "bare_p99_ms": brief(bare99),
        "p99_to_bare": brief(p99 / bare99),
        "rss_mib": {"before": brief(rss_before), "with_readers": brief(rss_after)},
    }))
}

/// Reads streams to their ends, one connection each.
async fn read_all(address: SocketAddr, paths: Vec<String>) -> anyhow::Result<Vec<Arrivals>> {
    let ready = Arc::new(Barrier::new(paths.len()));
    let mut readers = Vec::new();
    for path in paths {
        let ready = Arc::clone(&ready);
        readers.push(tokio::spawn(async move {
            let mut client = Client::open(address).await?;
            let status = client.follow(&get(&path)).await?;
            anyhow::ensure!(status == 200, "{status} for {path}");
            ready.wait().await;
            let (mut line, mut arrivals) = (String::new(), Arrivals::new());
            let (mut id, mut bytes) = (0, 0);
            loop {
                let read = client.line(&mut line).await?;
                bytes += read;
                if let Some(said) = line.strip_prefix("id: ") {
                    id = said.trim().parse()?;
                } else if line.starts_with("data: ") {
                    arrivals.push((id, Instant::now(), bytes));
                    bytes = 0;
                    if line.contains("\"type\":\"run.completed\"") {
                        return anyhow::Ok(arrivals);
                    }
                }
                anyhow::ensure!(read > 0, "the stream broke off");
            }
        }));
    }
    let mut all = Vec::new();
    for reader in readers {
        let patience = Duration::from_secs(PATIENCE_S);
        all.push(tokio::time::timeout(patience, reader).await???);
    }
    Ok(all)
}

/// Broadcasts the same frames at the same times to as many readers.
async fn broadcasted(
    options: &Options,
    frames: &BTreeMap<usize, Vec<(Instant, usize)>>,
) -> anyhow::Result<Vec<Duration>> {
    let (address, senders) = bare::broadcasts(options.live).await?;
    let paths = (0..options.readers).map(|at| format!("/stream/{}", at % options.live));
    let reading = tokio::spawn(read_all(address, paths.collect()));
    let until = Instant::now() + Duration::from_secs(PATIENCE_S);
    while senders.iter().map(broadcast::Sender::receiver_count).sum::<usize>() < options.readers {
        anyhow::ensure!(Instant::now() < until, "the readers do not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sent: Arc<Mutex<BTreeMap<(usize, u64), Instant>>> = Arc::default();
    let first = frames.values().flatten().map(|(at, _)| *at).min();
    let Some(first) = first else { anyhow::bail!("nothing was read live") };
    let begun = Instant::now();
    let mut channels = Vec::new();
    for (at, frames) in frames.clone() {
        let (sender, sent) = (senders[at].clone(), Arc::clone(&sent));
        channels.push(tokio::spawn(async move {
            let last = frames.len();
            for (number, (when, bytes)) in (1..).zip(frames) {
                tokio::time::sleep_until((begun + (when - first)).into()).await;
                let kind = if number == last { "run.completed" } else { "node.stream.delta" };
                let fill = "x".repeat(bytes.saturating_sub(80));
                let data = format!("{{\"type\":\"{kind}\",\"fill\":\"{fill}\"}}");
                let frame = format!("id: {number}\nevent: {kind}\ndata: {data}\n\n");
                let number = u64::try_from(number).unwrap_or(u64::MAX);
                let now = Instant::now();
                sent.lock().expect("the lock is not poisoned").insert((at, number), now);
                // Readers may have disconnected.
                let _ = sender.send(frame.into());
            }
        }));
    }
    for channel in channels {
        channel.await?;
    }
    let arrivals = reading.await??;
    let sent = sent.lock().expect("the lock is not poisoned").clone();
    let mut took = Vec::new();
    for (at, reader) in arrivals.iter().enumerate() {
        for (id, when, _) in reader {
            if let Some(sent) = sent.get(&(at % options.live, *id)) {
                took.push(when.saturating_duration_since(*sent));
            }
        }
    }
    Ok(took)
}

fn quantile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a list"
    )]
    let at = (times.len().saturating_sub(1) as f64 * share) as usize;
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// Resident memory of this process.
pub(super) fn rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kib: f64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}
