//! Provenance edges between runs.

use super::SqliteStore;
use super::column::{int, run_bytes, run_id, uint};
use super::fault::Fault;
use super::writer::Work;
use rusqlite::{Connection, params};
use sluice_core::id::RunId;
use sluice_core::port::lineage::{Consumer, Lineage};
use sluice_core::port::store::{Answer, Append};

impl Lineage for SqliteStore {
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>> {
        let limit = crate::page(limit);
        Box::pin(self.readers.read(move |reader| consumers(&reader.connection, run, after, limit)))
    }

    fn taken(&self, run: RunId) -> Answer<'_, u64> {
        Box::pin(self.readers.read(move |reader| {
            let sql = "SELECT coalesce(sum(count), 0) FROM taking WHERE source = ?1";
            let mut statement = reader.connection.prepare_cached(sql)?;
            Ok(uint(statement.query_row([run_bytes(run)], |row| row.get(0))?))
        }))
    }
}

fn consumers(
    connection: &Connection,
    run: RunId,
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<Consumer>, Fault> {
    let sql = "SELECT taker, count FROM taking WHERE source = ?1 AND taker > ?2
               ORDER BY taker LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let after = after.map(run_bytes);
    let after: &[u8] = after.as_ref().map_or(&[], |after| &after[..]);
    let mut rows = statement.query(params![run_bytes(run), after, int(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Consumer { run: run_id(row.get(0)?), values: uint(row.get(1)?) });
    }
    Ok(found)
}

/// Stores how many values the run of an append has consumed so far from each source.
pub(super) fn store_edges(work: &Work<'_>, append: &Append) -> Result<(), Fault> {
    for edge in &append.provenance_edges {
        let (source, consumer) = (run_bytes(edge.from), run_bytes(append.run));
        if edge.values == 0 {
            let sql = "DELETE FROM taking WHERE source = ?1 AND taker = ?2";
            work.connection.prepare_cached(sql)?.execute(params![source, consumer])?;
        } else {
            let sql = "INSERT OR REPLACE INTO taking VALUES (?1, ?2, ?3)";
            let values = params![source, consumer, int(edge.values)];
            work.connection.prepare_cached(sql)?.execute(values)?;
        }
    }
    Ok(())
}
