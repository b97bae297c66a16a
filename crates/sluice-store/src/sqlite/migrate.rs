//! Migrates a database to the current schema.
//!
//! Migrations are numbered files, applied in one transaction that holds the write lock,
//! so that two starting processes do not race. The checksum of each applied migration
//! is stored: a released migration never changes.

use super::connect::OpenError;
use rusqlite::{Connection, OptionalExtension as _, params};
use sluice_core::hash::Hash;
use std::cmp::Ordering;

pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_journal.sql"),
    include_str!("migrations/0002_ledger.sql"),
    include_str!("migrations/0003_beside.sql"),
    include_str!("migrations/0004_triggers.sql"),
    include_str!("migrations/0005_memo.sql"),
    include_str!("migrations/0006_initiator.sql"),
    include_str!("migrations/0007_webhooks.sql"),
    include_str!("migrations/0008_asking.sql"),
    include_str!("migrations/0009_authentic.sql"),
];

const CHECKSUMS: &str = "
    CREATE TABLE IF NOT EXISTS migration (
        number   INTEGER PRIMARY KEY, -- its place in the order, from 1
        checksum BLOB NOT NULL        -- SHA-256 of the file that was applied
    )";

/// Applies the missing migrations. Refuses a schema of a newer version.
pub(super) fn migrate(connection: &Connection) -> Result<(), OpenError> {
    let found = version(connection)?;
    if found > MIGRATIONS.len() {
        return Err(OpenError::Newer { found, known: MIGRATIONS.len() });
    }
    if found == MIGRATIONS.len() {
        return verify(connection, found);
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    // On failure the transaction stays open; it ends with the connection.
    let found = version(connection)?;
    connection.execute_batch(CHECKSUMS)?;
    verify(connection, found.min(MIGRATIONS.len()))?;
    for (number, sql) in (1..).zip(MIGRATIONS).skip(found) {
        connection.execute_batch(sql)?;
        let checksum = Hash::of(sql.as_bytes()).0;
        connection
            .execute("INSERT INTO migration VALUES (?1, ?2)", params![number, &checksum[..]])?;
        connection.pragma_update(None, "user_version", number)?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}

/// Refuses a database with any other schema.
pub(super) fn check(connection: &Connection) -> Result<(), OpenError> {
    let (found, known) = (version(connection)?, MIGRATIONS.len());
    match found.cmp(&known) {
        Ordering::Greater => Err(OpenError::Newer { found, known }),
        Ordering::Less => Err(OpenError::Older { found, known }),
        Ordering::Equal => verify(connection, found),
    }
}

pub(super) fn version(connection: &Connection) -> Result<usize, OpenError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}

/// Whether the first `count` migrations are those that were applied.
fn verify(connection: &Connection, count: usize) -> Result<(), OpenError> {
    for (number, sql) in (1i64..).zip(&MIGRATIONS[..count]) {
        let find = "SELECT checksum FROM migration WHERE number = ?1";
        let applied: Option<Vec<u8>> =
            connection.query_row(find, [number], |row| row.get(0)).optional()?;
        if applied.as_deref() != Some(&Hash::of(sql.as_bytes()).0[..]) {
            return Err(OpenError::Altered { number });
        }
    }
    let find = "SELECT number FROM migration WHERE number NOT BETWEEN 1 AND ?1";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let other = connection.query_row(find, [count], |row| row.get(0)).optional()?;
    other.map_or(Ok(()), |number| Err(OpenError::Altered { number }))
}
