//! What all nodes of a database must have in common, though it is not kept there.
//!
//! Keys stay out of the database that they protect. What can be told of them is
//! noted here by whoever comes first, and the others see whether theirs is the same.

use super::column::{Text, text};
use super::fault::Fault;
use super::session::Session;

/// Says something, unless it is said already. Answers what counts.
pub(super) async fn agree(session: &Session, name: &str, value: &str) -> Result<String, Fault> {
    let sql = "INSERT INTO agreed (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    session.execute(sql, &[&Text(name), &Text(value)]).await?;
    let counts = agreed(session, name).await?;
    counts.ok_or_else(|| Fault::Corrupt(format!("`{name}` was agreed on and is gone")))
}

/// What was said first.
pub(super) async fn agreed(session: &Session, name: &str) -> Result<Option<String>, Fault> {
    let rows = session.query("SELECT value FROM agreed WHERE name = $1", &[&Text(name)]).await?;
    rows.first().map(|row| Ok(text(row, 0)?.into_owned())).transpose()
}
