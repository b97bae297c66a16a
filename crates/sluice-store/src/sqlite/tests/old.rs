//! Migration of databases of earlier versions.

use super::*;
use sluice_core::port::feed::Feed as _;
use sluice_core::port::ledger::Ledger as _;
use sluice_testing::conformance::hashed;

/// A database as the first version left it: two runs with interleaved frames, and a
/// frame that no journal refers to.
fn first_version(dir: &TempDir) {
    let sql = include_str!("../migrations/0001_journal.sql");
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    file.execute_batch(sql).unwrap();
    file.execute_batch(
        "CREATE TABLE migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL);
         PRAGMA user_version = 1;
         INSERT INTO frame VALUES (1, 0, 1, 1, 'a1'), (2, 0, 1, 2, 'b1'), (3, 1, 2, 3, 'a2'),
                                  (4, 0, 9, 1, 'lost'), (5, 3, 5, 1, 'a5'), (6, 2, 3, 1, 'b3');
         UPDATE frame SET body = CAST(body AS BLOB);
         INSERT INTO tip VALUES (1, 5, 5, 3), (2, 3, 6, 2);
         INSERT INTO counter VALUES ('c', 7);",
    )
    .unwrap();
    let checksum = Hash::of(sql.as_bytes()).0;
    file.execute("INSERT INTO migration VALUES (1, ?1)", [&checksum[..]]).unwrap();
    let sql = "INSERT INTO run (num, id, workflow, status, started_at, owner, epoch)
               VALUES (?1, ?2, 'review', 'running', 900, ?3, 1)";
    for num in [1i64, 2] {
        let id = column::run_bytes(run(10 * u128::from(num.unsigned_abs())));
        file.execute(sql, rusqlite::params![num, id, column::node_bytes(node(1))]).unwrap();
    }
}

#[test]
fn an_old_database_keeps_its_frames() {
    let dir = tempfile::tempdir().unwrap();
    first_version(&dir);
    let store = opened(&dir);
    let frames = |number| -> Vec<(u64, u32, String, usize)> {
        let frames = wait(store.frames(run(number), 0, usize::MAX)).unwrap();
        let text = |body| String::from_utf8(body).unwrap();
        let shown = |one: Frame| (one.first, one.count, text(one.body), one.chain.len());
        frames.into_iter().map(shown).collect()
    };
    let a = [(1, 1, "a1"), (2, 3, "a2"), (5, 1, "a5")];
    assert_eq!(frames(10), a.map(|(first, count, body)| (first, count, body.to_owned(), 0)));
    let b = [(1, 2, "b1"), (3, 1, "b3")];
    assert_eq!(frames(20), b.map(|(first, count, body)| (first, count, body.to_owned(), 0)));
    // It continues from there: seals skip old frames, and cover new ones.
    assert_eq!(append(&store, hashed(plain(run(10), 5))), DONE);
    let unsealed = wait(store.unsealed(10)).unwrap();
    assert_eq!(unsealed.upto.frames, 7);
    let heads: Vec<_> = unsealed.heads.iter().map(|(run, version, _)| (*run, *version)).collect();
    assert_eq!(heads, [(run(10), 6)]);
    let guarded = Append { guards: vec![guard("c", 1, Some(7))], ..plain(run(20), 3) };
    assert_eq!(append(&store, guarded), refused("c", 7));
    // The feed leaves out the frame that no journal refers to. The initiators are
    // unknown.
    let fed = wait(store.feed(0, usize::MAX)).unwrap();
    assert_eq!(fed.iter().map(|placed| placed.place).collect::<Vec<_>>(), [1, 2, 3, 5, 6, 7]);
    assert_eq!(fed.iter().filter(|placed| placed.run == run(20)).count(), 2);
    let rows = wait(store.list(Filter::default())).unwrap();
    assert_eq!(rows.iter().map(|row| row.initiator.as_str()).collect::<Vec<_>>(), ["", ""]);
}

#[test]
fn old_frames_learn_which_run_they_belong_to() {
    let dir = tempfile::tempdir().unwrap();
    first_version(&dir);
    drop(opened(&dir));
    let file = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    let mut sql = file.prepare("SELECT run FROM frame ORDER BY seq").unwrap();
    let runs: Vec<i64> = sql.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(runs, [1, 2, 1, 0, 1, 2]);
    // It is migrated only once.
    drop(opened(&dir));
}
