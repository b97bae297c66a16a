//! Brings a database to the schema this program knows.
//!
//! Migrations are numbered files, applied in one transaction that holds a row
//! of the table of migrations, so that two nodes starting at once do not race.
//! What was applied is kept with its checksum: a released migration never changes.

use super::column::get;
use super::fault::Fault;
use super::session::Session;
use crate::limits::AGAIN_MAX;
use sluice_core::port::store::Hash;

pub(super) const MIGRATIONS: &[&str] =
    &[include_str!("migrations/0001_store.sql"), include_str!("migrations/0002_authentic.sql")];

/// A row of number 0 stands for the table itself: whoever migrates locks it.
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

/// What becomes of a schema that not everything was carried into yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// It is no store.
    Refused,
    /// Whoever opens it carries the rest.
    Allowed,
}

/// A store that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL says nothing that can be connected to.
    #[error("this is no URL of a PostgreSQL database: {0}")]
    Url(String),
    /// A later version of this program has changed the schema.
    #[error(
        "the database was made by a newer Sluice: its schema is {found}, this one knows {known}"
    )]
    Newer {
        /// The database's schema.
        found: usize,
        /// The newest schema known here.
        known: usize,
    },
    /// A migration that was applied is not the one this program has.
    #[error("migration {number} of the database is not the one this Sluice has")]
    Altered {
        /// Which.
        number: usize,
    },
    /// A store is being carried into it, and not everything is there.
    #[error(
        "a store was not yet moved here as a whole: run the same `sluice migrate` again, which goes on where it was"
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

/// Applies what is missing. Refuses what a newer program has written.
pub(super) async fn migrate(
    session: &Session,
    schema: Option<&str>,
    unfinished: Unfinished,
) -> Result<(), OpenError> {
    if let Some(schema) = schema {
        make(session, &format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema))).await?;
    }
    make(session, TABLE).await?;
    session.script("BEGIN").await?;
    // A failure leaves the transaction open; it ends with the connection.
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

/// Makes what may be made by somebody else at the same moment.
async fn make(session: &Session, sql: &str) -> Result<(), Fault> {
    let mut made = session.script(sql).await;
    for _ in 0..AGAIN_MAX {
        if !matches!(made, Err(Fault::Again(_))) {
            break;
        }
        made = session.script(sql).await;
    }
    made
}

/// A name as statements write it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
