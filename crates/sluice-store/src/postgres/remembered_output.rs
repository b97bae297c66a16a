//! Remembered outputs of agents.

use super::column::{Id, Text, get, number, text};
use super::fault::Fault;
use super::session::Session;
use crate::authentic::Keys;
use sluice_core::port::remembered_output::RememberedOutput;
use std::collections::BTreeMap;

/// Deletes all but the newest remembered outputs of some agents.
pub(super) const PRUNE: &str = "DELETE FROM memo USING (
        SELECT agent, place, row_number() OVER (PARTITION BY agent ORDER BY place DESC) AS age
        FROM memo WHERE agent = ANY($1)) AS old
    WHERE memo.agent = old.agent AND memo.place = old.place AND old.age > $2";

/// The remembered outputs of some agents: in the given order of agents, newest first.
/// Skips rows that are not authentic.
pub(super) async fn load(
    session: &Session,
    keys: &Keys,
    agents: &[String],
) -> Result<Vec<RememberedOutput>, Fault> {
    let sql = "SELECT agent, run, at, body, mac FROM memo WHERE agent = ANY($1)
               ORDER BY agent, place DESC";
    let names: Vec<Text<'_>> = agents.iter().map(|agent| Text(agent)).collect();
    let rows = session.query(sql, &[&names]).await?;
    let mut kept: BTreeMap<String, Vec<RememberedOutput>> = BTreeMap::new();
    for row in &rows {
        let remembered_output = RememberedOutput {
            agent: text(row, 0)?.into_owned(),
            run: get::<Id>(row, 1)?.run(),
            at_ms: number(row, 2)?,
            body: get(row, 3)?,
        };
        if keys.is_remembered_output(&remembered_output, get(row, 4)?) {
            kept.entry(remembered_output.agent.clone()).or_default().push(remembered_output);
        }
    }
    Ok(agents.iter().filter_map(|agent| kept.get(agent)).flatten().cloned().collect())
}
