//! Overload: the server refuses requests, keeps its limits, and recovers.

use super::client::{Client, get, post};
use super::streams::rss_mib;
use super::{MOCK, Options, governed, hammer, serve};
use crate::fixture::brief;
use serde_json::{Value, json};
use sluice_server::app::Settings;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Connections that send without pause.
const CONNECTIONS: usize = 256;
/// Duration of the overload.
const FLOOD_MS: u64 = 4000;

pub(super) async fn run(options: &Options) -> anyhow::Result<Value> {
    let settings = Settings {
        rate_per_second: 2000,
        rate_burst: 500,
        in_flight: 32,
        connections: 10_000,
        ..Settings::default()
    };
    let served = serve(governed(options, MOCK).await?, settings).await?;
    let start = Arc::new(post("/api/v1/workflows/parked/runs", "{}"));
    let rss_before = rss_mib();
    let answers: Arc<Mutex<BTreeMap<u16, u64>>> = Arc::default();
    let until = Instant::now() + Duration::from_millis(FLOOD_MS);
    let mut workers = Vec::new();
    for _ in 0..CONNECTIONS {
        let (start, answers, address) = (Arc::clone(&start), Arc::clone(&answers), served.address);
        workers.push(tokio::spawn(async move {
            let mut client = Client::open(address).await?;
            while Instant::now() < until {
                let (status, _) = client.send(&start).await?;
                *answers.lock().expect("the lock is not poisoned").entry(status).or_default() += 1;
            }
            anyhow::Ok(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    let rss_after = rss_mib();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // At an ordinary rate requests succeed again.
    let calm = Arc::new(get("/api/v1/runs?limit=1"));
    hammer(served.address, &calm, (200, 4), 200).await?;
    let answers = answers.lock().expect("the lock is not poisoned").clone();
    let other = answers.keys().find(|status| ![202, 429, 503].contains(*status));
    anyhow::ensure!(other.is_none(), "unexpected status: {answers:?}");
    let refused: u64 = answers.iter().filter(|(status, _)| **status != 202).map(|(_, n)| n).sum();
    anyhow::ensure!(refused > 0, "no request was refused: {answers:?}");
    served.app.stop().cancel();
    Ok(json!({
        "answers": answers.iter().map(|(status, n)| (status.to_string(), (*n).into())).collect::<serde_json::Map<_, _>>(),
        "recovered": true,
        "rss_mib": {"before": brief(rss_before), "after": brief(rss_after)},
    }))
}
