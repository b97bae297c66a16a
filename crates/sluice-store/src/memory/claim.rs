//! Ownership of runs.

use super::{MemoryState, Record};
use crate::limits::CLAIM_MAX;
use sluice_core::id::RunId;
use sluice_core::port::store::{Claim, NodeId, Taken};

impl MemoryState {
    pub(super) fn claim(
        &mut self,
        node: NodeId,
        due_by_ms: u64,
        limit: usize,
        now_ms: u64,
    ) -> Vec<Claim> {
        let dead = |owner: NodeId| owner != node && !self.is_live(owner, now_ms);
        let orphan =
            |(run, record): (&RunId, &Record)| Some((record.owner.filter(|o| dead(*o))?, *run));
        let mut orphans: Vec<(NodeId, RunId)> = self.runs.iter().filter_map(orphan).collect();
        orphans.sort_unstable();
        let due = |(run, record): (&RunId, &Record)| {
            let due_at_ms =
                record.due_at_ms.filter(|due| record.owner.is_none() && *due <= due_by_ms)?;
            Some((due_at_ms, *run))
        };
        let mut dues: Vec<(u64, RunId)> = self.runs.iter().filter_map(due).collect();
        dues.sort_unstable();
        let runs =
            orphans.into_iter().map(|(_, run)| run).chain(dues.into_iter().map(|(_, run)| run));
        let runs: Vec<RunId> = runs.take(limit.min(CLAIM_MAX)).collect();
        runs.into_iter()
            .filter_map(|run| Some(self.runs.get_mut(&run)?.assign(run, node)))
            .collect()
    }

    pub(super) fn take(&mut self, run: RunId, node: NodeId, now_ms: u64) -> Taken {
        let Some(record) = self.runs.get(&run) else {
            return Taken::NoRun;
        };
        match record.owner {
            Some(owner) if owner == node => return Taken::Already(record.epoch),
            Some(owner) if self.is_live(owner, now_ms) => return Taken::Held(owner),
            Some(_) | None => {}
        }
        let record = self.runs.get_mut(&run).expect("the run was found");
        Taken::Done(record.assign(run, node))
    }
}

impl Record {
    fn assign(&mut self, run: RunId, node: NodeId) -> Claim {
        self.epoch += 1;
        Claim { run, epoch: self.epoch, from: self.owner.replace(node) }
    }
}
