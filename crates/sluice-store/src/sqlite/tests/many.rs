//! Lists over very many runs.

use super::*;
use sluice_core::status::RunStatus;
use std::time::{Duration, Instant};

/// Runs with alternating workflows, initiators and statuses.
const RUNS: u64 = 100_000;

fn filled(dir: &TempDir) -> SqliteStore {
    drop(opened(dir));
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    let sql =
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
               INSERT INTO run (id, workflow, status, started_at, epoch, initiator)
               SELECT unhex(printf('%032x', n * 65536 * 65536)), 'workflow-' || (n % 50),
                      CASE n % 3 WHEN 0 THEN 'running' WHEN 1 THEN 'completed' ELSE 'failed' END,
                      n, 1, 'person-' || (n % 20) || '@example.org'
               FROM number";
    file.execute(sql, [i64::try_from(RUNS).unwrap()]).unwrap();
    file.close().unwrap();
    opened(dir)
}

#[test]
fn a_hundred_thousand_runs_are_listed_in_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(&dir);
    let text = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    let statuses = vec![RunStatus::Running, RunStatus::Failed];
    let asked = [
        (Filter::default(), 100),
        (text("PERSON-7@"), 100),
        (text("nowhere to be found"), 0),
        (Filter { statuses: statuses.clone(), ..text("nowhere to be found") }, 0),
        (Filter { initiator: Some("person-7@example.org".to_owned()), ..text("flow-27") }, 100),
        (Filter { since_ms: Some(10), until_ms: Some(20), ..Filter::default() }, 10),
        (Filter { since_ms: Some(10), until_ms: Some(20), statuses, ..text("person") }, 6),
        (Filter { workflow: Some("workflow-3".to_owned()), ..text("person-1@") }, 0),
        (text("run_000000000000000000000001"), 1),
    ];
    // Once before, so that the file is cached.
    for round in 0..2 {
        for (filter, found) in &asked {
            let began = Instant::now();
            let rows = wait(store.list(filter.clone())).unwrap();
            let took = began.elapsed();
            assert_eq!(rows.len(), *found, "{filter:?}");
            assert!(round == 0 || took < Duration::from_millis(500), "{took:?} for {filter:?}");
            figures(filter, took);
        }
    }
}

fn figures(filter: &Filter, took: Duration) {
    eprintln!("{took:?} for {:?} {:?} {:?}", filter.text, filter.initiator, filter.statuses);
}
