//! Carries everything of a SQLite store into a schema of a PostgreSQL database.
//!
//! The source is held still meanwhile. What tells it apart is a digest over all
//! its rows, kept with the progress in the target: a transfer that was cut off is
//! gone on with from the same rows or not at all. Rows go in batches of bounded
//! size, in the order of their keys; in the end both sides are read again and
//! compared, row by row.
//!
//! INVARIANT: a schema whose transfer has not ended is no store. Nobody opens it
//! but whoever carries things into it.

pub(crate) mod table;

use crate::limits::{TRANSFER_BYTES_MAX, TRANSFER_ROWS_MAX};
use crate::postgres::target::{State, Target};
use crate::postgres::{self, PostgresStore, Time};
use crate::sqlite;
use crate::sqlite::source::Source;
use sluice_core::port::store::{Hash, NodeId};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use table::{Cell, Row, Table};

/// A transfer that did not end. Begun again it goes on, unless it is refused.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// There is nothing to carry over.
    #[error("there is no store in {}", dir.display())]
    NoSource {
        /// Where one was looked for.
        dir: PathBuf,
    },
    /// The source cannot be opened.
    #[error(transparent)]
    Source(sqlite::OpenError),
    /// Somebody else has the source open.
    #[error("another process has the store open")]
    Busy,
    /// A node works on the source.
    #[error("a node still works on the store: {:032x}", node.0)]
    InUse {
        /// Which.
        node: NodeId,
    },
    /// The target cannot be opened.
    #[error(transparent)]
    Target(postgres::OpenError),
    /// The target has things in it that are not from a transfer.
    #[error("the target is not empty: it has rows in `{table}`")]
    NotEmpty {
        /// A table that has rows.
        table: &'static str,
    },
    /// The target has a part of another store, or of this one as it was before.
    #[error(
        "the target holds what was transferred from another store, or from this one before it changed"
    )]
    Foreign,
    /// Another transfer into the same target was begun since.
    #[error("another transfer into the same target has taken over")]
    TakenOver,
    /// What arrived is not what was there.
    #[error("the two sides differ: the row {key} of `{table}`")]
    Differs {
        /// The table.
        table: &'static str,
        /// What tells the row apart.
        key: String,
    },
    /// The source cannot be read.
    #[error("the store cannot be read: {0}")]
    Read(String),
    /// The target failed.
    #[error("the target failed: {0}")]
    Write(String),
    /// Whoever was told of the progress wanted no more of it.
    #[error("the transfer was stopped")]
    Stopped,
}

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Rows are copied.
    Copying,
    /// Rows of both sides are compared.
    Comparing,
}

/// How far a transfer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is under way.
    pub doing: Doing,
    /// The table under way.
    pub table: &'static str,
    /// How many of its rows are done.
    pub rows: u64,
    /// How many it has.
    pub of: u64,
}

/// A table, as it is on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its name.
    pub table: &'static str,
    /// How many rows it has.
    pub rows: u64,
    /// A digest over all of them, in the order of their keys.
    pub digest: Hash,
}

/// Who is told of the progress. Its answer may end the transfer, which goes on
/// when it is begun again.
pub type Told<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A transfer. The source is held as long as this is.
pub struct Transfer {
    source: Source,
    url: String,
    schema: Option<String>,
    carried: Vec<Carried>,
    state: State,
    bytes_max: usize,
}

/// How many rows there were, and the digest over them.
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

    fn of(self, table: Table) -> Carried {
        Carried { table: table.name(), rows: self.rows, digest: self.hash }
    }
}

impl Transfer {
    /// Holds the store of a directory, and begins to carry it into a schema of a
    /// database, or goes on with that. Without a name it is the database's own.
    /// Like whatever waits here, it may not be called within a runtime.
    pub fn begin(
        dir: &Path,
        url: &str,
        schema: Option<&str>,
        now_ms: u64,
    ) -> Result<Transfer, TransferError> {
        let source = Source::hold(dir, now_ms)?;
        let mut carried = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            let mut digest = Digest::new(table);
            source.each(table, None, &mut |row| {
                digest.add(&row);
                Ok(())
            })?;
            carried.push(digest.of(table));
        }
        let target = Target::open(url, schema).map_err(TransferError::Target)?;
        let state = target.begin(identity(&carried))?;
        let bytes_max = TRANSFER_BYTES_MAX;
        let (url, schema) = (url.to_owned(), schema.map(str::to_owned));
        Ok(Transfer { source, url, schema, carried, state, bytes_max })
    }

    /// Whether it has ended before: there is nothing left to do.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended
    }

    /// What the source holds, table by table.
    pub fn carried(&self) -> &[Carried] {
        &self.carried
    }

    /// Copies what is missing, then compares everything.
    pub fn carry(&mut self, told: Told<'_>) -> Result<(), TransferError> {
        let target = self.reach()?;
        let under_way = Table::ALL.iter().position(|table| table.name() == self.state.at);
        for (number, table) in Table::ALL.into_iter().enumerate() {
            if under_way.is_none_or(|under_way| number >= under_way) {
                self.copy(&target, table, told)?;
            }
        }
        for (number, table) in Table::ALL.into_iter().enumerate() {
            self.compare(&target, table, self.carried[number].rows, told)?;
        }
        Ok(())
    }

    /// The target as a store, before it is one for others.
    pub fn target(&self, time: Time) -> Result<PostgresStore, postgres::OpenError> {
        PostgresStore::open_unfinished(&self.url, self.schema.as_deref(), time)
    }

    /// Says that the target is a store from now on. The source is held on.
    pub fn end(&mut self) -> Result<(), TransferError> {
        let target = self.reach()?;
        if !target.end(self.state.turn)? {
            return Err(TransferError::TakenOver);
        }
        self.state.has_ended = true;
        Ok(())
    }

    /// Gives the source's file another name, so that nobody works on it a second time.
    /// Answers that name. Refused where somebody has written to it since.
    pub fn retire(self) -> Result<PathBuf, TransferError> {
        self.source.retire()
    }

    fn reach(&self) -> Result<Target, TransferError> {
        Target::open(&self.url, self.schema.as_deref()).map_err(TransferError::Target)
    }

    fn copy(&mut self, target: &Target, table: Table, told: Told<'_>) -> Result<(), TransferError> {
        let of = self.rows_of(table);
        let is_begun = self.state.at == table.name();
        let mut copied = if is_begun { u64::try_from(self.state.copied).unwrap_or(0) } else { 0 };
        // The row of positions is there from the beginning, and says nothing.
        let after = if table == Table::Position { None } else { target.last(table)? };
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut put = |batch: &mut Vec<Row>| -> Result<(), TransferError> {
            copied += batch.len() as u64;
            let rows = i64::try_from(copied).unwrap_or(i64::MAX);
            if !target.put(self.state.turn, table, batch, rows)? {
                return Err(TransferError::TakenOver);
            }
            batch.clear();
            let doing = Doing::Copying;
            tell(told, Progress { doing, table: table.name(), rows: copied, of })
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
        told: Told<'_>,
    ) -> Result<(), TransferError> {
        let doing = Doing::Comparing;
        let (mut there, mut digest) = (target.rows(table), Digest::new(table));
        self.source.each(table, None, &mut |row| {
            let arrived = there.next()?;
            if arrived.as_ref() != Some(&row) {
                return Err(differs(table, &row));
            }
            digest.add(&row);
            if digest.rows.is_multiple_of(TRANSFER_ROWS_MAX as u64) {
                tell(told, Progress { doing, table: table.name(), rows: digest.rows, of })?;
            }
            Ok(())
        })?;
        if let Some(row) = there.next()? {
            return Err(differs(table, &row));
        }
        tell(told, Progress { doing, table: table.name(), rows: digest.rows, of })
    }
}

/// What tells a store apart: everything that is in it.
fn identity(carried: &[Carried]) -> Hash {
    let digests = carried.iter().flat_map(|carried| carried.digest.0);
    Hash::of(&digests.collect::<Vec<u8>>())
}

fn differs(table: Table, row: &[Cell]) -> TransferError {
    let key: Vec<String> = table.key_of(row).iter().map(Cell::shown).collect();
    TransferError::Differs { table: table.name(), key: key.join(" ") }
}

fn tell(told: Told<'_>, progress: Progress) -> Result<(), TransferError> {
    match told(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TransferError::Stopped),
    }
}

#[cfg(test)]
mod tests;
