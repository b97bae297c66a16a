//! Many concurrent streams in one bridge, which is a separate process.

use super::provider::{Provider, read};
use crate::fixture::brief;
use anyhow::Context as _;
use serde_json::{Value, json};
use sluice_bridge::bridge_server::{BridgeServer, Settings};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::secret::Secret;
use sluice_engine::world::SystemClock;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Token of the gateway.
const TOKEN: &str = "gwt_bench";
/// Timeout of the measurement.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between the chunks of an answer.
const PAUSE: Duration = Duration::from_millis(1500);

/// Runs the bridge: prints its address, and serves until it is killed.
pub(super) async fn be(named: &[String]) -> anyhow::Result<Value> {
    let [spool, provider, server] = named else { anyhow::bail!("three are named") };
    let (provider, server): (SocketAddr, SocketAddr) = (provider.parse()?, server.parse()?);
    let adapter = super::adapter("openai", provider)?;
    let allow = AllowList::parse([server.to_string().as_str()])?;
    let url = format!("http://{server}").parse().context("a server")?;
    let mut settings = Settings::new("here", Secret::new(TOKEN), PathBuf::from(spool), url);
    settings.running_max = 10_000;
    let adapters = BTreeMap::from([("openai".to_owned(), adapter)]);
    let outbound = Arc::new(Outbound::new(allow));
    let station = BridgeServer::open(settings, adapters, outbound, Arc::new(SystemClock)).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    {
        use std::io::Write as _;
        let mut out = std::io::stdout();
        writeln!(out, "{address}")?;
        out.flush()?;
    }
    station.serve(listener).await;
    Ok(json!({}))
}

/// The bridge process, killed on drop.
struct Bridge(Child);

impl Drop for Bridge {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Current and peak memory of a process, in MiB.
fn memory(pid: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = |name: &str| -> f64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let kib = line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// Accepts callbacks, and counts them.
async fn callbacks() -> anyhow::Result<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let count: Arc<AtomicUsize> = Arc::default();
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut stream = tokio::io::BufReader::new(stream);
                while let Ok(Some(request)) = read(&mut stream).await {
                    let text = String::from_utf8_lossy(&request);
                    if text.contains("\"status\":\"completed\"") {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                    let body = r#"{"received":true}"#;
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                         content-length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok((address, count))
}

pub(super) async fn run(streams: usize) -> anyhow::Result<Value> {
    let provider = Provider::slow("openai", PAUSE).await?;
    let (server, done) = callbacks().await?;
    let dir = tempfile::tempdir()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["adapter", "--be"])
        .arg(dir.path())
        .args([provider.address.to_string(), server.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("it has an output")?;
    let bridge = Bridge(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let address: SocketAddr = line.trim().parse().context("the bridge says where it listens")?;
    let before = memory(bridge.0.id()).0;
    let begun = Instant::now();
    let mut stream = tokio::io::BufReader::new(TcpStream::connect(address).await?);
    for number in 0..streams {
        let body = json!({
            "run_id": format!("run_{:032x}", number + 1), "step_id": "a", "dispatch_no": 1,
            "attempt": 1, "idempotency_key": format!("{number}"), "workflow_name": "bench",
            "provider": "openai", "agent": "model", "command": "Say something.", "model": "m",
            "timeout_ms": 100_000, "callback_url": format!("http://{server}/done"),
            "dispatch_token": "sld_bench",
        })
        .to_string();
        let head = format!(
            "POST /api/v2/dispatch HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(head.as_bytes()).await?;
        let answer = read(&mut stream).await?.context("the bridge went away")?;
        let answer = String::from_utf8_lossy(&answer);
        anyhow::ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }
    let accepted = begun.elapsed();
    let until = Instant::now() + PATIENCE;
    while done.load(Ordering::Relaxed) < streams {
        let so_far = done.load(Ordering::Relaxed);
        anyhow::ensure!(Instant::now() < until, "only {so_far} of {streams} came back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (_, most) = memory(bridge.0.id());
    Ok(json!({
        "streams": streams,
        "accepted_ms": brief(accepted.as_secs_f64() * 1000.0),
        "all_back_ms": brief(begun.elapsed().as_secs_f64() * 1000.0),
        "rss_mib_before": brief(before),
        "rss_mib_most": brief(most),
    }))
}
