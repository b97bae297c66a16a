//! Remembered outputs of agents.

use super::column::{int, run_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use super::writer::Work;
use crate::authentic::AppendMacs;
use rusqlite::params;
use sluice_core::limits::REMEMBERED_OUTPUTS_MAX;
use sluice_core::port::remembered_output::RememberedOutput;

/// Stores the remembered outputs of a run and deletes each agent's oldest ones beyond
/// the limit.
pub(super) fn store(
    work: &Work<'_>,
    num: i64,
    outputs: &[RememberedOutput],
    macs: &AppendMacs,
) -> Result<(), Fault> {
    for (at, output) in outputs.iter().enumerate() {
        let sql = "INSERT INTO memo (agent, run, at, body, mac) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![output.agent, num, int(output.at_ms), output.body, macs.output(at)];
        work.connection.prepare_cached(sql)?.execute(values)?;
        let sql = "DELETE FROM memo WHERE place IN (SELECT place FROM memo WHERE agent = ?1
                   ORDER BY place DESC LIMIT -1 OFFSET ?2)";
        let kept = i64::try_from(REMEMBERED_OUTPUTS_MAX).unwrap_or(i64::MAX);
        work.connection.prepare_cached(sql)?.execute(params![output.agent, kept])?;
    }
    Ok(())
}

/// The remembered outputs of some agents: in the given order of agents, newest first.
/// Skips rows that are not authentic.
pub(super) fn load(
    reader: &ReadConnection,
    agents: &[String],
) -> Result<Vec<RememberedOutput>, Fault> {
    let sql = "SELECT run.id, memo.at, memo.body, memo.mac FROM memo JOIN run ON run.num = memo.run
               WHERE memo.agent = ?1 ORDER BY memo.place DESC";
    let mut statement = reader.connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for agent in agents {
        let mut rows = statement.query([agent])?;
        while let Some(row) = rows.next()? {
            let remembered_output = RememberedOutput {
                agent: agent.clone(),
                run: run_id(row.get(0)?),
                at_ms: uint(row.get(1)?),
                body: row.get(2)?,
            };
            let mac = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            if reader.shared.keys.is_remembered_output(&remembered_output, mac) {
                found.push(remembered_output);
            }
        }
    }
    Ok(found)
}
