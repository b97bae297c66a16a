//! Three nodes on one database that are killed, paused and cut off, for a bounded time:
//! `make chaos` runs longer.

use std::process::Command;
use std::sync::Mutex;

/// One test at a time, since recovery time is measured.
static TURN: Mutex<()> = Mutex::new(());

fn play(options: &[&str]) {
    let _turn = TURN.lock();
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).arg("cluster").args(options).output();
    let output = output.expect("it is built");
    let answer = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{answer}{why}");
}

#[test]
fn nodes_that_are_killed_lose_nothing_and_do_nothing_twice() {
    play(&["--runs", "240", "--kills", "2", "--restarts", "2", "--cuts", "2", "--stops", "1"]);
}

#[test]
fn a_database_whose_replica_takes_its_place_loses_nothing() {
    let nothing_else = ["--kills", "0", "--restarts", "0", "--cuts", "0", "--pauses", "0"];
    let more = ["--stops", "0", "--parts", "0", "--runs", "200", "--failovers", "1"];
    play(&[nothing_else.as_slice(), more.as_slice()].concat());
}
