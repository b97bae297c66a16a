//! Reads everything in the file at one moment, for a verification.
//!
//! INVARIANT: one read transaction lasts from the first row to the last, so that all
//! rows are of one moment, even while other connections write.

mod schema;
mod structure;

use super::SqliteStore;
use super::column::{run_id, uint};
use super::fault::{Fault, describe};
use super::read;
use super::registry;
use super::source::{cells, select_after};
use crate::authentic::Keys;
use crate::inspect::{
    NO_RUN, ORDER, Skip, SnapshotRow, damaged, is_numbered, rolled_back, stored, unreadable,
};
use crate::transfer::table::{Cell, Cells, Table};
use rusqlite::{Connection, ErrorCode, params_from_iter};
use sluice_core::port::inspect::{Each, FrameAt, Inspect, Stored};
use sluice_core::port::store::Answer;

impl Inspect for SqliteStore {
    fn inspect(&self, mut each: Each) -> Answer<'_, ()> {
        Box::pin(self.readers.read(move |reader| {
            let moment = reader.connection.unchecked_transaction()?;
            let keys = &reader.shared.keys;
            Inspector { connection: &moment, keys, each: &mut each }.inspect()
        }))
    }
}

/// Reads the tables one after the other.
struct Inspector<'a> {
    connection: &'a Connection,
    keys: &'a Keys,
    each: &'a mut Each,
}

impl Inspector<'_> {
    fn inspect(&mut self) -> Result<(), Fault> {
        schema::check(self.connection, self.each)?;
        for table in ORDER {
            match table {
                // SQLite does not store these: both follow from other tables.
                Table::Chain | Table::Position => {}
                Table::Run => {
                    structure::check(self.connection, self.each)?;
                    self.table(table)?;
                }
                _ => self.table(table)?,
            }
        }
        // Rows that cannot be read are reported already.
        if !registry::is_current(self.connection, self.keys).unwrap_or(true) {
            (self.each)(rolled_back());
        }
        Ok(())
    }

    /// Reads a table, skipping the parts that cannot be read.
    fn table(&mut self, table: Table) -> Result<(), Fault> {
        let mut last = None;
        loop {
            let why = match self.rows(table, &mut last) {
                Err(Fault::Corrupt(why)) => why,
                read => return read,
            };
            self.unreadable(table, last.as_deref(), &why);
            match self.skip_damage(table, last.as_deref())? {
                Some(next) => last = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Reads the rows after a key, and keeps the key of the last one. Reports and skips
    /// an invalid row; stops at an error of SQLite.
    fn rows(&mut self, table: Table, last: &mut Option<Cells>) -> Result<(), Fault> {
        let mut statement =
            self.connection.prepare(&select(table, last.as_deref())).map_err(fault)?;
        let mut rows = statement.query(params_from_iter(last.iter().flatten())).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let read = match table {
                Table::Frame => frame(row),
                Table::Snapshot => self.snapshot(row),
                _ => self.row(table, row),
            };
            match read {
                Ok((key, found)) => {
                    *last = Some(key);
                    found.into_iter().for_each(&mut self.each);
                }
                Err(Fault::Corrupt(why)) => self.unreadable(table, last.as_deref(), &why),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, table: Table, last: Option<&[Cell]>, why: &str) {
        (self.each)(damaged(table.target(), last, unreadable(why)));
    }

    /// The key after which a table can be read again; `None` if skipping is not
    /// possible or does not help.
    fn skip_damage(&self, table: Table, last: Option<&[Cell]>) -> Result<Option<Cells>, Fault> {
        if !is_numbered(table) {
            return Ok(None);
        }
        let sql = format!("{} LIMIT 1", select(table, Some(&[])));
        let mut skip = Skip::after(last);
        while let Some(key) = skip.next() {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let read = statement.query([key]).and_then(|mut rows| rows.next().map(drop));
            match read.map_err(fault) {
                Ok(()) => skip.record(key, true),
                Err(Fault::Corrupt(_)) => skip.record(key, false),
                Err(fault) => return Err(fault),
            }
        }
        Ok(skip.resume_key())
    }

    /// Reads a row that has the columns of its table.
    fn row(&self, table: Table, row: &rusqlite::Row<'_>) -> Result<Read, Fault> {
        let row = cells(table, row)?;
        let found = stored(self.keys, table, &row).map_err(|why| Fault::Corrupt(why.to_owned()))?;
        Ok((table.key_of(&row), found))
    }

    /// Reads a snapshot: id and number of its run, version, MAC and body.
    fn snapshot(&self, row: &rusqlite::Row<'_>) -> Result<Read, Fault> {
        let bytes = |at| row.get_ref(at)?.as_blob().map_err(rusqlite::Error::from);
        let (run, version) = (run_id(row.get(0)?), uint(row.get(2)?));
        let frame = match read::frame_at(self.connection, row.get(1)?, version) {
            // The journal has no such frame.
            Err(Fault::Corrupt(_)) => None,
            frame => frame?,
        };
        let snapshot = SnapshotRow {
            run,
            version,
            mac: bytes(3)?,
            body: bytes(4)?,
            frame: frame.as_ref().map(|it| (it.first, it.count, &it.chain[..], &it.mac[..])),
        };
        let is_foreign = !snapshot.is_authentic(self.keys);
        Ok((vec![Cell::Id(run.0)], is_foreign.then_some(Stored::ForeignSnapshot(run))))
    }
}

/// The key of a row, and the item to report for it.
type Read = (Cells, Option<Stored>);

/// Selects all rows of a table, or those after a key, without the bodies of frames.
fn select(table: Table, after: Option<&[Cell]>) -> String {
    let (from, beyond, order) = match table {
        Table::Frame => (
            "SELECT frame.seq, run.id, first, count FROM frame
             LEFT JOIN run ON run.num = frame.run",
            "frame.seq > ?1",
            "ORDER BY frame.seq",
        ),
        Table::Snapshot => (
            "SELECT run.id, run.num, snapshot.version, mac, body
             FROM run CROSS JOIN snapshot ON snapshot.run = run.num",
            "run.id > ?1",
            "ORDER BY run.id",
        ),
        _ => return select_after(table, after),
    };
    let beyond = if after.is_some() { format!("WHERE {beyond}") } else { String::new() };
    format!("{from} {beyond} {order}")
}

/// Reads a frame: position, run id, first event and count.
fn frame(row: &rusqlite::Row<'_>) -> Result<Read, Fault> {
    let place: i64 = row.get(0)?;
    let key = vec![Cell::Int(place)];
    let found = match row.get::<_, Option<[u8; 16]>>(1)? {
        Some(run) => Stored::Frame(FrameAt {
            place: uint(place),
            run: run_id(run),
            first: uint(row.get(2)?),
            count: row.get(3)?,
        }),
        None => damaged(Table::Frame.target(), Some(&key), NO_RUN.to_owned()),
    };
    Ok((key, Some(found)))
}

/// Classifies an error. A missing table or column is damage too: the schema was current
/// when the store was opened.
fn fault(error: rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        Some(ErrorCode::Unknown | ErrorCode::TooBig | ErrorCode::TypeMismatch) => {
            Fault::Corrupt(describe(&error))
        }
        _ => Fault::from(error),
    }
}
