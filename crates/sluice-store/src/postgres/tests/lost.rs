//! A database that goes away and comes back, and databases that are not valid targets.

use super::*;
use crate::postgres::migrate::MIGRATIONS;
use sluice_core::port::ledger::Ledger as _;
use sluice_testing::conformance::{DONE, first, message, node, plain, run, wait_all};

/// The version of a journal.
fn version(store: &PostgresStore, number: u128) -> u64 {
    let frames = wait(store.load(run(number))).unwrap().unwrap().frames;
    frames.iter().map(|frame| u64::from(frame.count)).sum()
}

#[test]
fn a_database_that_was_killed_loses_nothing_and_is_found_again() {
    let mut server = Server::start(&["fsync=on"]).unwrap();
    let store = open(&server.url());
    wait(store.renew(node(1), 1_000_000)).unwrap();
    append(&store, first(run(1)));
    let mut acknowledged = 1;
    for round in 0..3 {
        let begin = acknowledged;
        acknowledged = std::thread::scope(|threads| {
            let appending = threads.spawn(|| {
                let mut after = begin;
                loop {
                    match wait(store.append(Arc::new(plain(run(1), after)))) {
                        Ok(answer) => assert_eq!(answer, DONE),
                        Err(StoreError::Unavailable(_) | StoreError::Unknown(_)) => return after,
                        Err(error) => panic!("{error}"),
                    }
                    after += 1;
                }
            });
            std::thread::sleep(Duration::from_millis(150));
            server.kill();
            appending.join().unwrap()
        });
        assert!(acknowledged > begin, "something was written before");
        let down = wait(store.append(Arc::new(plain(run(1), acknowledged)))).unwrap_err();
        assert!(matches!(down, StoreError::Unavailable(_)), "{down}");
        assert!(matches!(wait(store.load(run(1))), Err(StoreError::Unavailable(_))));
        assert!(matches!(wait(store.renew(node(1), 5)), Err(StoreError::Unavailable(_))));
        server.restart().unwrap();
        let found = version(&store, 1);
        // The append in progress may be stored or not; no other one is affected.
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{found}, {round}");
        acknowledged = found;
        assert_eq!(append(&store, plain(run(1), acknowledged)), DONE);
        acknowledged += 1;
    }
}

#[test]
fn connections_that_are_cut_are_made_again() {
    let server = Server::start(&["fsync=on"]).unwrap();
    let store = open(&server.url());
    append(&store, first(run(1)));
    let (mut version, mut failed) = (1, 0);
    for round in 0..5 {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'sluice'";
        assert_ne!(server.psql(cut), "0", "{round}");
        for _ in 0..3 {
            match wait(store.append(Arc::new(plain(run(1), version)))) {
                Ok(answer) => assert_eq!(answer, DONE),
                Err(_) => failed += 1,
            }
            version = version_of(&store);
        }
    }
    assert!(version >= 1 + 15 - failed && failed <= 5, "{version} {failed}");
    wait(store.changed(5_000));
}

/// The version, as soon as it can be read.
fn version_of(store: &PostgresStore) -> u64 {
    for _ in 0..100 {
        if let Ok(Some(loaded)) = wait(store.load(run(1))) {
            return loaded.frames.len() as u64;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the store does not come back");
}

#[test]
fn a_node_that_stands_still_in_a_transaction_is_not_waited_for() {
    let url = server().schema();
    let store = open(&url);
    append(&store, first(run(1)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let began = Instant::now();
    // It has locked the run, and then stalls.
    let still = local.block_on(&runtime, async {
        let session =
            Session::connect(&DatabaseAddress::read(&url, None).unwrap(), None).await.unwrap();
        session.script("BEGIN").await.unwrap();
        session.query("SELECT id FROM run FOR UPDATE", &[]).await.unwrap();
        session
    });
    assert_eq!(append(&store, plain(run(1), 1)), DONE);
    assert!(began.elapsed() >= Duration::from_millis(1000), "it was locked");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let late = local.block_on(&runtime, still.query("COMMIT", &[]));
    assert!(matches!(late, Err(fault::Fault::Disconnected(_))), "{late:?}");
}

#[test]
fn a_url_may_name_several_hosts() {
    let server = Server::start(&["fsync=on"]).unwrap();
    let live = server.url();
    let several = live.replace("host=", "host=/nowhere&host=") + "&target_session_attrs=read-write";
    let store = open(&several);
    assert_eq!(append(&store, first(run(1))), DONE);
    // A read-only server is not usable.
    server.psql("ALTER SYSTEM SET default_transaction_read_only = on");
    server.psql("SELECT pg_reload_conf()");
    let refused = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        PostgresStore::open(&several, Arc::new(SetClock::default())).err()
    });
    assert!(matches!(refused, Some(OpenError::Failed(_))), "{refused:?}");
}

#[test]
fn what_cannot_be_opened_says_why() {
    let failed = |url: &str| PostgresStore::open(url, Arc::new(SetClock::default())).err().unwrap();
    let error = failed("postgres:///x?host=/nowhere&user=sluice");
    assert!(matches!(error, OpenError::Failed(_)), "{error}");
    let error = failed(&format!("{}&sslmode=require", server().url()));
    assert!(matches!(error, OpenError::Failed(_)), "asked for, and not there: {error}");
    let error = failed("not a url");
    assert!(matches!(error, OpenError::Url(_)), "{error}");
    let error = failed(&server().url().replace("/postgres?", "/missing?"));
    assert_eq!(
        error.to_string(),
        "the database cannot be opened: database \"missing\" does not exist"
    );
}

#[test]
fn a_schema_of_a_newer_program_or_of_an_altered_one_is_refused() {
    let url = server().schema();
    drop(open(&url));
    let name = url.rsplit_once("%3D").unwrap().1;
    let next = MIGRATIONS.len() + 1;
    server().psql(&format!("INSERT INTO {name}.migration VALUES ({next}, '')"));
    let error = PostgresStore::open(&url, Arc::new(SetClock::default())).err().unwrap();
    assert!(matches!(error, OpenError::Newer { found, .. } if found == next), "{error}");
    server().psql(&format!("DELETE FROM {name}.migration WHERE number = {next}"));
    server().psql(&format!("UPDATE {name}.migration SET checksum = 'x' WHERE number = 1"));
    let error = PostgresStore::open(&url, Arc::new(SetClock::default())).err().unwrap();
    assert!(matches!(error, OpenError::Altered { number: 1 }), "{error}");
}

#[test]
fn a_write_at_fault_does_not_hit_its_neighbours() {
    let store = open(&server().schema());
    append(&store, first(run(1)));
    // Larger than an index row may be, and not compressible.
    let mut bits = 7u64;
    let long: String = (0..20_000)
        .map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((bits >> 33) % 26).unwrap())
        })
        .collect();
    let key = |number: u32| if number == 10 { long.clone() } else { number.to_string() };
    let posts = (1..=20).map(|number| store.post(message(run(1), &key(number))));
    for (number, outcome) in (1..).zip(wait_all(posts.collect())) {
        match outcome {
            Ok(posted) => assert_eq!((number == 10, posted), (false, Posted::Done)),
            Err(error) => assert_eq!((number, error.to_string().contains("index")), (10, true)),
        }
    }
    assert_eq!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap().len(), 19);
}

#[test]
fn damage_is_told_from_a_missing_run() {
    let url = server().schema();
    let store = open(&url);
    for number in [1, 2] {
        append(&store, first(run(number)));
        append(&store, plain(run(number), 1));
    }
    let name = url.rsplit_once("%3D").unwrap().1;
    let id = "00000000-0000-0000-0000-000000000001";
    server().psql(&format!("DELETE FROM {name}.frame WHERE run = '{id}' AND first = 2"));
    assert!(matches!(wait(store.load(run(1))), Err(StoreError::Corrupt(_))));
    assert!(wait(store.load(run(2))).unwrap().is_some());
    assert!(wait(store.load(run(3))).unwrap().is_none());
}

#[test]
fn leases_are_measured_by_the_clock_of_the_database() {
    let url = server().schema();
    let (one, other) = (
        PostgresStore::open_by(&url, Time::Database).unwrap(),
        PostgresStore::open_by(&url, Time::Database).unwrap(),
    );
    wait(one.renew(node(1), 400)).unwrap();
    append(&one, first(run(1)));
    assert_eq!(wait(other.take(run(1), node(2))).unwrap(), Taken::Held(node(1)));
    assert_eq!(wait(other.claim(node(2), 0, 9)).unwrap(), []);
    let claims = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let claims = wait(other.claim(node(2), 0, 9)).unwrap();
        (!claims.is_empty()).then_some(claims)
    });
    assert_eq!(claims.unwrap(), [Claim { run: run(1), epoch: 2, from: Some(node(1)) }]);
    assert_eq!(append(&one, plain(run(1), 1)), Appended::NotOwner);
    wait(one.record(node(1), Vec::new())).unwrap();
}

#[test]
fn appends_that_wait_together_are_committed_together() {
    let store = open(&server().schema());
    for number in 1..=64 {
        append(&store, first(run(number)));
    }
    let before = store.gauges();
    let answers = (1..=64).map(|number| store.append(Arc::new(plain(run(number), 1)))).collect();
    assert!(wait_all(answers).into_iter().all(|outcome| outcome.unwrap() == DONE));
    let after = store.gauges();
    assert_eq!(after.appends - before.appends, 64);
    assert!(after.commits - before.commits < 16, "{before:?} {after:?}");
    assert_eq!(after.writes_waiting, 0);
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let server = Server::start(&[]).unwrap();
    let url = server.url();
    let dir = url.split_once("host=").unwrap().1.to_owned();
    assert!(std::path::Path::new(&dir).exists());
    drop(server);
    assert!(!std::path::Path::new(&dir).exists(), "its directory goes with it");
    assert!(PostgresStore::open(&url, Arc::new(SetClock::default())).is_err());
}
