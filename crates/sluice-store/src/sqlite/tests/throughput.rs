//! How fast appends are, run by hand:
//!
//! `cargo test --release -p sluice-store throughput -- --ignored --nocapture`

use super::*;
use rusqlite::Connection;
use std::time::{Duration, Instant};

const TASKS: u64 = 64;
const BODY_BYTES: usize = 350;
const TIME: Duration = Duration::from_secs(4);

/// Rows per second of the plainest loop: one insert per row, 64 rows per commit.
fn bare(table: &str) -> f64 {
    let dir = tempfile::tempdir_in(".").unwrap();
    let connection = Connection::open(dir.path().join("bare.db")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.execute_batch(table).unwrap();
    let body = vec![7u8; BODY_BYTES];
    let started = Instant::now();
    let mut seq = 0i64;
    while started.elapsed() < TIME {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for run in 0..TASKS.cast_signed() {
            let mut insert =
                connection.prepare_cached("INSERT INTO bare VALUES (?1, ?2, ?3)").unwrap();
            insert.execute(rusqlite::params![run, seq, body]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        seq += 1;
    }
    (seq * TASKS.cast_signed()) as f64 / started.elapsed().as_secs_f64()
}

/// Appends per second and the mean number of appends in a commit.
fn store() -> (f64, f64) {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Arc::new(opened(&dir));
    for number in 1..=TASKS {
        append(&store, first(run(number.into())));
    }
    let before = store.figures();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let started = Instant::now();
    let tasks: Vec<_> = (1..=TASKS)
        .map(|number| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                let mut after = 1;
                while started.elapsed() < TIME {
                    let body = vec![7; BODY_BYTES];
                    let append = Append { body, ..plain(run(number.into()), after) };
                    assert_eq!(store.append(append).await.unwrap(), Appended::Done);
                    after += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = store.figures();
    let appends = (after.appends - before.appends) as f64;
    (appends / seconds, appends / (after.commits - before.commits) as f64)
}

#[test]
#[ignore = "measures; run by hand"]
fn throughput() {
    for _ in 0..3 {
        let clustered =
            bare("CREATE TABLE bare (run, seq, body, PRIMARY KEY (run, seq)) WITHOUT ROWID");
        let plainest = bare("CREATE TABLE bare (run, seq, body)");
        let (appends, group) = store();
        println!(
            "bare loop by run {clustered:.0}/s, bare loop in order {plainest:.0}/s, \
             store {appends:.0}/s in groups of {group:.1}: {:.2} and {:.2} of bare",
            appends / clustered,
            appends / plainest,
        );
    }
}
