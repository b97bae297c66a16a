//! Three nodes on one database while they are killed, held still and cut off, for a
//! bounded time: `make chaos` goes on for longer.

use std::process::Command;

#[test]
fn nodes_that_are_killed_lose_nothing_and_do_nothing_twice() {
    let mut cluster = Command::new(env!("CARGO_BIN_EXE_bench"));
    cluster.args(["cluster", "--runs", "240", "--kills", "2", "--restarts", "1", "--cuts", "2"]);
    let output = cluster.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{why}");
}
