//! What can be asked of a database without opening a store in it, and so without
//! making one.

use super::OpenError;
use super::address::Address;
use super::column::get;
use super::fault::Fault;
use super::migrate::MIGRATIONS;
use super::session::Session;
use tokio::task::LocalSet;

/// Most schemas that are answered.
const SCHEMAS_MAX: i64 = 10_000;

/// What a URL says, for those who use one schema of the database.
pub(super) fn config(url: &str, schema: Option<&str>) -> Result<Address, OpenError> {
    Address::read(url, schema).map_err(OpenError::Url)
}

/// The state of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The number of the last migration that was applied; 0 where there is no store.
    pub schema: usize,
    /// That of the last one known here.
    pub known: usize,
}

/// What there is in a schema. Waits for the answer.
pub fn inspect(url: &str, schema: Option<&str>) -> Result<Found, OpenError> {
    ask(config(url, schema)?, async |session| {
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

/// The schemas with a store whose names begin like this, in their order. Waits
/// for the answer.
pub fn schemas(url: &str, prefix: &str) -> Result<Vec<String>, OpenError> {
    let prefix = prefix.to_owned();
    ask(config(url, None)?, async move |session| {
        let sql = "SELECT table_schema::text FROM information_schema.tables
                   WHERE table_name = 'migration' AND left(table_schema, length($1)) = $1
                   ORDER BY 1 LIMIT $2";
        let rows = session.query(sql, &[&prefix, &SCHEMAS_MAX]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    })
}

/// Asks on a connection of its own, in a thread of its own: whoever calls may be
/// within a runtime.
fn ask<T: Send + 'static>(
    address: Address,
    work: impl AsyncFnOnce(&Session) -> Result<T, Fault> + Send + 'static,
) -> Result<T, OpenError> {
    let failed = |error: std::io::Error| OpenError::Failed(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let asking = std::thread::Builder::new().name("ask-postgres".to_owned());
    let asking = asking.spawn(move || {
        LocalSet::new().block_on(&runtime, async {
            let session = Session::connect(&address, None).await?;
            work(&session).await
        })
    });
    let answer = asking.map_err(failed)?.join();
    let answer = answer.map_err(|_| OpenError::Failed("the question was broken off".to_owned()))?;
    Ok(answer?)
}
