//! How an inspection reports changes by another process, and a damaged file.

use super::authentic::exposed;
use super::*;
use sluice_core::port::inspect::Stored;
use sluice_core::port::ledger::Ledger as _;
use sluice_testing::conformance::inspect::Detection::{self, Changed, Damaged, Foreign};
use sluice_testing::conformance::inspect::{Attack, check_inspect, everything};
use sluice_testing::conformance::{entry, hashed};
use std::os::unix::fs::FileExt as _;

/// Changes of tables that only this store has.
const ATTACKS: &[(&str, Detection)] = &[
    ("UPDATE tip SET version = version + 1 WHERE run = 3", Damaged("tip")),
    ("UPDATE tip SET frames = frames + 1 WHERE run = 3", Damaged("tip")),
    ("UPDATE tip SET seq = seq - 1 WHERE run = 3", Damaged("tip")),
    ("DELETE FROM tip WHERE run = 2", Damaged("tip")),
    ("INSERT INTO tip VALUES (99, 0, 0, 0)", Damaged("tip")),
    ("UPDATE mark SET seq = seq - 1", Damaged("mark")),
    ("UPDATE mark SET first = first - 1", Damaged("mark")),
    ("UPDATE mark SET run = 1", Damaged("mark")),
    ("INSERT INTO mark VALUES (99, 1, 1)", Damaged("mark")),
    ("INSERT INTO mark VALUES (3, 2, 1)", Damaged("mark")),
    ("UPDATE frame SET prev = prev - 1 WHERE first = 5", Damaged("frame")),
    ("UPDATE frame SET prev = 0 WHERE first = 5", Damaged("frame")),
    ("UPDATE frame SET run = 0 WHERE first = 5", Damaged("frame")),
    ("UPDATE frame SET run = 2 WHERE first = 5", Damaged("tip")),
    ("UPDATE frame SET seq = 5000 WHERE first = 5", Damaged("frame")),
    ("DELETE FROM frame WHERE first = 5", Damaged("frame")),
    (
        "INSERT INTO frame (run, prev, first, count, chain, mac, body)
         SELECT 99, 0, 1, 1, chain, mac, body FROM frame WHERE seq = 1",
        Damaged("frame"),
    ),
    (
        "INSERT INTO frame (run, prev, first, count, chain, mac, body)
         SELECT run, seq, first + count, 1, chain, mac, body FROM frame
         WHERE seq = (SELECT seq FROM tip WHERE run = 3)",
        Damaged("tip"),
    ),
    ("UPDATE beside SET seq = 5000", Damaged("beside")),
    ("UPDATE letter SET run = 99", Damaged("letter")),
    ("UPDATE memo SET run = 99", Damaged("memo")),
    ("UPDATE snapshot SET run = 99", Damaged("snapshot")),
    ("UPDATE snapshot SET run = 3", Foreign("snapshot")),
    ("UPDATE frame SET seq = 5000 WHERE count = 2", Changed("frame")),
    ("UPDATE slot SET count = 'many'", Damaged("slot")),
    ("UPDATE key SET run = 'none'", Damaged("key")),
    ("UPDATE run SET started_at = 'then' WHERE num = 2", Damaged("run")),
    ("UPDATE frame SET count = 'few' WHERE first = 5", Damaged("frame")),
    ("DROP TABLE taking", Damaged("taking")),
    (
        "CREATE TRIGGER quiet AFTER INSERT ON entry
         BEGIN DELETE FROM entry WHERE place = new.place; END",
        Foreign("schema"),
    ),
    ("CREATE VIEW other AS SELECT id FROM run", Foreign("schema")),
    ("CREATE TABLE other (n)", Foreign("schema")),
    ("ALTER TABLE slot DROP COLUMN why", Damaged("slot")),
];

#[test]
fn every_change_by_another_process_shows() {
    let mut dirs = Vec::new();
    let own: Vec<Attack> =
        ATTACKS.iter().map(|(sql, detection)| Attack { sql, detection: *detection }).collect();
    check_inspect(|| exposed(&mut dirs), &own, 70);
}

/// Overwrites a page of the entry table.
fn overwrite_a_page_of_entries(dir: &TempDir) {
    let file = dir.path().join(FILE);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'";
    let root: u32 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(connection);
    let file = std::fs::File::options().read(true).write(true).open(&file).unwrap();
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, u64::from(root - 1) * 4096).unwrap();
    assert_eq!(page[0], 5, "the table has more than one page");
    // The page that the tenth cell of the root refers to.
    let cell = usize::from(u16::from_be_bytes([page[12 + 20], page[12 + 21]]));
    let leaf = u32::from_be_bytes(page[cell..cell + 4].try_into().unwrap());
    file.write_all_at(&[0xa5; 4096], u64::from(leaf - 1) * 4096).unwrap();
}

#[test]
fn what_lies_behind_a_damaged_page_is_still_shown() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = opened(&dir);
        append(&store, hashed(first(run(1))));
        wait(store.record(node(1), vec![entry("said"); 400])).unwrap();
    }
    overwrite_a_page_of_entries(&dir);
    let rows = everything(&opened(&dir));
    let damaged = rows.iter().filter(|row| matches!(row, Stored::Damaged { .. }));
    assert_eq!(damaged.count(), 1, "{rows:?}");
    let entries = rows.iter().filter_map(|row| match row {
        Stored::Entry(entry) => Some(entry.place),
        _ => None,
    });
    let entries: Vec<u64> = entries.collect();
    assert!(entries.len() > 350 && entries.len() < 400, "{}", entries.len());
    assert_eq!((entries[0], entries[entries.len() - 1]), (1, 400));
    assert!(matches!(rows.last(), Some(Stored::Run(_))));
}
