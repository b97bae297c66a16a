//! The writer's cache of runs, counters and chains.
//!
//! INVARIANT: the cache equals the database as of the current transaction. The writer
//! clears it when another process has written and when a transaction is rolled back.

use super::column::{node_id, run_bytes, uint};
use super::count::Counters;
use super::entry::Tip;
use super::fault::Fault;
use crate::limits::CACHED_MAX;
use rusqlite::{Connection, OptionalExtension as _, Row};
use sluice_core::id::RunId;
use sluice_core::port::store::NodeId;
use std::collections::HashMap;

/// The cached runs, counters and chains.
#[derive(Default)]
pub(super) struct WriterCache {
    runs: HashMap<RunId, CachedRun>,
    pub(super) counters: Counters,
    /// End of each writer's entry chain.
    chains: HashMap<NodeId, Tip>,
}

/// The row of a run that an append is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedRun {
    pub(super) num: i64,
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: u64,
    /// Id of the last event.
    pub(super) version: u64,
    /// Number of the last frame in the `frame` table.
    pub(super) seq: i64,
    pub(super) frames: u64,
}

impl WriterCache {
    pub(super) fn forget(&mut self) {
        *self = WriterCache::default();
    }

    pub(super) fn forget_run(&mut self, run: RunId) {
        self.runs.remove(&run);
    }

    pub(super) fn remember(&mut self, run: RunId, known: CachedRun) {
        // A full cache is rare: it needs more active runs than one machine has.
        // Starting over is simpler than tracking usage, and costs one read per run.
        if self.runs.len() >= CACHED_MAX {
            self.runs.clear();
        }
        self.runs.insert(run, known);
    }

    /// A run, if it exists.
    pub(super) fn find(
        &mut self,
        connection: &Connection,
        run: RunId,
    ) -> Result<Option<CachedRun>, Fault> {
        if let Some(known) = self.runs.get(&run) {
            return Ok(Some(*known));
        }
        let sql = "SELECT num, owner, epoch, tip.version, seq, frames
                   FROM run JOIN tip ON tip.run = run.num WHERE id = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_row([run_bytes(run)], CachedRun::read).optional()?;
        if let Some(known) = found {
            self.remember(run, known);
        }
        Ok(found)
    }

    /// The cached end of a writer's chain.
    pub(super) fn chain(&self, writer: NodeId) -> Option<Tip> {
        self.chains.get(&writer).copied()
    }

    pub(super) fn remember_chain(&mut self, writer: NodeId, tip: Tip) {
        if self.chains.len() >= CACHED_MAX {
            self.chains.clear();
        }
        self.chains.insert(writer, tip);
    }
}

impl CachedRun {
    fn read(row: &Row<'_>) -> rusqlite::Result<CachedRun> {
        Ok(CachedRun {
            num: row.get(0)?,
            owner: row.get::<_, Option<[u8; 16]>>(1)?.map(node_id),
            epoch: uint(row.get(2)?),
            version: uint(row.get(3)?),
            seq: row.get(4)?,
            frames: uint(row.get(5)?),
        })
    }

    /// Whether `node` may append under `epoch`.
    pub(super) fn is_owned(&self, node: NodeId, epoch: u64) -> bool {
        self.owner == Some(node) && self.epoch == epoch
    }
}
