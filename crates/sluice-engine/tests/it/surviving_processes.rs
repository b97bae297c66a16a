//! Processes that outlive the engine that started them.

use crate::victim::Victim;
use crate::world::{World, cancel, config, ended, happens, until};
use rustix::process::{Pid, test_kill_process_group};
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::config::{Claims, Config};
use std::path::Path;
use std::time::Duration;

/// Reports start and end, and is slow the first time only.
const SLOW: &str = "
name: slow
steps:
  - id: a
    agent: shell
    retry: {attempts: 2, backoff_ms: 1, retry_on: [provider_error]}
    command: |
      echo begun $SLUICE_DISPATCH_NO $SLUICE_ATTEMPT $SLUICE_IDEMPOTENCY_KEY >> log
      if [ $SLUICE_DISPATCH_NO = 1 ]; then sleep 1; fi
      echo ended $SLUICE_DISPATCH_NO >> log
      [ $SLUICE_DISPATCH_NO != 2 ]
  - {id: b, agent: shell, command: 'echo after >> log', depends_on: [a]}
";

#[tokio::test]
async fn a_command_that_survives_a_crash_is_killed_before_it_is_sent_again() {
    let world = World::new("{}");
    let mut victim = Victim::start(world.path(), "{}");
    let id = victim.run(SLOW).await;
    happens("the command", || !log(world.path()).is_empty()).await;
    victim.kill().await;
    let reader = world.boot_with(clerk()).await;
    assert!(lives(&reader.load(id).await.unwrap()), "the command survives");
    reader.crash().await;
    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    // Long enough for a surviving process to have ended.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let log = log(world.path());
    let words: Vec<Vec<&str>> = log.iter().map(|line| line.split(' ').collect()).collect();
    let short: Vec<String> =
        words.iter().map(|words| words[..words.len().min(3)].join(" ")).collect();
    assert_eq!(short, ["begun 1 1", "begun 2 1", "ended 2", "begun 3 2", "ended 3", "after"]);
    assert_eq!(words[0][3], words[1][3], "a crash does not change the key");
    assert_ne!(words[1][3], words[3][3], "another attempt has another key");
}

#[tokio::test]
async fn a_cancel_after_a_crash_kills_surviving_processes() {
    let world = World::new("{}");
    let mut victim = Victim::start(world.path(), "{}");
    let id = victim.run(SLOW).await;
    happens("the command", || !log(world.path()).is_empty()).await;
    victim.kill().await;
    let life = world.boot_with(clerk()).await;
    assert!(lives(&life.load(id).await.unwrap()), "the command survives");
    cancel(&life, id).await.unwrap();
    let run = until(&life, id, |run| run.status.is_terminal()).await;
    assert_eq!(run.status, RunStatus::Cancelled);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let log = log(world.path());
    assert_eq!(log.len(), 1, "{log:?}");
}

/// However often the engine is killed, the work is done once and in order.
#[tokio::test]
async fn a_run_is_killed_again_and_again_and_ends() {
    let world = World::new("{}");
    let flow = "
name: stubborn
steps:
  - {id: a, agent: shell, command: 'sleep 0.05; echo a >> log'}
  - {id: b, agent: shell, command: 'sleep 0.05; echo b >> log', depends_on: [a]}
  - {id: c, agent: shell, command: 'sleep 0.05; echo c >> log', depends_on: [b]}
";
    let mut victim = Victim::start(world.path(), "{}");
    let id = victim.run(flow).await;
    for lived_ms in [10, 30, 60, 90, 120] {
        tokio::time::sleep(Duration::from_millis(lived_ms)).await;
        victim.kill().await;
        victim = Victim::start(world.path(), "{}");
        victim.ask("node").await;
    }
    assert_eq!(victim.ask(&format!("ended {id}")).await, "completed");
    let mut log = log(world.path());
    // A process that was killed after its work may do it once more.
    log.dedup();
    assert_eq!(log, ["a", "b", "c"]);
}

/// Dispatches nothing, and so stops nothing.
fn clerk() -> Config {
    Config { claims: Claims::None, ..config() }
}

/// Whether the process that the run has recorded is alive.
fn lives(run: &Run) -> bool {
    let (_, process) = run.processes().next().expect("a process is on record");
    let group = i32::try_from(process.group).ok().and_then(Pid::from_raw);
    test_kill_process_group(group.expect("it has a number")).is_ok()
}

fn log(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
