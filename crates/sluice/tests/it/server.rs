//! A real server on this machine, as a child of the test.

use crate::world::{PATIENCE, World, plain, shown};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Output, Stdio};
use std::time::Instant;

/// A server on the data directory `.sluice` of a world. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Server {
    /// Starts one at a free port, or at the one that is named.
    pub(crate) fn start(world: &World, listen: &str) -> Server {
        Server::with(world, &["--listen", listen, "--mock", "mock.yaml", "--shell"])
    }

    /// Starts one with these arguments.
    pub(crate) fn with(world: &World, args: &[&str]) -> Server {
        Server::of(world, world.command(&[&["serve"], args].concat()))
    }

    /// The same by another command.
    pub(crate) fn of(world: &World, mut command: std::process::Command) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("sluice serves at ").map(str::to_owned);
        let url = url.unwrap_or_else(|| {
            let mut told = String::new();
            child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
            panic!("no server: {line}{told}")
        });
        // What it says later must not fill its pipe.
        let mut told = child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
        Server { child, url, token: token.trim().to_owned() }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Runs a command that asks this server.
    pub(crate) fn output(&self, world: &World, args: &[&str]) -> Output {
        self.output_with(world, &self.token, args)
    }

    /// The same with another token.
    pub(crate) fn output_with(&self, world: &World, token: &str, args: &[&str]) -> Output {
        let mut command = world.command(args);
        command.env("SLUICE_URL", &self.url).env("SLUICE_TOKEN", token);
        // There is nothing in this directory: who looks here would be found out.
        command.env("SLUICE_DATA", world.path().join("nothing"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(!world.path().join("nothing").exists(), "{args:?} made a data directory");
        output
    }

    pub(crate) fn told(&self, world: &World, args: &[&str]) -> String {
        plain(&shown(&self.output(world, args)))
    }

    /// What a command prints, which must succeed.
    pub(crate) fn printed(&self, world: &World, args: &[&str]) -> String {
        let output = self.output(world, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, world: &World, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.printed(world, args)).unwrap()
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tries until both give the same; what they gave last if they never do.
pub(crate) fn same(first: impl Fn() -> String, second: impl Fn() -> String) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let (one, other) = (first(), second());
        if one == other {
            return Ok(());
        }
        // Seals are made meanwhile, and leases renewed.
        if began.elapsed() > PATIENCE / 3 {
            return Err(format!("here:\n{one}\nthere:\n{other}"));
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
