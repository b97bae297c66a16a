//! The server over loopback: runs, starts, live streams, overload.
//!
//! Clients and server share this process and its cores, so each figure is compared with a
//! bare counterpart under the same clients: a chain without HTTP, a handler that does one
//! grouped commit, a broadcast of the same frames.

mod bare;
mod client;
mod flood;
mod streams;

use crate::chain::round;
use crate::fixture::{BenchEngine, StoreOptions, brief, chain, sealer, stored};
use crate::governed::{MOCK, rows};
use anyhow::Context as _;
use clap::Args;
use client::{Client, post};
use serde_json::{Value, json};
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::id::RunId;
use sluice_core::port::ledger::Change;
use sluice_core::port::store::NodeId;
use sluice_engine::config::Config;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::api;
use sluice_server::api::router::Router;
use sluice_server::app::{App, Settings};
use sluice_server::auth::identities::{hash, row};
use sluice_server::capacity::Shares;
use sluice_server::organisation::Organisation;
use sluice_server::service::{RowOrigin, Service};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Token of all clients.
pub(crate) const TOKEN: &str = "slk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// Timeout of a measurement.
const PATIENCE_S: u64 = 120;

#[derive(Args)]
pub(crate) struct Options {
    /// Runs of ten steps in all
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Starts in all
    #[arg(long, default_value_t = 6000)]
    starts: usize,
    /// Concurrent connections
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Rounds in which the compared servers alternate
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Readers of live streams
    #[arg(long, default_value_t = 2000)]
    readers: usize,
    /// Live runs that they read
    #[arg(long, default_value_t = 20)]
    live: usize,
    /// Measure one part only: runs, starts, streams or flood
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    place: StoreOptions,
}

/// A server in this process.
pub(crate) struct Served {
    pub(crate) plant: BenchEngine,
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
}

/// A workflow that completes, one that waits for an approval, and one that streams.
fn documents() -> Vec<Row> {
    let workflow = |name: &str, text: String| Row {
        kind: Kind::Workflow,
        name: format!("{name}@1"),
        body: json!({"format": "lobsterx", "text": text}),
    };
    let parked = "name: parked\nsteps:\n  - {id: ask, approval: required}\n".to_owned();
    let live = "name: live\nsteps:\n  - {id: talk, command: talk}\n".to_owned();
    vec![workflow("chain", chain(10)), workflow("parked", parked), workflow("live", live)]
}

/// Serves an engine.
pub(crate) async fn serve(plant: BenchEngine, settings: Settings) -> anyhow::Result<Served> {
    let token = Token {
        principal: "bench".to_owned(),
        sha256: hash(TOKEN),
        roles: vec!["admin".to_owned()],
        scopes: None,
        groups: Vec::new(),
        parent: None,
        session: false,
        created_at_ms: 0,
        expires_at_ms: None,
    };
    let mut put = documents();
    put.push(row("tok_bench", &token));
    let (node, entries) = (NodeId(1), Vec::new());
    let change = Change { expect: None, put, remove: Vec::new(), node, entries };
    plant.store.change(change).await?;
    let app = App::new(settings, Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    let (store, engine) = (Arc::clone(&plant.store), Arc::clone(&plant.engine));
    let (origin, secrets) = (RowOrigin::Server, Keyring::default());
    let service = Service { store, engine, workspaces: None, origin, secrets };
    app.add(Organisation::open("default", service).await?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new(app.clone(), api::routes());
    tokio::spawn(sluice_server::serve::serve(app.clone(), router, listener));
    Ok(Served { plant, app, address })
}

/// Limits that do not affect a measurement.
pub(crate) fn wide() -> Settings {
    Settings {
        rate_per_second: 1_000_000,
        rate_burst: 1_000_000,
        connections: 10_000,
        in_flight: 10_000,
        streams: 10_000,
        shares: Shares { token: 100, organisation: 100, strangers: 100 },
        ..Settings::default()
    }
}

async fn governed(options: &Options, mock: &str) -> anyhow::Result<BenchEngine> {
    BenchEngine::governed(&options.place, mock, rows(), Config::default(), Some(sealer())).await
}

/// The runtime of the clients: in use, they are other processes than the server and take
/// none of its threads.
fn clients() -> &'static Runtime {
    static CLIENTS: LazyLock<Runtime> = LazyLock::new(|| {
        let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        clients.expect("a benchmark can start a thread")
    });
    &CLIENTS
}

/// Repeats a request over some connections.
async fn hammer(
    address: SocketAddr,
    request: &Arc<Vec<u8>>,
    (times, concurrency): (usize, usize),
    expect: u16,
) -> anyhow::Result<Duration> {
    let left = Arc::new(AtomicUsize::new(times));
    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..concurrency {
        let (request, left) = (Arc::clone(request), Arc::clone(&left));
        workers.push(clients().spawn(async move {
            let mut client = Client::open(address).await?;
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                let (status, body) = client.send(&request).await?;
                anyhow::ensure!(status == expect, "{status}: {}", String::from_utf8_lossy(&body));
            }
            anyhow::Ok(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    Ok(begun.elapsed())
}

/// Starts runs over some connections; each waits for the end of its run before it
/// starts the next, as the chain without HTTP does.
async fn started(
    served: &Arc<Served>,
    request: &Arc<Vec<u8>>,
    runs: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let left = Arc::new(AtomicUsize::new(runs));
    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..concurrency {
        let (served, request, left) = (Arc::clone(served), Arc::clone(request), Arc::clone(&left));
        workers.push(clients().spawn(async move {
            let mut client = Client::open(served.address).await?;
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                let (status, body) = client.send(&request).await?;
                anyhow::ensure!(status == 202, "{status}: {}", String::from_utf8_lossy(&body));
                let answer: Value = serde_json::from_slice(&body)?;
                let run = answer["data"]["run_id"].as_str().and_then(RunId::parse);
                served.plant.ended(run.context("no run was started")?).await?;
            }
            anyhow::Ok(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    Ok(begun.elapsed())
}

/// Complete runs through HTTP, compared with the same chain without it.
async fn runs(options: &Options) -> anyhow::Result<Value> {
    let served = Arc::new(serve(governed(options, MOCK).await?, wide()).await?);
    let beside = Arc::new(governed(options, MOCK).await?);
    let stored = stored(&chain(10))?;
    let start = Arc::new(post("/api/v1/workflows/chain/runs", r#"{"default_agent": "mock"}"#));
    let (mut http, mut plain) = (Duration::ZERO, Duration::ZERO);
    let per_round = options.runs.div_ceil(options.rounds);
    started(&served, &start, options.concurrency, options.concurrency).await?;
    round(&beside, &stored, options.concurrency, options.concurrency).await?;
    for _ in 0..options.rounds {
        http += started(&served, &start, per_round, options.concurrency).await?;
        plain += round(&beside, &stored, per_round, options.concurrency).await?.took;
    }
    served.app.stop().cancel();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let all = (per_round * options.rounds) as f64;
    Ok(json!({
        "runs_per_s": brief(all / http.as_secs_f64()),
        "governed_chain_runs_per_s": brief(all / plain.as_secs_f64()),
        "of_governed_chain": brief(plain.as_secs_f64() / http.as_secs_f64()),
    }))
}

/// Durable starts, compared with a handler that does one grouped commit.
async fn starts(options: &Options) -> anyhow::Result<Value> {
    let served = serve(governed(options, MOCK).await?, wide()).await?;
    let bare = bare::commits().await?;
    let start = Arc::new(post("/api/v1/workflows/parked/runs", "{}"));
    let row = Arc::new(post("/row", "{}"));
    let per_round = options.starts.div_ceil(options.rounds);
    let warm = (options.concurrency, options.concurrency);
    hammer(served.address, &start, warm, 202).await?;
    hammer(bare, &row, warm, 202).await?;
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..options.rounds {
        ours += hammer(served.address, &start, (per_round, options.concurrency), 202).await?;
        theirs += hammer(bare, &row, (per_round, options.concurrency), 202).await?;
    }
    served.app.stop().cancel();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let all = (per_round * options.rounds) as f64;
    Ok(json!({
        "starts_per_s": brief(all / ours.as_secs_f64()),
        "bare_commits_per_s": brief(all / theirs.as_secs_f64()),
        "of_bare_commits": brief(theirs.as_secs_f64() / ours.as_secs_f64()),
    }))
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let wanted = |part: &str| options.only.as_deref().is_none_or(|only| only == part);
    let mut figures = json!({"bench": "http"});
    if wanted("runs") {
        figures["runs"] = runs(options).await?;
    }
    if wanted("starts") {
        figures["starts"] = starts(options).await?;
    }
    if wanted("streams") {
        figures["streams"] = streams::run(options).await?;
    }
    if wanted("flood") {
        figures["flood"] = flood::run(options).await?;
    }
    Ok(figures)
}
