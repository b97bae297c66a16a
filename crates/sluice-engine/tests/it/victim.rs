//! An engine in a process of its own, so that it can be killed.
//!
//! The test binary starts itself with the one ignored test; that test executes the commands
//! on its standard input and dies at its end.

use crate::world::{PATIENCE, RunningEngine, World, config, ended, start};
use sluice_core::id::RunId;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Directory of the other process; without it the test does nothing.
pub(crate) const DIR: &str = "SLUICE_IT_DIR";
/// Script of its mock.
const MOCK: &str = "SLUICE_IT_MOCK";
/// Marks its answers among the output of the test harness.
const MARK: &str = "victim: ";

/// Another process.
pub(crate) struct Victim {
    child: Child,
    asked: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Victim {
    pub(crate) fn start(dir: &Path, mock: &str) -> Victim {
        Victim::start_under(dir, mock, &["/usr/bin/env"])
    }

    /// Started by a wrapper command.
    pub(crate) fn start_under(dir: &Path, mock: &str, launcher: &[&str]) -> Victim {
        let binary = std::env::current_exe().expect("a test is a file");
        let mut child = Command::new(launcher[0])
            .args(&launcher[1..])
            .arg(binary)
            .args(["victim::obeys", "--exact", "--ignored", "--nocapture"])
            .env(DIR, dir)
            .env(MOCK, mock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a test can start itself");
        let asked = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Victim { child, asked, answers }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it has not ended")
    }

    /// Starts a run in that process.
    pub(crate) async fn run(&mut self, document: &str) -> RunId {
        let text = serde_json::to_string(document).expect("a text is JSON");
        let answer = self.ask(&format!("start {text}")).await;
        RunId::parse(&answer).unwrap_or_else(|| panic!("{answer}"))
    }

    /// Sends a line and returns the answer.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.asked.write_all(format!("{line}\n").as_bytes()).await.expect("it listens");
        let answer = async {
            loop {
                let line = self.answers.next_line().await.expect("it speaks text");
                let line = line.expect("it answers before it dies");
                // The harness begins a line without ending it.
                if let Some((_, answer)) = line.split_once(MARK) {
                    return answer.to_owned();
                }
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.expect("it answers in time")
    }

    /// `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }
}

#[test]
#[ignore = "the other process of tests that need one"]
fn obeys() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let world = World::at(Path::new(&dir), &std::env::var(MOCK).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let life = runtime.block_on(world.boot_with(config()));
    for line in std::io::stdin().lines() {
        let answer = runtime.block_on(obey(&life, &line.unwrap()));
        println!("{MARK}{answer}");
    }
    // As if killed: no cleanup.
    std::process::exit(0);
}

async fn obey(life: &RunningEngine, line: &str) -> String {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let run = || RunId::parse(rest).expect("a run is named");
    match word {
        "start" => {
            let document: String = serde_json::from_str(rest).expect("a document comes as JSON");
            match life.start(start(&document)).await {
                Ok(started) => started.run.to_string(),
                Err(error) => error.to_string(),
            }
        }
        "node" => life.node().to_string(),
        "ended" => ended(life, run()).await.status.to_string(),
        "trouble" => life.trouble().borrow().clone().unwrap_or_default(),
        other => panic!("it cannot `{other}`"),
    }
}
