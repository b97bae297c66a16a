//! What the writer knows without asking the database.
//!
//! INVARIANT: everything here is what the database holds as of the transaction
//! under way. All of it is forgotten when another process has written, and when
//! a transaction is rolled back.

use super::column::{node_id, run_bytes, uint};
use super::count::Counters;
use super::entry::Tip;
use super::fault::Fault;
use crate::limits::REMEMBERED_MAX;
use rusqlite::{Connection, OptionalExtension as _, Row};
use sluice_core::port::store::NodeId;
use sluice_core::run::id::RunId;
use std::collections::HashMap;

/// Runs, counters and chains as they are.
#[derive(Default)]
pub(super) struct Memory {
    runs: HashMap<RunId, Known>,
    pub(super) counters: Counters,
    /// Where each writer's chain of entries ends.
    chains: HashMap<NodeId, Tip>,
}

/// What an append is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// `run.num`.
    pub(super) num: i64,
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: u64,
    /// The id of the last event.
    pub(super) version: u64,
    /// The last frame.
    pub(super) seq: i64,
    /// How many frames there are.
    pub(super) frames: u64,
}

impl Memory {
    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        *self = Memory::default();
    }

    /// Forgets one run.
    pub(super) fn forget_run(&mut self, run: RunId) {
        self.runs.remove(&run);
    }

    /// Remembers how a run is now.
    pub(super) fn remember(&mut self, run: RunId, known: Known) {
        // Full is rare: more runs at work than a machine has. Starting over then is
        // simpler than keeping an order, and costs one read per run.
        if self.runs.len() >= REMEMBERED_MAX {
            self.runs.clear();
        }
        self.runs.insert(run, known);
    }

    /// A run, if it exists.
    pub(super) fn find(
        &mut self,
        connection: &Connection,
        run: RunId,
    ) -> Result<Option<Known>, Fault> {
        if let Some(known) = self.runs.get(&run) {
            return Ok(Some(*known));
        }
        let sql = "SELECT num, owner, epoch, tip.version, seq, frames
                   FROM run JOIN tip ON tip.run = run.num WHERE id = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_row([run_bytes(run)], Known::read).optional()?;
        if let Some(known) = found {
            self.remember(run, known);
        }
        Ok(found)
    }

    /// Where the chain of a writer of entries ends, if that is known.
    pub(super) fn chain(&self, writer: NodeId) -> Option<Tip> {
        self.chains.get(&writer).copied()
    }

    /// Remembers where it ends now.
    pub(super) fn remember_chain(&mut self, writer: NodeId, tip: Tip) {
        if self.chains.len() >= REMEMBERED_MAX {
            self.chains.clear();
        }
        self.chains.insert(writer, tip);
    }
}

impl Known {
    fn read(row: &Row<'_>) -> rusqlite::Result<Known> {
        Ok(Known {
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
