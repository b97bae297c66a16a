//! Stores with a key: rows of another process, and stores from before the key.

use super::*;
use crate::authentic::{Keyed, Mark};
use sluice_core::evidence::mac::MacKey;
use sluice_core::port::inspect::Stored;
use sluice_core::port::ledger::Ledger as _;
use sluice_core::port::store::ReadMessage;
use sluice_testing::conformance::authentic::{Exposed, check_authentic, key};
use sluice_testing::conformance::inspect::{everything, is_foreign};
use sluice_testing::conformance::rolled_back::check_rolled_back;
use sluice_testing::conformance::{entry, hashed};
use std::collections::BTreeMap;

fn sql(dir: &Path, sql: &str) {
    rusqlite::Connection::open(dir.join(FILE)).unwrap().execute_batch(sql).unwrap();
}

/// An empty store, and access to its file.
pub(super) fn exposed(dirs: &mut Vec<TempDir>) -> Exposed {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock::default());
    let store = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
    wait(store.adopt(key(), Doubts::default())).unwrap();
    let path = dir.path().to_owned();
    dirs.push(dir);
    let opened = Arc::clone(&store);
    let adopt = Arc::new(move || wait(opened.adopt(key(), Doubts::default())).unwrap());
    Exposed { store, clock, sql: Arc::new(move |text| sql(&path, text)), adopt }
}

#[test]
fn what_another_hand_wrote_is_not_used() {
    let mut dirs = Vec::new();
    check_authentic(|| exposed(&mut dirs));
}

#[test]
fn a_registry_that_another_hand_rolled_back_is_not_used() {
    let mut dirs = Vec::new();
    check_rolled_back(|| exposed(&mut dirs));
}

/// One row of several tables, written before there was a key.
fn from_before(dir: &TempDir) {
    let store = opened(dir);
    append(&store, hashed(first(run(1))));
    append(&store, Append { snapshot: Some(b"state".to_vec()), ..hashed(plain(run(1), 1)) });
    append(&store, hashed(first(run(2))));
    wait(store.post(message(run(1), "read"))).unwrap();
    append(
        &store,
        Append {
            read: vec![ReadMessage { id: 1, key: "read".to_owned() }],
            ..hashed(plain(run(1), 2))
        },
    );
    wait(store.post(message(run(1), "a"))).unwrap();
    for writer in [4, 5] {
        wait(store.record(node(writer), vec![entry("one"), entry("two")])).unwrap();
    }
    assert!(wait(store.load(run(1))).unwrap().unwrap().snapshot.is_some());
}

#[test]
fn a_store_from_before_keys_is_adopted_but_for_what_is_in_doubt() {
    let dir = tempfile::tempdir().unwrap();
    from_before(&dir);
    let store = opened(&dir);
    assert_eq!(store.marked(&key()), Mark::Missing);
    let entries = BTreeMap::from([(node(5), 2)]);
    let doubts = Doubts { runs: [run(2)].into(), entries };
    wait(store.adopt(key(), doubts)).unwrap();
    let loaded = wait(store.load(run(1))).unwrap().unwrap();
    assert_eq!((loaded.snapshot, loaded.frames.len()), (None, 3));
    assert!(!loaded.has_foreign_snapshot);
    assert!(matches!(wait(store.load(run(2))), Err(StoreError::Corrupt(_))));
    assert!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap()[0].is_authentic);
    let is_message = |row: &Stored| matches!(row, Stored::Message { .. });
    let shown = everything(&store);
    assert_eq!(shown.iter().filter(|row| is_message(row) && !is_foreign(row)).count(), 2);
    let found = wait(store.entries(0, 9)).unwrap();
    assert_eq!(
        found.iter().map(|one| one.is_authentic).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    drop(store);
    // From then on it has a mark, which only one key matches.
    let store = opened(&dir);
    assert_eq!(store.marked(&key()), Mark::Own);
    assert_eq!(store.marked(&MacKey::derive(&[8; 32])), Mark::Foreign);
}

#[test]
fn without_the_key_a_marked_store_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    assert_eq!(store.marked(&key()), Mark::Empty);
    wait(store.adopt(key(), Doubts::default())).unwrap();
    append(&store, first(run(1)));
    drop(store);
    let store = opened(&dir);
    assert!(wait(store.load(run(1))).unwrap().is_some());
    let refused = [
        wait(store.append(Arc::new(plain(run(1), 1)))).map(drop),
        wait(store.post(message(run(1), "a"))).map(drop),
        wait(store.record(node(1), vec![entry("said")])),
    ];
    for one in refused {
        let why = one.unwrap_err().to_string();
        assert!(why.contains("seal.key"), "{why}");
    }
    store.unlock(key());
    append(&store, plain(run(1), 1));
}
