//! The ledger in a file that several processes share.

use super::*;
use sluice_core::evidence::entry::{START, link};
use sluice_core::port::ledger::{Change, Changed, Counter, Erased, Erasure, Ledger as _};
use sluice_core::port::store::Guard;
use sluice_govern::registry::{Kind, Row};
use sluice_testing::conformance::{entry, hashed};

fn windowed(max: i64) -> Vec<Guard> {
    vec![Guard { window_ms: Some(600), ..guard("w", 1, Some(max)) }]
}

fn agent(name: &str) -> Change {
    let body = serde_json::json!({ "name": name });
    let put = vec![Row { kind: Kind::Agent, name: name.to_owned(), body }];
    let entries = vec![entry("agent_changed")];
    Change { expect: None, put, remove: Vec::new(), node: node(1), entries }
}

fn rows(dir: &TempDir, table: &str) -> i64 {
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn chain(count: u64) -> Vec<Hash> {
    let next = |last: &(u64, Hash)| {
        let seq = last.0 + 1;
        Some((seq, link(&entry("agent_changed"), node(1), seq, last.1).1))
    };
    let links = std::iter::successors(Some((0, START)), next).skip(1);
    links.take(usize::try_from(count).unwrap()).map(|(_, hash)| hash).collect()
}

fn hashes(store: &SqliteStore) -> Vec<Hash> {
    wait(store.entries(0, 100)).unwrap().into_iter().map(|one| one.hash).collect()
}

#[test]
fn the_ledger_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = opened(&dir);
        append(&store, Append { guards: windowed(2), ..hashed(first(run(1))) });
        wait(store.change(agent("a"))).unwrap();
    }
    let store = opened(&dir);
    assert_eq!(wait(store.change(agent("b"))).unwrap(), Changed::Done { epoch: 2 });
    let names: Vec<String> =
        wait(store.registry(None)).unwrap().rows.into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(hashes(&store), chain(2));
    let counts = append(&store, Append { guards: windowed(2), ..plain(run(1), 1) });
    assert_eq!(counts, Appended::Done { counts: vec![2] });
    assert_eq!(append(&store, Append { guards: windowed(2), ..plain(run(1), 2) }), refused("w", 2));
    assert_eq!(wait(store.unsealed(10)).unwrap().heads.len(), 1);
}

#[test]
fn two_processes_share_counters_rows_and_chains() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    append(&one, first(run(1)));
    let under = |epoch| vec![guard("registry", 0, Some(epoch))];
    let mut after = 1;
    for epoch in (0i64..10).step_by(2) {
        // Each caches counters and chains, and must notice that the other changed them.
        let decided = Append { guards: under(epoch), ..plain(run(1), after) };
        assert_eq!(append(&one, decided.clone()), Appended::Done { counts: vec![epoch] });
        wait(other.change(agent("a"))).unwrap();
        let late = Append { after: after + 1, ..decided };
        assert_eq!(append(&one, late), refused("registry", epoch + 1));
        wait(one.change(agent("b"))).unwrap();
        after += 1;
    }
    assert_eq!(hashes(&one), chain(10));
    for (store, count) in [(&one, 1), (&other, 2), (&one, 3)] {
        let counted = Append { guards: windowed(3), ..plain(run(1), after) };
        assert_eq!(append(store, counted), Appended::Done { counts: vec![count] });
        after += 1;
    }
    assert_eq!(
        append(&other, Append { guards: windowed(3), ..plain(run(1), after) }),
        refused("w", 3)
    );
}

#[test]
fn what_was_rolled_back_is_in_no_chain_and_no_window() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    append(&store, first(run(1)));
    wait(store.change(agent("a"))).unwrap();
    store.writer.pages(1);
    let spoken = Append {
        body: vec![7; 100_000],
        guards: windowed(1),
        entries: vec![entry("agent_changed")],
        ..plain(run(1), 1)
    };
    for _ in 0..3 {
        assert!(matches!(
            wait(store.append(Arc::new(spoken.clone()))),
            Err(StoreError::Unavailable(_))
        ));
    }
    store.writer.pages(1_000_000);
    assert_eq!(append(&store, spoken), Appended::Done { counts: vec![1] });
    assert_eq!(hashes(&store), chain(2));
}

#[test]
fn slices_that_left_their_window_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock::default());
    let store = SqliteStore::open(dir.path(), clock.clone()).unwrap();
    append(&store, first(run(1)));
    for (after, now_ms) in (1..=200).zip((1000..).step_by(10)) {
        clock.set(now_ms);
        append(&store, Append { guards: windowed(100), ..plain(run(1), after) });
    }
    assert!(rows(&dir, "slice") <= 61, "{}", rows(&dir, "slice"));
    let counter = Counter { name: "w".to_owned(), window_ms: Some(600) };
    // Sixty in the window, and the slice that is leaving it.
    assert_eq!(wait(store.counts(vec![counter])).unwrap(), [61]);
    clock.set(1_000_000);
    append(&store, Append { guards: windowed(100), ..plain(run(1), 201) });
    assert_eq!(rows(&dir, "slice"), 1);
}

#[test]
fn what_is_erased_is_not_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let secrets = [
        "a small secret",
        "a large secret",
        "a blob of secrets",
        "the state of secrets",
        "a secret beside",
    ];
    let large = secrets[1].repeat(2000);
    let body = secrets[2].repeat(100);
    {
        let store = opened(&dir);
        append(&store, Append { body: secrets[0].into(), ..hashed(first(run(1))) });
        let blobs = vec![Blob { hash: Hash::of(body.as_bytes()), body: body.clone().into() }];
        let snapshot = Some(secrets[3].into());
        let beside = secrets[4].repeat(1000).into();
        append(&store, Append { body: large.into(), beside, blobs, snapshot, ..plain(run(1), 1) });
    }
    let held = |dir: &TempDir| -> Vec<bool> {
        let file = std::fs::read(dir.path().join(FILE)).unwrap();
        let has = |secret: &&str| file.windows(secret.len()).any(|part| part == secret.as_bytes());
        secrets.iter().map(has).collect()
    };
    assert_eq!(held(&dir), [true; 5]);
    let store = opened(&dir);
    let erasure = Erasure {
        run: run(1),
        bodies: vec![(1, b"{}".to_vec()), (2, b"{}".to_vec())],
        besides: vec![(2, b"{}".to_vec())],
        blobs: vec![Hash::of(body.as_bytes())],
        node: node(1),
        entries: Vec::new(),
    };
    assert_eq!(wait(store.erase(erasure)).unwrap(), Erased::Done);
    drop(store);
    assert_eq!(held(&dir), [false; 5]);
}

#[test]
#[should_panic(expected = "each event of a frame has a hash of 32 bytes")]
fn a_frame_with_too_few_hashes_is_a_broken_caller() {
    let dir = tempfile::tempdir().unwrap();
    let append = Append { count: 2, ..hashed(first(run(1))) };
    drop(opened(&dir).append(Arc::new(append)));
}

#[test]
fn a_registry_row_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    wait(store.change(agent("a"))).unwrap();
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.execute("UPDATE registry SET body = 'no'", []).unwrap();
    let error = wait(store.registry(None)).unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(why) if why.contains("\"a\"")), "{error}");
}
