//! The yardstick: what SQLite alone does on this disk.

use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of one step each.
const ROW_BYTES: usize = 350;
/// Rows in one commit.
const GROUP: usize = 64;

/// A bare table, and a connection that commits durably.
pub(crate) struct Bare(Connection);

impl Bare {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Bare> {
        let connection = Connection::open(dir.join("bare.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, body BLOB)")?;
        Ok(Bare(connection))
    }

    /// Rows a second, 64 in a commit.
    pub(crate) fn rows(&mut self, rows: usize) -> anyhow::Result<Duration> {
        let body = vec![7u8; ROW_BYTES];
        let begun = Instant::now();
        for _ in 0..rows.div_ceil(GROUP) {
            let transaction = self.0.transaction()?;
            {
                let mut insert =
                    transaction.prepare_cached("INSERT INTO row (body) VALUES (?1)")?;
                for _ in 0..GROUP {
                    insert.execute([&body])?;
                }
            }
            transaction.commit()?;
        }
        Ok(begun.elapsed())
    }

    /// The time of one commit of one row.
    pub(crate) fn commit(&mut self) -> anyhow::Result<Duration> {
        let body = vec![7u8; ROW_BYTES];
        let begun = Instant::now();
        let transaction = self.0.transaction()?;
        transaction.prepare_cached("INSERT INTO row (body) VALUES (?1)")?.execute([&body])?;
        transaction.commit()?;
        Ok(begun.elapsed())
    }
}
