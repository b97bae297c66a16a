//! Nothing runs before it is on record.

use super::*;
use crate::desk::Journal;
use std::process::{Command as StdCommand, Stdio as StdStdio};
use tokio::time::timeout;

const MARK: &str = "touch ran";

#[tokio::test]
async fn the_group_is_told_before_anything_else_with_when_it_started() {
    let shop = Shop::new();
    shop.run("echo out").await;
    let Some(Emission::Process(process)) = shop.desk.emitted().into_iter().next() else {
        panic!("the process comes first");
    };
    let (boot, ticks) = process.started.rsplit_once(':').unwrap();
    assert_eq!(boot.len(), 36);
    assert!(ticks.parse::<u64>().is_ok());
    assert_eq!(kill_survivor(&process), Survivor::Gone);
}

#[tokio::test]
async fn a_command_does_not_run_while_its_group_is_not_on_record() {
    let mut shop = Shop::new();
    shop.desk = Desk::with(Journal::Stalls);
    let request = request("step", MARK);
    let waited = timeout(Duration::from_millis(200), shop.ask(&request)).await;
    assert!(waited.is_err());
    let process = shop.desk.process().unwrap();
    // The call was dropped and its group killed.
    while survivor::exists(process.group) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!shop.has("ran"));
}

#[tokio::test]
async fn a_command_does_not_run_when_nobody_listens() {
    let mut shop = Shop::new();
    shop.desk = Desk::with(Journal::Closed);
    let answered = shop.run(MARK).await;
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    assert!(!shop.has("ran"));
}

#[tokio::test]
async fn a_call_that_is_cancelled_at_once_runs_nothing() {
    let shop = Shop::new();
    shop.desk.cancel();
    assert_eq!(error(&shop.run(MARK).await).0, CallErrorCode::Cancelled);
    assert!(!shop.has("ran"));
}

/// The gate alone, as it is left when the engine dies: its input closes.
fn gate(input: &[u8]) -> (Option<i32>, bool) {
    use std::io::Write;
    let place = tempfile::tempdir().unwrap();
    let mut gate = StdCommand::new(SHELL)
        .args(["-c", GATE, "sluice", MARK])
        .current_dir(place.path())
        .stdin(StdStdio::piped())
        .spawn()
        .unwrap();
    gate.stdin.take().unwrap().write_all(input).unwrap();
    let status = gate.wait().unwrap();
    (status.code(), place.path().join("ran").exists())
}

#[test]
fn the_gate_opens_for_the_whole_word_only() {
    assert_eq!(gate(b"go\n"), (Some(0), true));
    assert_eq!(gate(b"go\nmore"), (Some(0), true));
    for input in [&b""[..], b"g", b"go", b"\n", b"gone\n", b" go\n"] {
        assert_eq!(gate(input), (Some(125), false), "{input:?}");
    }
}
