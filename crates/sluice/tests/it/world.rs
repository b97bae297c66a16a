//! Commands that run things: bounded in time, with ids and times made plain.

use crate::session::{Session, binary, root};
use regex::{Captures, Regex};
use std::fmt::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time that anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with documents, and a data directory `.sluice` in it.
pub(crate) struct World {
    session: Session,
}

/// A command that is under way. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl World {
    pub(crate) fn new() -> World {
        World { session: Session::new() }
    }

    pub(crate) fn file(self, name: &str, content: &str) -> World {
        World { session: self.session.file(name, content) }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.session.path()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = binary(self.path());
        command.args(args).env("USER", "ada").env_remove("SLUICE_DATA");
        command.env_remove("SLUICE_SEAL_FILE").env_remove("SLUICE_MODERATION");
        command.env_remove("SLUICE_MODERATION_TOKEN").env_remove("SLUICE_AGENT");
        command.env_remove("SLUICE_URL").env_remove("SLUICE_TOKEN").env_remove("SLUICE_CONFIG");
        command
    }

    /// Starts a command.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::spawn(self.command(args))
    }

    /// Runs a command to its end.
    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.start(args).output()
    }

    /// Runs a command and shows everything that came of it.
    pub(crate) fn told(&self, args: &[&str]) -> String {
        plain(&shown(&self.output(args)))
    }

    /// What a command prints, which must succeed.
    pub(crate) fn printed(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.printed(args)).unwrap()
    }

    /// The newest run.
    pub(crate) fn newest(&self) -> String {
        let list = self.json(&["runs", "list", "--json", "--limit", "1"]);
        list["data"][0]["run_id"].as_str().unwrap().to_owned()
    }

    /// The oldest open question.
    pub(crate) fn question(&self) -> String {
        let list = self.json(&["approvals", "list", "--json"]);
        list["data"][0]["approval_id"].as_str().unwrap().to_owned()
    }

    /// A run as programs see it.
    pub(crate) fn state(&self, run: &str) -> serde_json::Value {
        self.json(&["runs", "show", run, "--json"])
    }

    /// Waits until something is so.
    pub(crate) fn until<T>(&self, what: &str, look: impl Fn(&World) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "it never came to be: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the newest run has a step in this status, and names the run.
    pub(crate) fn until_step(&self, step: &str, status: &str) -> String {
        self.until(&format!("{step} is {status}"), |world| {
            let list = world.output(&["runs", "list", "--json", "--limit", "1"]);
            let list: serde_json::Value = serde_json::from_slice(&list.stdout).ok()?;
            let run = list["data"][0]["run_id"].as_str()?.to_owned();
            let state = world.state(&run);
            let nodes = state["node_results"].as_array()?;
            nodes
                .iter()
                .any(|node| node["node_id"] == step && node["status"] == status)
                .then_some(run)
        })
    }
}

impl Running {
    pub(crate) fn spawn(mut command: Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        fn read(mut from: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                bytes
            })
        }
        let stdout = read(child.stdout.take().unwrap());
        let stderr = read(child.stderr.take().unwrap());
        Running { child, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn output(mut self) -> Output {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "the command does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout = self.stdout.take().unwrap().join().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Output { status, stdout, stderr }
    }

    /// Waits for its end and shows everything that came of it.
    pub(crate) fn told(self) -> String {
        plain(&shown(&self.output()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both streams and the exit code.
pub(crate) fn shown(output: &Output) -> String {
    let mut text = String::new();
    for (name, bytes) in [("stderr", &output.stderr), ("stdout", &output.stdout)] {
        let part = std::str::from_utf8(bytes).unwrap();
        if !part.is_empty() {
            let part: Vec<&str> = part.lines().map(str::trim_end).collect();
            writeln!(text, "{name}:\n{}", part.join("\n").trim_end()).unwrap();
        }
    }
    writeln!(text, "exit {}", output.status.code().unwrap_or(-1)).unwrap();
    text
}

/// Ids numbered as they appear, times without their length, columns without their width.
pub(crate) fn plain(text: &str) -> String {
    static ID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("(run|apr|node)_[0-9a-f]{32}").unwrap());
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b\d+ ms\b|\b\d+\.\d s\b").unwrap());
    static WHEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{3})?(Z|[+-]\d\d:\d\d)").unwrap()
    });
    static GAP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)(\S)   +").unwrap());
    let mut seen: Vec<String> = Vec::new();
    let text = ID.replace_all(text, |found: &Captures<'_>| {
        let id = found[0].to_owned();
        let kind = &found[1];
        if !seen.contains(&id) {
            seen.push(id.clone());
        }
        let of_kind = seen.iter().filter(|one| one.starts_with(kind));
        let number = of_kind.clone().position(|one| *one == id).unwrap() + 1;
        format!("{}-{number}", kind.to_uppercase())
    });
    let text = TIME.replace_all(&text, "TIME");
    let text = WHEN.replace_all(&text, "WHEN");
    GAP.replace_all(&text, "$1  ").into_owned()
}

/// Runs of the examples are started at the top of the source tree.
pub(crate) fn example(world: &World, name: &str, more: &[&str]) -> Output {
    let data = world.path().join("data");
    let stem = name.trim_start_matches("examples/").split('.').next().unwrap();
    let mock = format!("examples/mocks/{stem}.yaml");
    let mut command = world.command(&["run", name, "--registry", "examples/registry.yaml"]);
    command.args(["--mock", &mock, "--data", data.to_str().unwrap()]);
    command.args(["--moderation", "examples/words.txt"]).args(more);
    command.current_dir(root());
    Running::spawn(command).output()
}
