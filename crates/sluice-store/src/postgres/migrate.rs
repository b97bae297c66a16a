//! Migrates a database to the current schema.
//!
//! Migrations are numbered files, applied in one transaction that locks a row of the
//! `migration` table, so that two starting nodes do not race. The checksum of each
//! applied migration is stored: a released migration never changes.

use super::column::get;
use super::fault::Fault;
use super::session::Session;
use crate::limits::RETRIES_MAX;
use sluice_core::hash::Hash;

pub(super) const MIGRATIONS: &[&str] =
    &[include_str!("migrations/0001_store.sql"), include_str!("migrations/0002_authentic.sql")];

/// The row with number 0 serves as the lock for migrations.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS migration (
        number   bigint PRIMARY KEY, -- its place in the order, from 1
        checksum bytea NOT NULL      -- SHA-256 of the file that was applied
    );
    INSERT INTO migration VALUES (0, '') ON CONFLICT DO NOTHING;
    CREATE TABLE IF NOT EXISTS transfer (
        one    integer PRIMARY KEY, -- always 1; there is none where nothing was carried in
        source bytea NOT NULL,      -- the digest of everything that the source has
        turn   bigint NOT NULL,     -- how often it was begun; only the newest writes
        at     text NOT NULL,       -- the table under way
        copied bigint NOT NULL,     -- how many of its rows are there
        ended  boolean NOT NULL     -- whether everything is there and was compared
    );";

/// How to treat a schema with an unfinished transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// Fail: it is not a store yet.
    Refused,
    /// Open it, to finish the transfer.
    Allowed,
}

/// A store that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not valid.
    #[error("not a valid PostgreSQL URL: {0}")]
    Url(String),
    /// A later version of Sluice has changed the schema.
    #[error(
        "the database was written by a newer Sluice: its schema is {found}, this one supports {known}"
    )]
    Newer {
        /// The schema of the database.
        found: usize,
        /// The newest schema that this version supports.
        known: usize,
    },
    /// An applied migration differs from the one in this version.
    #[error("migration {number} of the database is not the one this Sluice has")]
    Altered {
        /// Number of the migration.
        number: usize,
    },
    /// A transfer into the schema has not ended.
    #[error(
        "a transfer into this database is incomplete: run the same `sluice migrate` again to resume it"
    )]
    Unfinished,
    /// The database cannot be reached or used.
    #[error("the database cannot be opened: {0}")]
    Failed(String),
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> OpenError {
        OpenError::Failed(fault.why().to_owned())
    }
}

/// Applies the missing migrations. Refuses a schema of a newer version.
pub(super) async fn migrate(
    session: &Session,
    schema: Option<&str>,
    unfinished: Unfinished,
) -> Result<(), OpenError> {
    if let Some(schema) = schema {
        create(session, &format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema))).await?;
    }
    create(session, TABLE).await?;
    session.script("BEGIN").await?;
    // On failure the transaction stays open; it ends with the connection.
    session.query("SELECT number FROM migration WHERE number = 0 FOR UPDATE", &[]).await?;
    let sql = "SELECT one FROM transfer WHERE NOT ended";
    if unfinished == Unfinished::Refused && !session.query(sql, &[]).await?.is_empty() {
        return Err(OpenError::Unfinished);
    }
    let sql = "SELECT number, checksum FROM migration WHERE number <> 0 OR checksum <> ''
               ORDER BY number";
    let applied = session.query(sql, &[]).await?;
    let known = MIGRATIONS.len();
    if applied.len() > known {
        return Err(OpenError::Newer { found: applied.len(), known });
    }
    for (number, (row, sql)) in (1..).zip(applied.iter().zip(MIGRATIONS)) {
        let is_own = usize::try_from(get::<i64>(row, 0)?) == Ok(number);
        if !is_own || get::<&[u8]>(row, 1)? != Hash::of(sql.as_bytes()).0 {
            return Err(OpenError::Altered { number });
        }
    }
    for (number, sql) in (1i64..).zip(MIGRATIONS).skip(applied.len()) {
        session.script(sql).await?;
        let checksum = Hash::of(sql.as_bytes()).0.to_vec();
        session.query("INSERT INTO migration VALUES ($1, $2)", &[&number, &checksum]).await?;
    }
    session.script("COMMIT").await?;
    Ok(())
}

/// Creates what another node may create at the same moment.
async fn create(session: &Session, sql: &str) -> Result<(), Fault> {
    let mut created = session.script(sql).await;
    for _ in 0..RETRIES_MAX {
        if !matches!(created, Err(Fault::Conflict(_))) {
            break;
        }
        created = session.script(sql).await;
    }
    created
}

/// A quoted SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
