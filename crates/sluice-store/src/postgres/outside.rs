//! Queries about a database that do not open, and so do not create, a store in it.

use super::OpenError;
use super::address::DatabaseAddress;
use super::column::get;
use super::fault::Fault;
use super::migrate::MIGRATIONS;
use super::session::Session;
use tokio::task::LocalSet;

/// Largest number of schemas returned.
const SCHEMAS_MAX: i64 = 10_000;

/// Parses a URL, for the use of one schema of the database.
pub(super) fn config(url: &str, schema: Option<&str>) -> Result<DatabaseAddress, OpenError> {
    DatabaseAddress::read(url, schema).map_err(OpenError::Url)
}

/// The schema version of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Number of the last applied migration; 0 if there is no store.
    pub schema: usize,
    /// Number of the last migration that this version has.
    pub known: usize,
}

/// Inspects a schema. Blocks until the database responds.
pub fn inspect(url: &str, schema: Option<&str>) -> Result<Found, OpenError> {
    query(config(url, schema)?, async |session| {
        let known = MIGRATIONS.len();
        let rows = session.query("SELECT to_regclass('migration') IS NOT NULL", &[]).await?;
        if !get::<bool>(&rows[0], 0)? {
            return Ok(Found { schema: 0, known });
        }
        let rows = session.query("SELECT coalesce(max(number), 0) FROM migration", &[]).await?;
        let schema = usize::try_from(get::<i64>(&rows[0], 0)?).unwrap_or_default();
        Ok(Found { schema, known })
    })
}

/// The schemas with a store whose names begin with a prefix, in order. Blocks until the
/// database responds.
pub fn schemas(url: &str, prefix: &str) -> Result<Vec<String>, OpenError> {
    let prefix = prefix.to_owned();
    query(config(url, None)?, async move |session| {
        let sql = "SELECT table_schema::text FROM information_schema.tables
                   WHERE table_name = 'migration' AND left(table_schema, length($1)) = $1
                   ORDER BY 1 LIMIT $2";
        let rows = session.query(sql, &[&prefix, &SCHEMAS_MAX]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    })
}

/// Runs a query on a new connection, in a new thread, because the caller may be inside
/// a runtime.
fn query<T: Send + 'static>(
    address: DatabaseAddress,
    work: impl AsyncFnOnce(&Session) -> Result<T, Fault> + Send + 'static,
) -> Result<T, OpenError> {
    let failed = |error: std::io::Error| OpenError::Failed(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let thread = std::thread::Builder::new().name("query-postgres".to_owned());
    let thread = thread.spawn(move || {
        LocalSet::new().block_on(&runtime, async {
            let session = Session::connect(&address, None).await?;
            work(&session).await
        })
    });
    let answer = thread.map_err(failed)?.join();
    let answer = answer.map_err(|_| OpenError::Failed("the query thread panicked".to_owned()))?;
    Ok(answer?)
}
