//! The yardstick: what the database alone does on this disk.

use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls};

/// Rows of one step each.
const ROW_BYTES: usize = 350;
/// Rows in one commit of SQLite.
const GROUP: usize = 64;

/// A bare table, and a connection that commits durably.
pub(crate) enum Bare {
    Sqlite(Connection),
    Postgres(Client),
}

impl Bare {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Bare> {
        let connection = Connection::open(dir.join("bare.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, body BLOB)")?;
        Ok(Bare::Sqlite(connection))
    }

    /// The same in a database that nodes share.
    pub(crate) fn connect(url: &str) -> anyhow::Result<Bare> {
        let client = wait(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            let sql = "CREATE TABLE IF NOT EXISTS bare \
                       (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)";
            client.batch_execute(sql).await?;
            anyhow::Ok(client)
        })?;
        Ok(Bare::Postgres(client))
    }

    /// The time that so many rows take: 64 in a commit, or as many as are appended
    /// together where that is by `unnest`.
    pub(crate) fn rows(&mut self, rows: usize, group: usize) -> anyhow::Result<Duration> {
        match self {
            Bare::Sqlite(connection) => {
                let begun = Instant::now();
                for _ in 0..rows.div_ceil(GROUP) {
                    insert(connection, GROUP)?;
                }
                Ok(begun.elapsed())
            }
            Bare::Postgres(client) => wait(async {
                let statement = client.prepare(UNNEST).await?;
                let begun = Instant::now();
                for _ in 0..rows.div_ceil(group) {
                    client.execute(&statement, &[&vec![vec![7u8; ROW_BYTES]; group]]).await?;
                }
                Ok(begun.elapsed())
            }),
        }
    }

    /// The time of one commit of one row.
    pub(crate) fn commit(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        match self {
            Bare::Sqlite(connection) => insert(connection, 1)?,
            Bare::Postgres(client) => wait(async {
                client.execute(UNNEST, &[&vec![vec![7u8; ROW_BYTES]]]).await?;
                anyhow::Ok(())
            })?,
        }
        Ok(begun.elapsed())
    }
}

const UNNEST: &str = "INSERT INTO bare (body) SELECT body FROM unnest($1::bytea[]) AS new (body)";

/// One commit of some rows.
fn insert(connection: &mut Connection, rows: usize) -> anyhow::Result<()> {
    let body = vec![7u8; ROW_BYTES];
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached("INSERT INTO row (body) VALUES (?1)")?;
        for _ in 0..rows {
            insert.execute([&body])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Waits within the runtime.
fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::task::block_in_place(|| Handle::current().block_on(work))
}
