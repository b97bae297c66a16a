//! Checkpoints of the write-ahead log.
//!
//! The writer runs them. After a complete checkpoint the next transaction starts at the
//! front of the log, so its file is overwritten and seldom grows. That also makes
//! commits cheaper: the file size need not be synced each time.

use crate::limits::{BUSY_MS, IDLE_MS, LOG_PAGES_MAX, TRUNCATE_LOG_MS};
use rusqlite::Connection;
use std::time::{Duration, Instant};

/// Commits and bytes between two checks of the log's size.
const COMMITS_PER_LOOK: u32 = 32;
const BYTES_PER_LOOK: usize = 1024 * 1024;

#[derive(Default)]
pub(super) struct WriteAheadLog {
    /// Time of the last write since the last checkpoint.
    written: Option<Instant>,
    commits: u32,
    bytes: usize,
    /// Whether the file may hold erased payloads.
    erased: bool,
}

impl WriteAheadLog {
    /// Whether there is something to checkpoint.
    pub(super) fn needs_checkpoint(&self) -> bool {
        self.written.is_some() || self.erased
    }

    /// Records a transaction. Checkpoints if the log has become long.
    pub(super) fn record_transaction(&mut self, connection: &Connection, bytes: usize) {
        self.written = Some(Instant::now());
        self.commits += 1;
        self.bytes += bytes;
        if self.commits < COMMITS_PER_LOOK && self.bytes < BYTES_PER_LOOK {
            return;
        }
        (self.commits, self.bytes) = (0, 0);
        self.truncate_erased(connection);
        if pages(connection).is_some_and(|pages| pages >= LOG_PAGES_MAX) {
            self.checkpoint(connection);
        }
    }

    /// Records that payloads were erased, so the log must be truncated.
    pub(super) fn holds_erased(&mut self) {
        self.erased = true;
    }

    /// Checkpoints and truncates the file if it holds erased payloads. If a reader
    /// blocks that for longer than `TRUNCATE_LOG_MS`, it is retried when the log has grown
    /// or is idle.
    pub(super) fn truncate_erased(&mut self, connection: &Connection) {
        if !self.erased {
            return;
        }
        let patience = |ms| connection.busy_timeout(Duration::from_millis(ms));
        let busy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let _ = patience(TRUNCATE_LOG_MS);
        let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], busy);
        let _ = patience(BUSY_MS);
        self.erased = emptied != Ok(0);
    }

    /// Checkpoints if nothing was written for a while.
    pub(super) fn checkpoint_idle(&mut self, connection: &Connection) {
        self.truncate_erased(connection);
        let idle = |written: Instant| written.elapsed() >= Duration::from_millis(IDLE_MS);
        if self.written.is_some_and(idle) {
            self.checkpoint(connection);
        }
    }

    /// Checkpoints as much as readers allow, without waiting for them.
    fn checkpoint(&mut self, connection: &Connection) {
        self.written = None;
        // A failed checkpoint loses nothing: the log remains for the next one.
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

/// Pages in the log that are not in the database yet.
fn pages(connection: &Connection) -> Option<i64> {
    let sizes = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (log, checkpointed) =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], sizes).ok()?;
    Some(log - checkpointed)
}
