//! `kill -9` of a bridge and of the engine, at any moment of many dispatches: no
//! result is lost, none counts twice, every cost is settled once.
//!
//! `DISPATCHES=200 cargo test -p sluice --test it bridge_kill -- --nocapture` goes on longer.

use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long everything may take to come to its end.
const PATIENCE: Duration = Duration::from_secs(180);
/// Runs that are started between two kills.
const BATCH: usize = 5;
/// What a dispatch costs, and what is reserved for it, in cents.
const COST_CENTS: usize = 1;
const RESERVED_CENTS: usize = 5;

/// How often each dispatch reached the worker.
type Done = Arc<Mutex<BTreeMap<(String, String, u64), usize>>>;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Reads a request: its head, and its body.
fn read(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The worker: takes a moment, and reports its cost.
fn worker() -> (SocketAddr, Done) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let done = Done::default();
    let kept = Arc::clone(&done);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                let Some((_, body)) = read(&stream) else { return };
                let said: Value = serde_json::from_slice(&body).unwrap();
                let text = |key: &str| said[key].as_str().unwrap().to_owned();
                let key = (text("run_id"), text("step_id"), said["dispatch_no"].as_u64().unwrap());
                let wait_ms = u64::from(body.iter().fold(7u8, |sum, byte| sum.wrapping_add(*byte)));
                *kept.lock().unwrap().entry(key).or_default() += 1;
                std::thread::sleep(Duration::from_millis(wait_ms / 4));
                let answer = json!({"status": "completed", "stdout": "done", "cost": 0.01});
                let answer = answer.to_string();
                // The client may have been killed.
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n{answer}",
                    answer.len()
                );
            });
        }
    });
    (at, done)
}

/// A free port.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    /// Starts a command, and waits for its first line.
    fn start(world: &World, args: &[&str]) -> Process {
        let mut command = world.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("http://"), "{args:?}: {line}");
        Process(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An engine, a bridge, and a worker.
struct Scene {
    world: World,
    server: u16,
    bridge: u16,
    done: Done,
}

impl Scene {
    fn new(capabilities: &str) -> Scene {
        let (worker, done) = worker();
        let (server, bridge) = (free_port(), free_port());
        let world = World::new();
        let token = world.path().join("token");
        let token = token.display();
        let setup = format!(
            "gateways:\n  far: {{provider: work, url: 'http://127.0.0.1:{bridge}', \
             key: 'file:{token}', capabilities: [{capabilities}]}}\n\
             agents:\n  worker: {{gateway: far}}\n\
             budgets:\n  all: {{scope: global, period: total, amount_cents: 100000}}\n"
        );
        let file = format!(
            "gateway: far\nserver: http://127.0.0.1:{server}\ntoken: 'file:{token}'\n\
             spool: spool\nadapters:\n  work: {{provider: http, base_url: 'http://{worker}/'}}\n"
        );
        let world = world
            .file("setup.yaml", &setup)
            .file("bridge.yaml", &file)
            .file("sluice.toml", "[outbound]\nallow = [\"127.0.0.1\"]\n");
        assert!(world.told(&["apply", "-f", "setup.yaml"]).contains("gateway far"));
        let made = world.output(&["gateways", "token", "far", "--json"]);
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        std::fs::write(world.path().join("token"), made["token"].as_str().unwrap()).unwrap();
        Scene { world, server, bridge, done }
    }

    fn engine(&self) -> Process {
        let listen = format!("127.0.0.1:{}", self.server);
        Process::start(&self.world, &["serve", "--listen", &listen])
    }

    fn station(&self) -> Process {
        let listen = format!("127.0.0.1:{}", self.bridge);
        Process::start(&self.world, &["bridge", "bridge.yaml", "--listen", &listen])
    }

    /// Asks the server; none if it is not there.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        let token = std::fs::read_to_string(self.world.path().join(".sluice/admin.token")).ok()?;
        let mut stream = TcpStream::connect(("127.0.0.1", self.server)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let media = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{media}\
             authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let json = answer.split_once("\r\n\r\n")?.1;
        Some(serde_json::from_str::<Value>(json).ok()?["data"].clone())
    }

    /// Starts a run; none if the start was not confirmed.
    fn start(&self) -> Option<String> {
        let document = "name: far\nsteps:\n  - {id: work, agent: worker, command: go, timeout: 100s, \
                        max_cost_cents: 5, retry: {attempts: 30, backoff_ms: 20, \
                        max_backoff_ms: 50, retry_on: [provider_error]}}\n";
        let started = self.ask("POST", "/api/v1/runs", Some(&json!({"document": document})))?;
        Some(started["run_id"].as_str()?.to_owned())
    }

    /// Waits until a run has ended, and answers with how.
    fn ended(&self, run: &str) -> Value {
        let begun = Instant::now();
        loop {
            let state = self.ask("GET", &format!("/api/v1/runs/{run}/state"), None);
            let state = state.unwrap_or_default();
            if state["is_running"] == false && !state["completed_at"].is_null() {
                return state;
            }
            assert!(begun.elapsed() < PATIENCE, "{run} does not end: {state}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Holds every run against its journal, and all together against the money.
    fn check(&self, told: &[String]) -> (usize, usize) {
        let (mut dispatches, mut unknown) = (0, 0);
        // Some runs may have started without a confirmation.
        let listed = self.ask("GET", "/api/v1/runs?limit=500", None).unwrap();
        let listed = listed.as_array().unwrap().iter();
        let runs: Vec<String> =
            listed.map(|row| row["run_id"].as_str().unwrap().to_owned()).collect();
        assert!(told.iter().all(|run| runs.contains(run)), "what was told is there");
        for run in &runs {
            let state = self.ended(run);
            assert_eq!(state["status"], "completed", "{state}");
            let journal = self.ask("GET", &format!("/api/v1/runs/{run}/journal?limit=500"), None);
            let journal = journal.unwrap();
            let mut completed = 0;
            for event in journal.as_array().unwrap() {
                match event["type"].as_str().unwrap_or_default() {
                    "node.completed" => completed += 1,
                    "node.started" => dispatches += 1,
                    "node.retried" if event["payload"]["costUnknown"] == true => unknown += 1,
                    "node.retried" => assert!(event["payload"]["cost"].is_null(), "{event}"),
                    _ => {}
                }
            }
            assert_eq!(completed, 1, "a result counts once: {journal}");
            assert_eq!(state["cost"], json!(0.01), "and is paid once: {state}");
        }
        let done = self.done.lock().unwrap();
        assert!(done.values().all(|times| *times == 1), "a dispatch is done once: {done:?}");
        let budgets = self.world.output(&["budgets", "list", "--json"]);
        let budgets: Value = serde_json::from_slice(&budgets.stdout).unwrap();
        let all = &budgets["data"][0];
        let cents = |field: &str| {
            let usd: f64 = all[field].as_str().unwrap().parse().unwrap();
            (usd * 100.0).round()
        };
        #[expect(clippy::cast_precision_loss, reason = "a few hundred cents")]
        let expected = ((runs.len() * COST_CENTS) as f64, (unknown * RESERVED_CENTS) as f64);
        assert_eq!((cents("spent"), cents("reserved")), expected, "{all}");
        (dispatches, unknown)
    }
}

fn wanted() -> usize {
    std::env::var("DISPATCHES").ok().and_then(|count| count.parse().ok()).unwrap_or(30)
}

#[test]
fn a_bridge_killed_at_any_moment_loses_nothing() {
    for capabilities in ["", "sync"] {
        let scene = Scene::new(capabilities);
        let _engine = scene.engine();
        let mut bridge = scene.station();
        let (mut dice, mut runs, mut kills) = (Dice(3), Vec::new(), 0);
        while runs.len() < wanted() {
            runs.extend((0..BATCH).map(|_| scene.start().expect("the engine lives")));
            std::thread::sleep(Duration::from_millis(dice.below(90)));
            bridge.kill();
            kills += 1;
            bridge = scene.station();
        }
        let (dispatches, unknown) = scene.check(&runs);
        eprintln!(
            "[{capabilities}] {} runs, {dispatches} dispatches, {kills} kills of the bridge: \
             {unknown} died with it, each told once",
            runs.len()
        );
    }
}

#[test]
fn an_engine_killed_at_any_moment_loses_nothing() {
    for capabilities in ["", "sync"] {
        let scene = Scene::new(capabilities);
        let mut engine = scene.engine();
        let _bridge = scene.station();
        let (mut dice, mut runs, mut kills) = (Dice(5), Vec::new(), 0);
        while runs.len() < wanted() {
            runs.extend((0..BATCH).filter_map(|_| scene.start()));
            std::thread::sleep(Duration::from_millis(dice.below(150)));
            engine.kill();
            kills += 1;
            engine = scene.engine();
        }
        let (dispatches, unknown) = scene.check(&runs);
        assert_eq!(unknown, 0, "what was sent is waited for");
        eprintln!(
            "[{capabilities}] {} runs, {dispatches} dispatches, {kills} kills of the engine",
            runs.len()
        );
        drop(engine);
    }
}
