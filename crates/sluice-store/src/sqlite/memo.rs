//! Remembered outputs of agents.

use super::column::{int, run_id, uint};
use super::fault::Fault;
use super::reader::Desk;
use super::writer::Work;
use crate::authentic::AppendMacs;
use crate::limits::MEMOS_KEPT_MAX;
use rusqlite::params;
use sluice_core::port::memo::Memo;

/// Stores the remembered outputs of a run and deletes each agent's oldest ones beyond
/// the limit.
pub(super) fn keep(
    work: &Work<'_>,
    num: i64,
    memos: &[Memo],
    macs: &AppendMacs,
) -> Result<(), Fault> {
    for (at, memo) in memos.iter().enumerate() {
        let sql = "INSERT INTO memo (agent, run, at, body, mac) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![memo.agent, num, int(memo.at_ms), memo.body, macs.memo(at)];
        work.connection.prepare_cached(sql)?.execute(values)?;
        let sql = "DELETE FROM memo WHERE place IN (SELECT place FROM memo WHERE agent = ?1
                   ORDER BY place DESC LIMIT -1 OFFSET ?2)";
        let kept = i64::try_from(MEMOS_KEPT_MAX).unwrap_or(i64::MAX);
        work.connection.prepare_cached(sql)?.execute(params![memo.agent, kept])?;
    }
    Ok(())
}

/// The remembered outputs of some agents: in the given order of agents, newest first.
/// Skips rows that are not authentic.
pub(super) fn memos(desk: &Desk, agents: &[String]) -> Result<Vec<Memo>, Fault> {
    let sql = "SELECT run.id, memo.at, memo.body, memo.mac FROM memo JOIN run ON run.num = memo.run
               WHERE memo.agent = ?1 ORDER BY memo.place DESC";
    let mut statement = desk.connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for agent in agents {
        let mut rows = statement.query([agent])?;
        while let Some(row) = rows.next()? {
            let memo = Memo {
                agent: agent.clone(),
                run: run_id(row.get(0)?),
                at_ms: uint(row.get(1)?),
                body: row.get(2)?,
            };
            let mac = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            if desk.shared.keys.is_memo(&memo, mac) {
                found.push(memo);
            }
        }
    }
    Ok(found)
}
