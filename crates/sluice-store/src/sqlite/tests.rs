mod authentic;
mod inspect;
mod kill;
mod ledger;
mod many;
mod old;
mod pages;

use super::*;
use crate::authentic::Keyed as _;
use crate::memory::MemoryStore;
use proptest::prelude::*;
use sluice_core::evidence::mac::Doubts;
use sluice_core::hash::Hash;
use sluice_core::port::store::{Blob, StoreError};
use sluice_testing::conformance::{
    self, Bench, DONE, SetClock, first, guard, message, node, plain, refused, released, run, wait,
    wait_all,
};
use std::path::PathBuf;
use tempfile::TempDir;

fn open(dir: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(dir, Arc::new(SetClock::default()))
}

fn opened(dir: &TempDir) -> SqliteStore {
    open(dir.path()).unwrap()
}

fn append(store: &SqliteStore, append: Append) -> Appended {
    wait(store.append(Arc::new(append))).unwrap()
}

/// A store whose directory lives as long as the returned guard.
fn bench(dirs: &mut Vec<TempDir>) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock::default());
    let store = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
    dirs.push(dir);
    Bench { store, clock }
}

/// The same with a key.
fn keyed_bench(dirs: &mut Vec<TempDir>) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock::default());
    let store = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
    wait(store.adopt(conformance::authentic::key(), Doubts::default())).unwrap();
    dirs.push(dir);
    Bench { store, clock }
}

#[test]
fn sqlite_is_a_store() {
    let mut dirs = Vec::new();
    conformance::check(|| bench(&mut dirs));
}

#[test]
fn sqlite_with_a_key_is_a_store() {
    let mut dirs = Vec::new();
    conformance::check(|| keyed_bench(&mut dirs));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scripts_leave_the_same_on_memory_and_sqlite(
        commands in prop::collection::vec(any::<u64>(), 1..120)
    ) {
        let clock = Arc::new(SetClock::default());
        let memory = Bench { store: Arc::new(MemoryStore::new(clock.clone())), clock };
        let mut dirs = Vec::new();
        let sqlite = keyed_bench(&mut dirs);
        let expected = conformance::script::transcript(&memory, &commands);
        prop_assert_eq!(conformance::script::transcript(&sqlite, &commands), expected);
    }
}

#[test]
fn everything_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let body = b"blob".to_vec();
    let guard = |max| vec![guard("c", 1, Some(max))];
    let (loaded, rows) = {
        let store = opened(&dir);
        append(&store, first(run(1)));
        append(&store, Append { head: Some(released(Some(7))), ..first(run(2)) });
        wait(store.post(message(run(1), "a"))).unwrap();
        let blobs = vec![Blob { hash: Hash::of(&body), body: body.clone() }];
        let snapshot = Some(b"state".to_vec());
        append(&store, Append { blobs, snapshot, guards: guard(1), ..plain(run(1), 1) });
        append(&store, plain(run(1), 2));
        let rows = wait(store.list(Filter::default())).unwrap();
        (wait(store.load(run(1))).unwrap(), rows)
    };
    assert!(!dir.path().join("sluice.db-wal").exists(), "the log was folded in");
    let store = opened(&dir);
    assert_eq!(wait(store.load(run(1))).unwrap(), loaded);
    assert_eq!(wait(store.list(Filter::default())).unwrap(), rows);
    assert_eq!(wait(store.messages(Mailboxes::Run(run(1)))).unwrap().len(), 1);
    assert_eq!(wait(store.blob(Hash::of(&body))).unwrap(), Some(body));
    assert_eq!(append(&store, plain(run(1), 2)), Appended::Conflict);
    let guarded = Append { guards: guard(1), ..plain(run(1), 3) };
    assert_eq!(append(&store, guarded), refused("c", 1));
    assert_eq!(append(&store, plain(run(1), 3)), DONE);
}

#[test]
fn two_processes_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    append(&one, first(run(1)));
    for after in (1..20).step_by(2) {
        // Each has cached the run, and must notice that the other has written.
        assert_eq!(append(&other, plain(run(1), after)), DONE);
        assert_eq!(append(&one, plain(run(1), after)), Appended::Conflict);
        assert_eq!(append(&one, plain(run(1), after + 1)), DONE);
    }
    let guards = vec![guard("c", 1, Some(1))];
    let guarded = |after| Append { guards: guards.clone(), ..plain(run(1), after) };
    assert_eq!(append(&one, guarded(21)), Appended::Done { counts: vec![1] });
    assert_eq!(append(&other, guarded(22)), refused("c", 1));
    assert_eq!(wait(one.load(run(1))).unwrap(), wait(other.load(run(1))).unwrap());
    assert_eq!(wait(one.load(run(1))).unwrap().unwrap().frames.len(), 22);
}

#[test]
fn two_processes_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [opened(&dir), opened(&dir)];
    std::thread::scope(|threads| {
        for (number, store) in (1..).zip(&stores) {
            threads.spawn(move || {
                append(store, first(run(number)));
                for after in 1..100 {
                    assert_eq!(append(store, plain(run(number), after)), DONE);
                }
            });
        }
    });
    for number in [1, 2] {
        let loaded = wait(stores[0].load(run(number))).unwrap().unwrap();
        assert_eq!(loaded.frames.len(), 100);
    }
}

#[test]
fn a_change_by_another_process_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    append(&one, first(run(1)));
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| wait(one.changed(100)));
        wait(other.post(message(run(1), "a"))).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(wait(one.messages(Mailboxes::Run(run(1)))).unwrap().len(), 1);
    // Also a change that happened while no caller waited.
    wait(other.post(message(run(1), "b"))).unwrap();
    wait(one.changed(100));
}

#[test]
fn its_own_changes_are_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    append(&store, first(run(1)));
    let mut changed = store.changed(100);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(changed.as_mut().poll(&mut context).is_pending());
    append(&store, plain(run(1), 1));
    append(&store, plain(run(1), 2));
    assert!(changed.as_mut().poll(&mut context).is_pending());
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    append(&store, first(run(1)));
    append(&store, first(run(2)));
    store.writer.pages(1);
    let body = vec![7; 100_000];
    let full = "the store is unavailable: the disk is full";
    let guards = vec![guard("c", 1, Some(1))];
    for _ in 0..3 {
        let guards = guards.clone();
        let large = Append { body: body.clone(), guards, ..plain(run(1), 1) };
        assert_eq!(wait(store.append(Arc::new(large))).unwrap_err().to_string(), full);
    }
    assert_eq!(wait(store.load(run(1))).unwrap().unwrap().frames.len(), 1);
    // The other writes of the transaction fail with it, and none is stored.
    let large = store.append(Arc::new(Append { body: body.clone(), ..plain(run(1), 1) }));
    let outcomes = wait_all(vec![
        large,
        store.append(Arc::new(Append { body: body.clone(), ..plain(run(2), 1) })),
    ]);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(StoreError::Unavailable(_)))));
    store.writer.pages(1_000_000);
    // The cached counters were dropped too.
    let large = Append { body, guards, ..plain(run(1), 1) };
    assert_eq!(append(&store, large), Appended::Done { counts: vec![1] });
    assert_eq!(append(&store, plain(run(2), 1)), DONE);
}

#[test]
fn a_database_of_a_newer_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(opened(&dir));
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    let error = open(dir.path()).err().unwrap();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("written by a newer Sluice"), "{error}");
}

#[test]
fn a_migration_that_was_altered_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(opened(&dir));
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.execute("UPDATE migration SET checksum = x'00' WHERE number = 1", []).unwrap();
    assert!(matches!(open(dir.path()).err().unwrap(), OpenError::Altered { number: 1 }));
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    std::fs::write(&file, "not a database, however long one looks at it".repeat(100)).unwrap();
    let error = open(dir.path()).err().unwrap();
    assert!(matches!(&error, OpenError::Damaged { path } if *path == file), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(&file.join("store")).err().unwrap();
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
}

#[test]
fn damage_is_told_from_a_missing_run() {
    let dir = tempfile::tempdir().unwrap();
    let body = b"blob".to_vec();
    let hash = Hash::of(&body);
    {
        let store = opened(&dir);
        append(&store, Append { blobs: vec![Blob { hash, body }], ..first(run(1)) });
        append(&store, plain(run(1), 1));
        append(&store, first(run(2)));
    }
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.execute("DELETE FROM frame WHERE first = 1 AND seq = 1", []).unwrap();
    file.execute("UPDATE blob SET body = x'00'", []).unwrap();
    file.close().unwrap();
    let store = opened(&dir);
    assert!(matches!(wait(store.load(run(1))), Err(StoreError::Corrupt(_))));
    assert!(matches!(wait(store.blob(hash)), Err(StoreError::Corrupt(_))));
    assert!(wait(store.load(run(2))).unwrap().is_some());
    assert!(wait(store.load(run(3))).unwrap().is_none());
}

#[test]
fn a_process_that_died_is_noticed_by_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    wait(one.renew(node(1), 1_000_000)).unwrap();
    append(&one, first(run(1)));
    assert_eq!(wait(other.take(run(1), node(2))).unwrap(), Taken::Held(node(1)));
    // The operating system does this when a process is killed.
    drop(one);
    let claim = Claim { run: run(1), epoch: 2, from: Some(node(1)) };
    assert_eq!(wait(other.claim(node(2), 0, 10)).unwrap(), [claim]);
    assert_eq!(lock_files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn a_lock_file_that_vanished_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    wait(one.renew(node(1), 1000)).unwrap();
    append(&one, first(run(1)));
    std::fs::remove_file(&lock_files(&dir)[0]).unwrap();
    wait(one.renew(node(1), 1000)).unwrap();
    assert_eq!(wait(other.take(run(1), node(2))).unwrap(), Taken::Held(node(1)));
    wait(one.leave(node(1))).unwrap();
    assert_eq!(lock_files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn what_dead_processes_left_is_swept_on_opening() {
    let dir = tempfile::tempdir().unwrap();
    let one = opened(&dir);
    wait(one.renew(node(1), 1000)).unwrap();
    std::fs::write(dir.path().join("nodes").join(format!("{:032x}.lock", 9)), "").unwrap();
    assert_eq!(lock_files(&dir).len(), 2);
    drop(opened(&dir));
    assert_eq!(lock_files(&dir).len(), 1);
}

fn lock_files(dir: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.path().join("nodes")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[cfg(unix)]
#[test]
fn the_directory_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep").join("store");
    drop(open(&path).unwrap());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn appends_that_wait_together_are_committed_together() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    for number in 1..=64 {
        append(&store, first(run(number)));
    }
    let before = store.gauges();
    let answers = (1..=64).map(|number| store.append(Arc::new(plain(run(number), 1)))).collect();
    assert!(wait_all(answers).into_iter().all(|outcome| outcome.unwrap() == DONE));
    let after = store.gauges();
    assert_eq!(after.appends - before.appends, 64);
    assert!(after.commits - before.commits < 64, "{before:?} {after:?}");
    assert_eq!((after.batches.iter().sum::<u64>(), after.writes), (after.commits, 128));
    assert!(after.batches[0] >= 64 && after.batches[0] < after.commits, "{after:?}");
    assert_eq!(after.writes_waiting, 0);
}

#[test]
fn a_write_at_fault_does_not_hit_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    for number in 1..=20 {
        append(&store, first(run(number)));
    }
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    let trigger = "CREATE TRIGGER bad BEFORE INSERT ON frame WHEN NEW.body = x'0bad'
                   BEGIN SELECT RAISE(ABORT, 'bad'); END";
    file.execute_batch(trigger).unwrap();
    let body = |number| if number == 10 { vec![0x0b, 0xad] } else { vec![7] };
    let sent = |number| Append { body: body(number), ..plain(run(number), 1) };
    let outcomes = wait_all((1..=20).map(|number| store.append(Arc::new(sent(number)))).collect());
    for (number, outcome) in (1..).zip(outcomes) {
        match outcome {
            Ok(appended) => assert_eq!((number == 10, appended), (false, DONE)),
            Err(error) => assert_eq!((number, error.to_string().contains("bad")), (10, true)),
        }
    }
    assert_eq!(append(&store, plain(run(10), 1)), DONE);
}

#[test]
fn more_writes_than_places_wait_for_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    append(&store, first(run(1)));
    let count = crate::limits::WRITES_WAITING_MAX + 100;
    let posts = (0..count).map(|number| store.post(message(run(1), &number.to_string())));
    let outcomes = wait_all(posts.collect());
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap() == Posted::Done));
    let received = wait(store.messages(Mailboxes::Run(run(1)))).unwrap();
    assert_eq!(received.len(), crate::limits::MESSAGES_MAX);
}

#[test]
fn two_processes_do_not_use_one_node_id() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (opened(&dir), opened(&dir));
    wait(one.renew(node(1), 1000)).unwrap();
    let error = wait(other.renew(node(1), 1000)).unwrap_err().to_string();
    assert!(error.contains("another process uses the same node id"), "{error}");
    wait(other.renew(node(2), 1000)).unwrap();
}

#[test]
fn a_store_that_is_opened_to_be_read_refuses_writes_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let read_only = || SqliteStore::open_read_only(dir.path(), Arc::new(SetClock::default()));
    assert!(read_only().is_err() && !dir.path().join(FILE).exists(), "nothing is made");
    let store = opened(&dir);
    assert_eq!(append(&store, first(run(1))), DONE);
    drop(store);
    let names = || {
        let files = std::fs::read_dir(dir.path()).unwrap();
        files.map(|file| file.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let store = read_only().unwrap();
    assert_eq!(wait(store.list(Filter::default())).unwrap().len(), 1);
    let refused = wait(store.renew(node(2), 1000)).unwrap_err();
    assert_eq!(refused.to_string(), "the store is unavailable: the database is read-only");
    // Writes by another process are visible.
    let other = opened(&dir);
    assert_eq!(append(&other, first(run(2))), DONE);
    assert_eq!(wait(store.list(Filter::default())).unwrap().len(), 2);
    drop(store);
    drop(other);
    assert_eq!(names(), before);
}

#[test]
fn an_older_database_is_not_brought_up_to_date_by_reading() {
    let dir = tempfile::tempdir().unwrap();
    drop(opened(&dir));
    let connection = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 8).unwrap();
    let opened = SqliteStore::open_read_only(dir.path(), Arc::new(SetClock::default()));
    assert!(matches!(opened, Err(OpenError::Older { found: 8, .. })));
}
