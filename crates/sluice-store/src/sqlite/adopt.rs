//! Adoption of a MAC key by an existing store.
//!
//! Rows from before the key have no MACs. The writer adds them table by table, in
//! bounded batches, and marks the store at the end.

use super::SqliteStore;
use super::fault::Fault;
use super::registry;
use super::source::{cells, select_page};
use super::writer::Work;
use crate::authentic::{FoundMark, Keyed, Mark, TABLES, row_mac};
use crate::limits::{ADOPT_BYTES_MAX, ADOPT_ROWS_MAX};
use crate::newest_rows::MARK;
use crate::transfer::table::{Cell, Cells, Table};
use rusqlite::{Connection, params, params_from_iter};
use sluice_core::evidence::mac::{Doubts, MacKey};
use sluice_core::port::store::Answer;
use std::sync::Arc;

impl Keyed for SqliteStore {
    fn marked(&self, key: &MacKey) -> Mark {
        self.shared.keys.mark(key)
    }

    fn is_marked(&self) -> bool {
        self.shared.keys.is_marked()
    }

    fn adopt(&self, key: MacKey, doubts: Doubts) -> Answer<'_, ()> {
        Box::pin(async move {
            let given = Arc::new((key, doubts));
            for table in TABLES {
                let mut after = None;
                loop {
                    let (given, from) = (Arc::clone(&given), after.take());
                    let adopt =
                        move |work: &mut Work<'_>| batch(work, &given, table, from.as_ref());
                    match self.writer.write(0, adopt).await? {
                        Some(last) => after = Some(last),
                        None => break,
                    }
                }
            }
            let key = given.0.clone();
            self.writer.write(0, move |work| write_mark(work, &key)).await?;
            self.unlock(given.0.clone());
            Ok(())
        })
    }

    fn unlock(&self, key: MacKey) {
        self.shared.keys.set(key);
    }
}

/// Reads the mark of the store. A process that adopts a key at the same time writes the
/// mark before any other row, so rows are checked before the mark.
pub(super) fn find(connection: &Connection) -> Result<FoundMark, rusqlite::Error> {
    let mut unmarked = FoundMark::Empty;
    for table in TABLES {
        if connection.prepare(&format!("SELECT 1 FROM {}", table.target()))?.exists([])? {
            unmarked = FoundMark::Unmarked;
            break;
        }
    }
    let mut marks = connection.prepare("SELECT one, mark FROM authentic LIMIT 3")?;
    let marks = marks.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(FoundMark::from_rows(marks.collect::<Result<_, _>>()?, unmarked))
}

/// Marks the store and writes the head of its registry. Deletes all snapshots: they are made again from authentic journals.
fn write_mark(work: &mut Work<'_>, key: &MacKey) -> Result<(), Fault> {
    work.connection.execute("DELETE FROM snapshot", [])?;
    let sql = "INSERT OR REPLACE INTO authentic (one, mark) VALUES (?1, ?2)";
    work.connection.execute(sql, params![MARK, key.mark().0])?;
    registry::adopt_head(work.connection, key)
}

/// Adds MACs to the next batch of rows after a key. Returns the last key of the batch,
/// or `None` at the end of the table.
fn batch(
    work: &mut Work<'_>,
    (key, doubts): &(MacKey, Doubts),
    table: Table,
    after: Option<&Cells>,
) -> Result<Option<Cells>, Fault> {
    let sql = select_page(table, after.map(Vec::as_slice), ADOPT_ROWS_MAX);
    let mut statement = work.connection.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten()))?;
    let (mut last, mut bytes, mut found) = (None, 0, Vec::new());
    while bytes < ADOPT_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        let row = cells(table, row)?;
        bytes += row.iter().map(Cell::bytes).sum::<usize>();
        last = Some(table.key_of(&row));
        // The MAC is the last column of each of these tables.
        let has = row.last();
        if let Some(mac) = row_mac(key, doubts, table, &row).map(Cell::Bytes)
            && has != Some(&mac)
        {
            found.push((table.key_of(&row), mac));
        }
    }
    drop(rows);
    let mut update = work.connection.prepare(update(table))?;
    for (at, mac) in found {
        update.execute(params_from_iter([mac].iter().chain(&at)))?;
    }
    Ok(last)
}

/// Sets the MAC of the row with a key.
fn update(table: Table) -> &'static str {
    match table {
        Table::Frame => "UPDATE frame SET mac = ?1 WHERE seq = ?2",
        Table::Entry => "UPDATE entry SET mac = ?1 WHERE place = ?2",
        Table::Message => {
            "UPDATE letter SET mac = ?1
             WHERE run = (SELECT num FROM run WHERE id = ?2) AND key = ?3"
        }
        Table::Key => "UPDATE key SET mac = ?1 WHERE key = ?2",
        Table::Slot => "UPDATE slot SET mac = ?1 WHERE schedule = ?2 AND at = ?3",
        Table::RememberedOutput => "UPDATE memo SET mac = ?1 WHERE agent = ?2 AND place = ?3",
        _ => "UPDATE registry SET mac = ?1 WHERE kind = ?2 AND name = ?3 AND epoch = ?4",
    }
}
