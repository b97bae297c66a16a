//! The baseline: what the database alone achieves on this disk.

use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls};

/// Size of the rows of one step.
const ROW_BYTES: usize = 350;
/// Rows per commit in SQLite.
const GROUP: usize = 64;

/// A bare table, and a connection that commits durably.
pub(crate) enum BareDatabase {
    Sqlite(Connection),
    Postgres(Client),
}

impl BareDatabase {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<BareDatabase> {
        let connection = Connection::open(dir.join("bare.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, body BLOB)")?;
        Ok(BareDatabase::Sqlite(connection))
    }

    /// The same on PostgreSQL.
    pub(crate) fn connect(url: &str) -> anyhow::Result<BareDatabase> {
        let client = wait(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            let sql = "CREATE TABLE IF NOT EXISTS bare \
                       (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)";
            client.batch_execute(sql).await?;
            anyhow::Ok(client)
        })?;
        Ok(BareDatabase::Postgres(client))
    }

    /// Time to insert `rows` rows: 64 per commit in SQLite, `group` per statement in
    /// PostgreSQL.
    pub(crate) fn rows(&mut self, rows: usize, group: usize) -> anyhow::Result<Duration> {
        match self {
            BareDatabase::Sqlite(connection) => {
                let begun = Instant::now();
                for _ in 0..rows.div_ceil(GROUP) {
                    insert(connection, GROUP)?;
                }
                Ok(begun.elapsed())
            }
            BareDatabase::Postgres(client) => wait(async {
                let statement = client.prepare(UNNEST).await?;
                let begun = Instant::now();
                for _ in 0..rows.div_ceil(group) {
                    client.execute(&statement, &[&vec![vec![7u8; ROW_BYTES]; group]]).await?;
                }
                Ok(begun.elapsed())
            }),
        }
    }

    /// Time of one commit of one row.
    pub(crate) fn commit(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        match self {
            BareDatabase::Sqlite(connection) => insert(connection, 1)?,
            BareDatabase::Postgres(client) => wait(async {
                client.execute(UNNEST, &[&vec![vec![7u8; ROW_BYTES]]]).await?;
                anyhow::Ok(())
            })?,
        }
        Ok(begun.elapsed())
    }
}

const UNNEST: &str = "INSERT INTO bare (body) SELECT body FROM unnest($1::bytea[]) AS new (body)";

/// Inserts some rows in one commit.
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

/// Blocks within the runtime.
fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::task::block_in_place(|| Handle::current().block_on(work))
}
