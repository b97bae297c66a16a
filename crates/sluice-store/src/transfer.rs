//! Transfers a SQLite store into a schema of a PostgreSQL database.
//!
//! The source is locked meanwhile. A digest over all its rows identifies it and is
//! stored with the progress in the target: an interrupted transfer resumes only from
//! the same rows. Rows are copied in bounded batches, in key order. At the end both
//! sides are read again and compared row by row.
//!
//! INVARIANT: a schema whose transfer has not ended is not a store. Only the transfer
//! can open it.

pub(crate) mod table;

use crate::limits::{TRANSFER_BYTES_MAX, TRANSFER_ROWS_MAX};
use crate::postgres::target::{Target, TransferState};
use crate::postgres::{self, PostgresStore, Time};
use crate::sqlite;
use crate::sqlite::source::Source;
use sluice_core::hash::Hash;
use sluice_core::port::store::NodeId;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use table::{Cell, Cells, Table};

/// A transfer that did not complete. Starting it again resumes it, unless it is
/// refused.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The directory has no store.
    #[error("there is no store in {}", dir.display())]
    NoSource {
        /// The directory.
        dir: PathBuf,
    },
    /// The source cannot be opened.
    #[error(transparent)]
    Source(sqlite::OpenError),
    /// Another process has the source open.
    #[error("another process has the store open")]
    Busy,
    /// A node is working on the source.
    #[error("a node is still running on the store: {:032x}", node.0)]
    InUse {
        /// The node whose lease is valid.
        node: NodeId,
    },
    /// The target cannot be opened.
    #[error(transparent)]
    Target(postgres::OpenError),
    /// The target has rows that no transfer wrote.
    #[error("the target is not empty: it has rows in `{table}`")]
    NotEmpty {
        /// A table that has rows.
        table: &'static str,
    },
    /// The target has a part of a different store, or of an earlier state of this one.
    #[error("the target holds data of another store, or of an earlier state of this one")]
    Foreign,
    /// A newer transfer into the same target has started.
    #[error("another transfer into the same target has taken over")]
    TakenOver,
    /// A row of the target differs from the source.
    #[error("the two sides differ: the row {key} of `{table}`")]
    Differs {
        /// The table that has the row.
        table: &'static str,
        /// Key of the row.
        key: String,
    },
    /// The source cannot be read.
    #[error("the store cannot be read: {0}")]
    Read(String),
    /// The target failed.
    #[error("the target failed: {0}")]
    Write(String),
    /// The progress callback stopped the transfer.
    #[error("the transfer was stopped")]
    Stopped,
}

/// The phase of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Copying rows.
    Copying,
    /// Comparing the rows of both sides.
    Comparing,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub doing: Doing,
    /// The current table.
    pub table: &'static str,
    /// Rows of the table done so far.
    pub rows: u64,
    /// Rows of the table in total.
    pub of: u64,
}

/// A table with its content, the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Name of the table.
    pub table: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Digest over all rows, in key order.
    pub digest: Hash,
}

/// Progress callback. It can stop the transfer, which resumes when it is started again.
pub type ProgressCallback<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A transfer. It locks the source until it is dropped.
pub struct Transfer {
    source: Source,
    url: String,
    schema: Option<String>,
    carried: Vec<Carried>,
    state: TransferState,
    bytes_max: usize,
}

/// Number of rows, and the digest over them.
struct Digest {
    rows: u64,
    hash: Hash,
    written: Vec<u8>,
}

impl Digest {
    fn new(table: Table) -> Digest {
        let hash = Hash::of(table.name().as_bytes());
        Digest { rows: 0, hash, written: Vec::new() }
    }

    fn add(&mut self, row: &[Cell]) {
        self.written.clear();
        self.written.extend_from_slice(&self.hash.0);
        row.iter().for_each(|cell| cell.write(&mut self.written));
        self.hash = Hash::of(&self.written);
        self.rows += 1;
    }

    fn summary(self, table: Table) -> Carried {
        Carried { table: table.name(), rows: self.rows, digest: self.hash }
    }
}

impl Transfer {
    /// Locks the store of a directory, and starts or resumes its transfer into a schema
    /// of a database. Without a name, the database's default schema is used. Like every
    /// blocking method here, it must not be called within a runtime.
    pub fn begin(
        dir: &Path,
        url: &str,
        schema: Option<&str>,
        now_ms: u64,
    ) -> Result<Transfer, TransferError> {
        let source = Source::lock(dir, now_ms)?;
        let mut carried = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            let mut digest = Digest::new(table);
            source.each(table, None, &mut |row| {
                digest.add(&row);
                Ok(())
            })?;
            carried.push(digest.summary(table));
        }
        let target = Target::open(url, schema).map_err(TransferError::Target)?;
        let state = target.begin(identity(&carried))?;
        let bytes_max = TRANSFER_BYTES_MAX;
        let (url, schema) = (url.to_owned(), schema.map(str::to_owned));
        Ok(Transfer { source, url, schema, carried, state, bytes_max })
    }

    /// Whether an earlier attempt has completed the transfer.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended
    }

    /// The tables of the source.
    pub fn carried(&self) -> &[Carried] {
        &self.carried
    }

    /// Copies the missing rows, then compares everything.
    pub fn carry(&mut self, on_progress: ProgressCallback<'_>) -> Result<(), TransferError> {
        let target = self.open_target()?;
        let current = Table::ALL.iter().position(|table| table.name() == self.state.at);
        for (number, table) in Table::ALL.into_iter().enumerate() {
            if current.is_none_or(|current| number >= current) {
                self.copy(&target, table, on_progress)?;
            }
        }
        for (number, table) in Table::ALL.into_iter().enumerate() {
            self.compare(&target, table, self.carried[number].rows, on_progress)?;
        }
        Ok(())
    }

    /// Opens the target as a store before the transfer ends.
    pub fn target(&self, time: Time) -> Result<PostgresStore, postgres::OpenError> {
        PostgresStore::open_unfinished(&self.url, self.schema.as_deref(), time)
    }

    /// Marks the transfer as complete, which makes the target a store. The source stays
    /// locked.
    pub fn end(&mut self) -> Result<(), TransferError> {
        let target = self.open_target()?;
        if !target.end(self.state.turn)? {
            return Err(TransferError::TakenOver);
        }
        self.state.has_ended = true;
        Ok(())
    }

    /// Renames the source's file, so that no process uses it again, and returns the new
    /// path. Fails if another process has written to it.
    pub fn retire(self) -> Result<PathBuf, TransferError> {
        self.source.retire()
    }

    fn open_target(&self) -> Result<Target, TransferError> {
        Target::open(&self.url, self.schema.as_deref()).map_err(TransferError::Target)
    }

    fn copy(
        &mut self,
        target: &Target,
        table: Table,
        on_progress: ProgressCallback<'_>,
    ) -> Result<(), TransferError> {
        let of = self.rows_of(table);
        let is_begun = self.state.at == table.name();
        let mut copied = if is_begun { u64::try_from(self.state.copied).unwrap_or(0) } else { 0 };
        // The row of positions exists from the beginning, so it says nothing about the
        // progress.
        let after = if table == Table::Position { None } else { target.last(table)? };
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut put = |batch: &mut Vec<Cells>| -> Result<(), TransferError> {
            copied += batch.len() as u64;
            let rows = i64::try_from(copied).unwrap_or(i64::MAX);
            if !target.put(self.state.turn, table, batch, rows)? {
                return Err(TransferError::TakenOver);
            }
            batch.clear();
            let doing = Doing::Copying;
            report(on_progress, Progress { doing, table: table.name(), rows: copied, of })
        };
        self.source.each(table, after.as_deref(), &mut |row| {
            bytes += row.iter().map(Cell::bytes).sum::<usize>();
            batch.push(row);
            if bytes >= self.bytes_max || batch.len() >= TRANSFER_ROWS_MAX {
                put(&mut batch)?;
                bytes = 0;
            }
            Ok(())
        })?;
        if batch.is_empty() { Ok(()) } else { put(&mut batch) }
    }

    fn rows_of(&self, table: Table) -> u64 {
        let carried = self.carried.iter().find(|carried| carried.table == table.name());
        carried.map_or(0, |carried| carried.rows)
    }

    fn compare(
        &self,
        target: &Target,
        table: Table,
        of: u64,
        on_progress: ProgressCallback<'_>,
    ) -> Result<(), TransferError> {
        let doing = Doing::Comparing;
        let (mut target_rows, mut digest) = (target.rows(table), Digest::new(table));
        self.source.each(table, None, &mut |row| {
            let arrived = target_rows.next()?;
            if arrived.as_ref() != Some(&row) {
                return Err(differs(table, &row));
            }
            digest.add(&row);
            if digest.rows.is_multiple_of(TRANSFER_ROWS_MAX as u64) {
                report(
                    on_progress,
                    Progress { doing, table: table.name(), rows: digest.rows, of },
                )?;
            }
            Ok(())
        })?;
        if let Some(row) = target_rows.next()? {
            return Err(differs(table, &row));
        }
        report(on_progress, Progress { doing, table: table.name(), rows: digest.rows, of })
    }
}

/// Digest that identifies a store by its content.
fn identity(carried: &[Carried]) -> Hash {
    let digests = carried.iter().flat_map(|carried| carried.digest.0);
    Hash::of(&digests.collect::<Vec<u8>>())
}

fn differs(table: Table, row: &[Cell]) -> TransferError {
    let key: Vec<String> = table.key_of(row).iter().map(Cell::short_text).collect();
    TransferError::Differs { table: table.name(), key: key.join(" ") }
}

fn report(on_progress: ProgressCallback<'_>, progress: Progress) -> Result<(), TransferError> {
    match on_progress(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TransferError::Stopped),
    }
}

#[cfg(test)]
mod tests;
