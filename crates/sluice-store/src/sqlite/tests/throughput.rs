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

/// What the store does.
struct Measured {
    appends_per_second: f64,
    /// Appends in a commit, on average.
    group: f64,
    /// How long each append took, sorted.
    waits: Vec<Duration>,
    /// The largest size of the log file.
    log_bytes: u64,
}

fn store(tasks: u64) -> Measured {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Arc::new(opened(&dir));
    for number in 1..=tasks {
        append(&store, first(run(number.into())));
    }
    let before = store.figures();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let started = Instant::now();
    let tasks: Vec<_> = (1..=tasks)
        .map(|number| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                let mut after = 1;
                let mut waits = Vec::new();
                while started.elapsed() < TIME {
                    let body = vec![7; BODY_BYTES];
                    let append = Append { body, ..plain(run(number.into()), after) };
                    let asked = Instant::now();
                    assert_eq!(store.append(append).await.unwrap(), Appended::Done);
                    waits.push(asked.elapsed());
                    after += 1;
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(runtime.block_on(task).unwrap());
    }
    waits.sort_unstable();
    let seconds = started.elapsed().as_secs_f64();
    let after = store.figures();
    let appends = (after.appends - before.appends) as f64;
    Measured {
        appends_per_second: appends / seconds,
        group: appends / (after.commits - before.commits) as f64,
        waits,
        log_bytes: dir.path().join("sluice.db-wal").metadata().unwrap().len(),
    }
}

#[test]
#[ignore = "measures; run by hand"]
fn throughput() {
    for tasks in [64, 64, 64, 1, 8, 256] {
        let clustered =
            bare("CREATE TABLE bare (run, seq, body, PRIMARY KEY (run, seq)) WITHOUT ROWID");
        let ordered = bare("CREATE TABLE bare (run, seq, body)");
        let measured = store(tasks);
        let wait = |percent: usize| measured.waits[(measured.waits.len() - 1) * percent / 100];
        println!(
            "bare by run {clustered:.0}/s, bare in order {ordered:.0}/s; {tasks} tasks: \
             {:.0}/s in groups of {:.1}, p50 {:?}, p99 {:?}, max {:?}, log {} KiB",
            measured.appends_per_second,
            measured.group,
            wait(50),
            wait(99),
            wait(100),
            measured.log_bytes / 1024,
        );
    }
}

/// Resident memory of this process in MiB.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 / (1024 * 1024)
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "measures; run by hand"]
fn memory_with_many_parked_runs() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = opened(&dir);
    println!("{} MiB with an empty store", resident());
    for thousand in 0..100 {
        let parked =
            |number| Append { head: Some(released(Some(number))), ..first(run(number.into())) };
        let appends = (1..=1000).map(|number| store.append(parked(thousand * 1000 + number)));
        assert!(wait_all(appends.collect()).into_iter().all(|outcome| outcome.is_ok()));
    }
    println!("{} MiB with 100 000 parked runs", resident());
    let claimed = Instant::now();
    assert_eq!(wait(store.claim(node(1), 500, 1000)).unwrap().len(), 500);
    println!("500 of them claimed in {:?}", claimed.elapsed());
}
