//! The processes: a PostgreSQL server, and nodes that serve it.

use super::Options;
use anyhow::Context as _;
use sluice_testing::postgres::{Proxy, Server};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a node may take to start.
const START_S: u64 = 60;

/// Agents, budgets and workflows.
const CONFIG: &str = include_str!("config.yaml");
/// Script of the mock adapter.
const ANSWERS: &str = include_str!("answers.yaml");
/// Workflows by name.
pub(super) const WORKFLOWS: [(&str, &str); 6] = [
    ("chain", include_str!("chain.yaml")),
    ("fan", include_str!("fan.yaml")),
    ("asks", include_str!("asks.yaml")),
    ("spends", include_str!("spends.yaml")),
    ("parent", include_str!("parent.yaml")),
    ("waits", include_str!("waits.yaml")),
];

/// What all nodes share.
pub(super) struct Setup {
    /// The `sluice` program.
    sluice: PathBuf,
    dir: tempfile::TempDir,
    pub(super) server: Server,
    /// Synchronous replica of the database, if any.
    pub(super) replica: Option<Server>,
    /// Each node's proxies to the database and its replica.
    pub(super) proxies: Vec<Vec<Proxy>>,
    lease_ms: u64,
    loud: bool,
}

pub(super) struct ClusterNode {
    child: Child,
    address: String,
    /// ClusterNode id in the database, as a UUID.
    id: String,
}

/// The nodes, by index; `None` for a dead one.
pub(super) struct Cluster {
    pub(super) setup: Mutex<Setup>,
    nodes: Vec<Mutex<Option<ClusterNode>>>,
}

impl Setup {
    pub(super) fn new(options: &Options) -> anyhow::Result<Setup> {
        let sluice = std::env::current_exe()?.with_file_name("sluice");
        anyhow::ensure!(sluice.exists(), "`{}` is not built", sluice.display());
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("config.yaml"), CONFIG)?;
        std::fs::write(dir.path().join("answers.yaml"), ANSWERS)?;
        for (name, text) in WORKFLOWS {
            std::fs::write(dir.path().join(format!("{name}.yaml")), text)?;
        }
        std::fs::write(dir.path().join("child.yaml"), include_str!("child.yaml"))?;
        std::fs::write(dir.path().join("tick.yaml"), include_str!("tick.yaml"))?;
        let server = Server::start_listening(&[]).map_err(anyhow::Error::msg)?;
        let replica = (options.failovers > 0).then(|| server.replica()).transpose();
        let replica = replica.map_err(anyhow::Error::msg)?;
        let ports = || [&server].into_iter().chain(&replica).map(Server::port);
        let proxies = (0..options.nodes).map(|_| ports().map(Proxy::start).collect());
        let proxies = proxies.collect::<Result<_, _>>()?;
        let (lease_ms, loud) = (options.lease_ms, options.loud);
        let setup = Setup { sluice, dir, server, replica, proxies, lease_ms, loud };
        let config = setup.dir.path().join("config.yaml");
        setup.sluice(&["apply", "-f", &config.to_string_lossy()])?;
        Ok(setup)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn command(&self, args: &[&str], url: &str) -> Command {
        let mut command = Command::new(&self.sluice);
        command.args(args).arg("--data").arg(self.data());
        command.args(["--database-url", url]).current_dir(self.dir.path());
        command.env("SLUICE_LEASE_MS", self.lease_ms.to_string());
        command
    }

    /// Runs a command and returns its output; fails if it does.
    pub(super) fn sluice(&self, args: &[&str]) -> anyhow::Result<String> {
        let output =
            self.command(args, &self.server.url()).output().context("the program cannot be run")?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{args:?}: {answer}{why}");
        Ok(answer)
    }

    /// Starts a node, and waits until it serves.
    fn start(&self, at: usize) -> anyhow::Result<ClusterNode> {
        let before = self.ids();
        let ports: Vec<u16> = self.proxies[at].iter().map(Proxy::port).collect();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--mock", "answers.yaml"];
        let mut command = self.command(&serve, &Server::url_at(&ports));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.env("SLUICE_LIMITS_RATE_PER_SECOND", "100000");
        command.env("SLUICE_LIMITS_RATE_BURST", "100000");
        command.stderr(if self.loud { Stdio::inherit() } else { Stdio::null() });
        let mut child = command.spawn().context("the program cannot be run")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output is piped")?).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        anyhow::ensure!(address.starts_with("http://"), "a node did not start: {line}");
        let id = self.ids().into_iter().find(|id| !before.contains(id));
        Ok(ClusterNode { child, address, id: id.context("the node did not register")? })
    }

    /// Ids of the nodes in the database.
    fn ids(&self) -> Vec<String> {
        let answer = self.server.psql("SELECT id FROM node");
        answer.lines().map(str::to_owned).collect()
    }
}

impl Cluster {
    /// Starts all nodes.
    pub(super) async fn start(setup: Setup, options: &Options) -> anyhow::Result<Cluster> {
        let mut nodes = Vec::new();
        for at in 0..options.nodes {
            nodes.push(Mutex::new(Some(setup.start(at)?)));
        }
        Ok(Cluster { setup: Mutex::new(setup), nodes })
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// URL of a node; `None` while it is dead.
    pub(super) fn address(&self, at: usize) -> Option<String> {
        let node = self.nodes[at].lock().expect("the lock is not poisoned");
        node.as_ref().map(|node| node.address.clone())
    }

    /// Number of runs that a node owns in the database.
    pub(super) fn owned(&self, id: &str) -> usize {
        let setup = self.setup.lock().expect("the lock is not poisoned");
        let answer = setup.server.psql(&format!("SELECT count(*) FROM run WHERE owner = '{id}'"));
        answer.parse().unwrap_or_default()
    }

    /// Kills a node with -9. Returns its id.
    pub(super) fn kill(&self, at: usize) -> anyhow::Result<String> {
        let mut node = self.nodes[at].lock().expect("the lock is not poisoned");
        let mut node = node.take().context("it lives")?;
        node.child.kill()?;
        node.child.wait()?;
        Ok(node.id)
    }

    /// Stops a node gracefully, and waits for it. Returns its id.
    pub(super) fn stop(&self, at: usize) -> anyhow::Result<String> {
        let id = self.signal(at, "-TERM")?;
        let mut node = self.nodes[at].lock().expect("the lock is not poisoned");
        let mut node = node.take().context("it lives")?;
        let ended = node.child.wait()?;
        anyhow::ensure!(ended.success(), "a gracefully stopped node ended with {ended}");
        Ok(id)
    }

    /// Runs a command and returns its output; fails if it does.
    pub(super) fn sluice(&self, args: &[&str]) -> anyhow::Result<String> {
        let setup = self.setup.lock().expect("the lock is not poisoned");
        tokio::task::block_in_place(|| setup.sluice(args))
    }

    /// Starts a node in place of a dead one.
    pub(super) fn revive(&self, at: usize) -> anyhow::Result<()> {
        let node = self.setup.lock().expect("the lock is not poisoned").start(at)?;
        *self.nodes[at].lock().expect("the lock is not poisoned") = Some(node);
        Ok(())
    }

    pub(super) fn id(&self, at: usize) -> anyhow::Result<String> {
        let node = self.nodes[at].lock().expect("the lock is not poisoned");
        Ok(node.as_ref().context("it lives")?.id.clone())
    }

    /// Sends a signal to a node. Returns its id.
    pub(super) fn signal(&self, at: usize, signal: &str) -> anyhow::Result<String> {
        let node = self.nodes[at].lock().expect("the lock is not poisoned");
        let node = node.as_ref().context("it lives")?;
        let answer = Command::new("kill").args([signal, &node.child.id().to_string()]).status()?;
        anyhow::ensure!(answer.success(), "the signal was not sent");
        Ok(node.id.clone())
    }

    /// The admin token that the first node created.
    pub(super) fn token(&self) -> anyhow::Result<String> {
        let file = self.setup.lock().expect("the lock is not poisoned").data().join("admin.token");
        until(|| std::fs::read_to_string(Path::new(&file)).ok()).context("there is a token")
    }
}

/// Polls for as long as a node may take to start.
fn until<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(START_S) {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Ok(Some(node)) = node.get_mut() {
                // The process may have ended, or may be paused.
                let _ = node.child.kill();
                let _ = node.child.wait();
            }
        }
    }
}
