//! Schedule slots and provenance edges between runs.

use super::{MemoryState, MemoryStore};
use sluice_core::id::RunId;
use sluice_core::limits::SLOTS_KEPT;
use sluice_core::port::lineage::{Consumer, Lineage, ProvenanceEdge};
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::Answer;

impl Slots for MemoryStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        Box::pin(async move {
            Ok(self.read(|state, _| {
                let until = (schedule.clone(), before_ms.unwrap_or(u64::MAX));
                let of_it = state.slots.range((schedule, 0)..until).rev();
                of_it.map(|(_, slot)| slot.clone()).take(crate::page(limit)).collect()
            }))
        })
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        Box::pin(async move {
            Ok(self.write(|state, _| marks.into_iter().map(|mark| state.mark(mark)).collect()))
        })
    }
}

impl Lineage for MemoryStore {
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>> {
        Box::pin(async move {
            Ok(self.read(|state, _| {
                let all = state.edges.range((run, RunId(0))..=(run, RunId(u128::MAX)));
                let all = all.map(|((_, run), values)| Consumer { run: *run, values: *values });
                all.filter(|one| after.is_none_or(|after| one.run > after))
                    .take(crate::page(limit))
                    .collect()
            }))
        })
    }

    fn taken(&self, run: RunId) -> Answer<'_, u64> {
        Box::pin(async move {
            Ok(self.read(|state, _| {
                state.edges.range((run, RunId(0))..=(run, RunId(u128::MAX))).map(|(_, n)| n).sum()
            }))
        })
    }
}

impl MemoryState {
    fn mark(&mut self, mark: Mark) -> bool {
        let key = (mark.slot.schedule.clone(), mark.slot.slot_ms);
        let stored = self.slots.get(&key);
        let fits = match stored {
            None => mark.from.is_empty(),
            Some(slot) => mark.from.contains(&slot.outcome),
        };
        if !fits {
            return false;
        }
        let schedule = mark.slot.schedule.clone();
        self.slots.insert(key, mark.slot);
        let of_it = || self.slots.range((schedule.clone(), 0)..=(schedule.clone(), u64::MAX));
        let over = of_it().count().saturating_sub(SLOTS_KEPT);
        let old: Vec<_> = of_it().take(over).map(|(key, _)| key.clone()).collect();
        for key in old {
            self.slots.remove(&key);
        }
        true
    }

    /// Stores how many values a run has consumed so far from each source.
    pub(super) fn store_edges(&mut self, consumer: RunId, edges: &[ProvenanceEdge]) {
        for edge in edges {
            match edge.values {
                0 => drop(self.edges.remove(&(edge.from, consumer))),
                values => drop(self.edges.insert((edge.from, consumer), values)),
            }
        }
    }
}
