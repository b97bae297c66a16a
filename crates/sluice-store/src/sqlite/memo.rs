//! What agents answered last.

use super::column::{int, run_id, uint};
use super::fault::Fault;
use super::writer::Work;
use crate::limits::MEMOS_KEPT_MAX;
use rusqlite::{Connection, params};
use sluice_core::port::memo::Memo;

/// Keeps answers given in a run, and lets go of the oldest of the same agents.
pub(super) fn keep(work: &Work<'_>, num: i64, memos: &[Memo]) -> Result<(), Fault> {
    for memo in memos {
        let sql = "INSERT INTO memo (agent, run, at, body) VALUES (?1, ?2, ?3, ?4)";
        let values = params![memo.agent, num, int(memo.at_ms), memo.body];
        work.connection.prepare_cached(sql)?.execute(values)?;
        let sql = "DELETE FROM memo WHERE place IN (SELECT place FROM memo WHERE agent = ?1
                   ORDER BY place DESC LIMIT -1 OFFSET ?2)";
        let kept = i64::try_from(MEMOS_KEPT_MAX).unwrap_or(i64::MAX);
        work.connection.prepare_cached(sql)?.execute(params![memo.agent, kept])?;
    }
    Ok(())
}

/// Those of some agents: agent by agent as asked, the newest first.
pub(super) fn memos(connection: &Connection, agents: &[String]) -> Result<Vec<Memo>, Fault> {
    let sql = "SELECT run.id, memo.at, memo.body FROM memo JOIN run ON run.num = memo.run
               WHERE memo.agent = ?1 ORDER BY memo.place DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for agent in agents {
        let rows = statement.query_map([agent], |row| {
            Ok(Memo {
                agent: agent.clone(),
                run: run_id(row.get(0)?),
                at_ms: uint(row.get(1)?),
                body: row.get(2)?,
            })
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    Ok(found)
}
