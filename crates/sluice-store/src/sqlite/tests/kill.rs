//! A process that is killed while it appends.

use super::*;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const DIR: &str = "SLUICE_STORE_TEST_DIR";

/// The process to be killed: prints each version once it is durable.
#[test]
#[ignore = "started by the test below"]
fn a_process_to_kill() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = open(Path::new(&dir)).unwrap();
    wait(store.renew(node(1), 1_000_000)).unwrap();
    append(&store, first(run(1)));
    for after in 1.. {
        assert_eq!(append(&store, plain(run(1), after)), DONE);
        println!("durable {}", after + 1);
    }
}

#[test]
fn a_killed_process_loses_nothing_and_is_noticed_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "sqlite::tests::kill::a_process_to_kill"])
        .env(DIR, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut versions = lines.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
    assert!(versions.by_ref().any(|version| version == 100));
    child.kill().unwrap();
    child.wait().unwrap();
    let durable = versions.last().unwrap_or(100);

    let store = opened(&dir);
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(wait(store.claim(node(2), 0, 10)).unwrap(), [claim]);
    let frames = wait(store.load(run(1))).unwrap().unwrap().frames;
    assert!(frames.len() as u64 >= durable, "{} of {durable}", frames.len());
    assert!((1..).zip(&frames).all(|(first, frame)| frame.first == first));
    let version = frames.len() as u64;
    let next = Append { node: node(2), epoch: 2, ..plain(run(1), version) };
    assert_eq!(append(&store, next), DONE);
}
