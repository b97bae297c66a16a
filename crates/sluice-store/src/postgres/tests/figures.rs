//! Speed of batched appends, relative to a plain insert of as many rows, and of several
//! nodes together.

use super::*;
use sluice_testing::conformance::{first, guard, hashed, plain, run, wait_all};
use std::time::Instant;

const RUNS: u128 = 510;
const ROUNDS: u64 = 12;

fn governed(append: Append) -> Append {
    let guards = (0..8).map(|number| guard(&format!("counter of a fair length {number}"), 1, None));
    let guards = guards.chain([guard("registry", 0, Some(9))]).collect();
    hashed(Append { count: 3, body: vec![b'x'; 700], guards, ..append })
}

/// Appends once to each of some runs, all at once.
fn together(store: &PostgresStore, runs: std::ops::Range<u128>, round: u64) {
    let next = |number| match round {
        0 => governed(first(run(number))),
        round => governed(plain(run(number), 3 * round)),
    };
    let answers = runs.map(|number| store.append(Arc::new(next(number)))).collect();
    for answer in wait_all(answers) {
        assert!(matches!(answer.unwrap(), Appended::Done { .. }));
    }
}

/// Inserts as many rows in one statement and one transaction.
async fn bare(session: &Session, round: u64) {
    let ids: Vec<column::Id> = (0..RUNS).map(column::Id).collect();
    let firsts = vec![column::int(round); ids.len()];
    let bodies = vec![vec![b'x'; 700]; ids.len()];
    let sql = "INSERT INTO bare (run, first, body)
               SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[])";
    session.execute(sql, &[&ids, &firsts, &bodies]).await.unwrap();
}

fn rate(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let rows = u32::try_from(RUNS).unwrap();
    f64::from(rows) / times[times.len() / 2].as_secs_f64()
}

#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn batched_appends_against_a_bare_insert() {
    let url = server().schema();
    let store = open(&url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let session = local.block_on(&runtime, async {
        let session =
            Session::connect(&DatabaseAddress::read(&url, None).unwrap(), None).await.unwrap();
        let sql =
            "CREATE TABLE bare (run uuid, first bigint, body bytea, PRIMARY KEY (run, first))";
        session.script(sql).await.unwrap();
        session
    });
    together(&store, 0..RUNS, 0);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let began = Instant::now();
        together(&store, 0..RUNS, round);
        ours.push(began.elapsed());
        let began = Instant::now();
        local.block_on(&runtime, bare(&session, round));
        theirs.push(began.elapsed());
    }
    let (ours, theirs) = (rate(ours), rate(theirs));
    eprintln!("{ours:.0} appends/s, {theirs:.0} bare rows/s, ratio {:.2}", ours / theirs);
    eprintln!("{:?}", store.gauges());
}

#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn three_nodes_together_against_one() {
    let url = server().schema();
    let nodes: Vec<PostgresStore> = (0..3).map(|_| open(&url)).collect();
    together(&nodes[0], 0..RUNS, 0);
    let (mut one, mut three) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        together(&nodes[0], 0..RUNS, 2 * round + 1);
        one.push(began.elapsed());
        let began = Instant::now();
        std::thread::scope(|threads| {
            for (number, store) in (0..).zip(&nodes) {
                let share = number * (RUNS / 3)..(number + 1) * (RUNS / 3);
                threads.spawn(move || together(store, share, 2 * round + 2));
            }
        });
        three.push(began.elapsed());
    }
    let (one, three) = (rate(one), rate(three));
    eprintln!("one {one:.0} appends/s, three {three:.0}, ratio {:.2}", three / one);
}
