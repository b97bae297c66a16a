//! The write-ahead log, folded into the database when there is time.
//!
//! Whoever writes folds: after a fold that catches everything, the next
//! transaction begins at the front of the log, so its file is written over and
//! seldom grows. That makes commits cheaper too: the file's size need not be
//! synced with every one.

use crate::limits::{BUSY_MS, EMPTY_LOG_MS, IDLE_MS, LOG_PAGES_MAX};
use rusqlite::Connection;
use std::time::{Duration, Instant};

/// Commits and bytes between two looks at the size of the log.
const COMMITS_PER_LOOK: u32 = 32;
const BYTES_PER_LOOK: usize = 1024 * 1024;

/// What is known of the log.
#[derive(Default)]
pub(super) struct Log {
    /// When something was last written that no fold has seen.
    written: Option<Instant>,
    commits: u32,
    bytes: usize,
    /// Whether the file may hold payloads that were erased.
    erased: bool,
}

impl Log {
    /// Whether there is something to fold.
    pub(super) fn is_open(&self) -> bool {
        self.written.is_some() || self.erased
    }

    /// Counts a transaction. Folds where the log has become long.
    pub(super) fn grown(&mut self, connection: &Connection, bytes: usize) {
        self.written = Some(Instant::now());
        self.commits += 1;
        self.bytes += bytes;
        if self.commits < COMMITS_PER_LOOK && self.bytes < BYTES_PER_LOOK {
            return;
        }
        (self.commits, self.bytes) = (0, 0);
        self.empty(connection);
        if pages(connection).is_some_and(|pages| pages >= LOG_PAGES_MAX) {
            self.fold(connection);
        }
    }

    /// Payloads were erased: what the file held of them must go.
    pub(super) fn holds_erased(&mut self) {
        self.erased = true;
    }

    /// Folds everything and cuts the file to nothing, if it holds erased payloads. A
    /// reader may be in the way for longer than `EMPTY_LOG_MS`; then it is tried again
    /// when the log has grown, or is idle.
    pub(super) fn empty(&mut self, connection: &Connection) {
        if !self.erased {
            return;
        }
        let patience = |ms| connection.busy_timeout(Duration::from_millis(ms));
        let busy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let _ = patience(EMPTY_LOG_MS);
        let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], busy);
        let _ = patience(BUSY_MS);
        self.erased = emptied != Ok(0);
    }

    /// Folds if nothing was written for a while.
    pub(super) fn idle(&mut self, connection: &Connection) {
        self.empty(connection);
        let idle = |written: Instant| written.elapsed() >= Duration::from_millis(IDLE_MS);
        if self.written.is_some_and(idle) {
            self.fold(connection);
        }
    }

    /// Copies what readers allow into the database. Waits for nobody.
    fn fold(&mut self, connection: &Connection) {
        self.written = None;
        // A fold that fails loses nothing: the log is still there for the next one.
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

/// Pages in the log that are not in the database yet.
fn pages(connection: &Connection) -> Option<i64> {
    let sizes = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (log, folded) = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], sizes).ok()?;
    Some(log - folded)
}
