//! The source of a transfer: locked, and read table by table.
//!
//! INVARIANT: the write lock is held from the first read to the last, so all rows are
//! of one moment.

mod select;

use super::column::{int, node_id};
use super::connect;
use super::fault::Fault;
use super::node_locks::NodeLocks;
use super::{FILE, claim};
use crate::limits::TRANSFER_LOCK_MS;
use crate::transfer::TransferError;
use crate::transfer::table::{Cell, Cells, ColumnType, Table};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql, params};
use sluice_core::port::store::NodeId;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// New name of the database file after a completed transfer.
const RETIRED: &str = "sluice.db.moved";

/// The database of a directory. No other process can write to it until this is dropped.
pub(crate) struct Source {
    connection: Connection,
    file: PathBuf,
}

impl Source {
    /// Takes the write lock. Refuses if a node is alive, or if any other process has
    /// the database open: a suspended process could resume later and write.
    pub(crate) fn lock(dir: &Path, now_ms: u64) -> Result<Source, TransferError> {
        let file = dir.join(FILE);
        if !file.exists() {
            return Err(TransferError::NoSource { dir: dir.to_owned() });
        }
        let opened = connect::writer(&file).map_err(|error| error.with_path(&file));
        let connection = opened.map_err(TransferError::Source)?;
        connection.busy_timeout(Duration::from_millis(TRANSFER_LOCK_MS)).map_err(busy)?;
        let source = Source { connection, file };
        source.refuse_live_nodes(dir, now_ms)?;
        // SQLite refuses to change the journal mode of a file that another process has
        // open.
        source.set_mode("delete")?;
        source.set_mode("wal")?;
        source.execute("BEGIN IMMEDIATE")?;
        source.refuse_live_nodes(dir, now_ms)?;
        Ok(source)
    }

    fn execute(&self, sql: &str) -> Result<(), TransferError> {
        self.connection.execute_batch(sql).map_err(busy)
    }

    fn set_mode(&self, mode: &str) -> Result<(), TransferError> {
        let sql = format!("PRAGMA journal_mode = {mode}");
        let set = self.connection.query_row(&sql, [], |row| row.get::<_, String>(0));
        if set.map_err(busy)? == mode { Ok(()) } else { Err(TransferError::Busy) }
    }

    fn refuse_live_nodes(&self, dir: &Path, now_ms: u64) -> Result<(), TransferError> {
        match self.live_node(dir, now_ms).map_err(unreadable)? {
            Some(node) => Err(TransferError::InUse { node }),
            None => Ok(()),
        }
    }

    /// A node that is alive, if there is one.
    fn live_node(&self, dir: &Path, now_ms: u64) -> Result<Option<NodeId>, Fault> {
        let locks = NodeLocks::open(dir.join("nodes"));
        let mut statement = self.connection.prepare("SELECT id FROM node WHERE ends_at > ?1")?;
        let mut rows = statement.query(params![int(now_ms)])?;
        while let Some(row) = rows.next()? {
            let node = node_id(row.get(0)?);
            if claim::is_live(&self.connection, &locks, node, now_ms)? {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// Calls `each` for every row of a table after `after`, in key order.
    pub(crate) fn each(
        &self,
        table: Table,
        after: Option<&[Cell]>,
        each: &mut dyn FnMut(Cells) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let failed = |error: rusqlite::Error| unreadable(error.into());
        let sql = select::sql(table, after);
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let after = after.unwrap_or_default();
        let mut rows = statement.query(rusqlite::params_from_iter(after)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            each(self.read(table, row).map_err(unreadable)?)?;
        }
        Ok(())
    }

    /// Renames the file, if no other process has it open and its log is empty. A
    /// remaining log would be applied to the next database with that name.
    pub(crate) fn retire(self) -> Result<PathBuf, TransferError> {
        let failed = |error: rusqlite::Error| unreadable(error.into());
        let changes = |connection: &Connection| -> rusqlite::Result<i64> {
            connection.query_row("PRAGMA data_version", [], |row| row.get(0))
        };
        let before = changes(&self.connection).map_err(failed)?;
        self.connection.execute_batch("ROLLBACK").map_err(failed)?;
        self.set_mode("delete")?;
        self.execute("BEGIN EXCLUSIVE")?;
        if changes(&self.connection).map_err(failed)? != before {
            return Err(TransferError::Busy);
        }
        let retired = self.file.with_file_name(RETIRED);
        let renamed = std::fs::rename(&self.file, &retired);
        renamed.map_err(|error| TransferError::Read(error.to_string()))?;
        Ok(retired)
    }

    fn read(&self, table: Table, row: &rusqlite::Row<'_>) -> Result<Cells, Fault> {
        let mut cells = cells(table, row)?;
        if table == Table::Window
            && let Some(slices) = cells.get_mut(3)
        {
            *slices = Cell::Bytes(self.slices(row)?);
        }
        Ok(cells)
    }

    /// The slices of a window, in the encoding of the target.
    fn slices(&self, row: &rusqlite::Row<'_>) -> Result<Vec<u8>, Fault> {
        let sql = "SELECT number, count FROM slice WHERE name = ?1 AND max(window, 1) = ?2
                   ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql)?;
        let (name, window): (Value, i64) = (row.get(0)?, row.get(1)?);
        let mut slices = statement.query(params![name, window])?;
        let mut bytes = Vec::new();
        while let Some(slice) = slices.next()? {
            for at in 0..2 {
                bytes.extend(slice.get::<_, i64>(at)?.to_be_bytes());
            }
        }
        Ok(bytes)
    }
}

/// Selects the rows of a table after `after`, in key order.
pub(super) fn select_after(table: Table, after: Option<&[Cell]>) -> String {
    select::sql(table, after)
}

/// Selects at most `limit` rows of a table after `after`, in key order.
pub(super) fn select_page(table: Table, after: Option<&[Cell]>, limit: usize) -> String {
    format!("{} LIMIT {limit}", select::sql(table, after))
}

/// Converts a row of a table.
pub(super) fn cells(table: Table, row: &rusqlite::Row<'_>) -> Result<Cells, Fault> {
    let mut cells = Cells::with_capacity(table.columns().len());
    for (at, (name, kind)) in table.columns().iter().enumerate() {
        let cell = cell(row.get_ref(at)?, *kind);
        let invalid =
            || Fault::Corrupt(format!("{name} of a {} has an invalid value", table.name()));
        cells.push(cell.ok_or_else(invalid)?);
    }
    Ok(cells)
}

fn cell(value: ValueRef<'_>, kind: ColumnType) -> Option<Cell> {
    match (value, kind) {
        (ValueRef::Null, _) => Some(Cell::None),
        (ValueRef::Integer(number), ColumnType::Int | ColumnType::Small) => Some(Cell::Int(number)),
        (ValueRef::Integer(number), ColumnType::Flag) => Some(Cell::Flag(number != 0)),
        (ValueRef::Blob(bytes), ColumnType::Id) => {
            Some(Cell::Id(u128::from_be_bytes(bytes.try_into().ok()?)))
        }
        (ValueRef::Blob(bytes), ColumnType::Bytes) => Some(Cell::Bytes(bytes.to_vec())),
        (ValueRef::Text(text), ColumnType::Text | ColumnType::Plain) => {
            Some(Cell::Text(String::from_utf8(text.to_vec()).ok()?))
        }
        _ => None,
    }
}

/// Key cells as SQLite stores them.
impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::None => ToSqlOutput::Owned(Value::Null),
            Cell::Id(id) => ToSqlOutput::Owned(Value::Blob(id.to_be_bytes().to_vec())),
            Cell::Int(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Cell::Flag(flag) => ToSqlOutput::Owned(Value::Integer(i64::from(*flag))),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

fn busy(error: rusqlite::Error) -> TransferError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TransferError::Busy,
        _ => unreadable(error.into()),
    }
}

fn unreadable(fault: Fault) -> TransferError {
    match fault {
        Fault::Environment(why) | Fault::Log(why) | Fault::Corrupt(why) | Fault::Statement(why) => {
            TransferError::Read(why)
        }
    }
}
