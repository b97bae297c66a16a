//! A command starts only after its process group is journalled.

use super::*;
use crate::fake_call::FakeJournal;
use std::process::{Command as StdCommand, Stdio as StdStdio};
use tokio::time::timeout;

const MARK: &str = "touch ran";

#[tokio::test]
async fn the_group_is_reported_first_with_its_start_time() {
    let shell = TestShell::new();
    shell.run("echo out").await;
    let Some(Emission::Process(process)) = shell.call.emitted().into_iter().next() else {
        panic!("the process comes first");
    };
    let (boot, ticks) = process.started.rsplit_once(':').unwrap();
    assert_eq!(boot.len(), 36);
    assert!(ticks.parse::<u64>().is_ok());
    assert_eq!(kill_survivor(&process), Survivor::Gone);
}

#[tokio::test]
async fn a_command_does_not_run_while_its_group_is_not_on_record() {
    let mut shell = TestShell::new();
    shell.call = FakeCall::with(FakeJournal::Stalls);
    let request = request("step", MARK);
    let waited = timeout(Duration::from_millis(200), shell.ask(&request)).await;
    assert!(waited.is_err());
    let process = shell.call.process().unwrap();
    // The call was dropped and its group killed.
    while survivor::exists(process.group) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!shell.has("ran"));
}

#[tokio::test]
async fn a_command_does_not_run_when_the_call_is_closed() {
    let mut shell = TestShell::new();
    shell.call = FakeCall::with(FakeJournal::Closed);
    let answered = shell.run(MARK).await;
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    assert!(!shell.has("ran"));
}

#[tokio::test]
async fn a_call_that_is_cancelled_at_once_runs_nothing() {
    let shell = TestShell::new();
    shell.call.cancel();
    assert_eq!(error(&shell.run(MARK).await).0, CallErrorCode::Cancelled);
    assert!(!shell.has("ran"));
}

/// The barrier shell alone, as after a crash of the engine: its input closes.
fn gate(input: &[u8]) -> (Option<i32>, bool) {
    use std::io::Write;
    let place = tempfile::tempdir().unwrap();
    let mut gate = StdCommand::new(SHELL)
        .args(["-c", BARRIER, "sluice", MARK])
        .current_dir(place.path())
        .stdin(StdStdio::piped())
        .spawn()
        .unwrap();
    gate.stdin.take().unwrap().write_all(input).unwrap();
    let status = gate.wait().unwrap();
    (status.code(), place.path().join("ran").exists())
}

#[test]
fn only_the_exact_word_starts_the_command() {
    assert_eq!(gate(b"go\n"), (Some(0), true));
    assert_eq!(gate(b"go\nmore"), (Some(0), true));
    for input in [&b""[..], b"g", b"go", b"\n", b"gone\n", b" go\n"] {
        assert_eq!(gate(input), (Some(125), false), "{input:?}");
    }
}
