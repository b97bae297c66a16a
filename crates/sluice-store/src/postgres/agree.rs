//! Values that all nodes of a database must share.
//!
//! Keys stay out of the database that they protect. The first node stores a public
//! value of its key here, and the other nodes compare theirs with it.

use super::column::{Text, text};
use super::fault::Fault;
use super::session::Session;

/// Proposes a value, unless there is one already. Returns the stored value.
pub(super) async fn agree(session: &Session, name: &str, value: &str) -> Result<String, Fault> {
    let sql = "INSERT INTO agreed (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    session.execute(sql, &[&Text(name), &Text(value)]).await?;
    let counts = agreed(session, name).await?;
    counts.ok_or_else(|| Fault::Corrupt(format!("`{name}` was stored and is missing")))
}

pub(super) async fn agreed(session: &Session, name: &str) -> Result<Option<String>, Fault> {
    let rows = session.query("SELECT value FROM agreed WHERE name = $1", &[&Text(name)]).await?;
    rows.first().map(|row| Ok(text(row, 0)?.into_owned())).transpose()
}
