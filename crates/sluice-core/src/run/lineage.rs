//! Counts of the values that a run read from its own steps and from other runs.
//!
//! INVARIANT: the counts cover valid results only: the values of an invalidated step are
//! subtracted.

use super::state::Run;
use crate::id::RunId;
use crate::journal::event::{Event, Provenance, StepAt, StepEvent};
use crate::port::lineage::ProvenanceEdge;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many values a step read from the steps of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Source {
    /// The run; `None` means the step's own run.
    pub(crate) run: Option<RunId>,
    pub(crate) rows: u32,
}

impl Run {
    /// Counts a value that a step read.
    pub(super) fn count_value(&mut self, at: StepAt, from: &Provenance) {
        self.provenance.0 += 1;
        match from.source_run {
            Some(run) => *self.taken.entry(run).or_default() += 1,
            // Both steps are of this run, so the value counts in both directions.
            None => self.provenance.1 += 1,
        }
        let sources = &mut self.state_mut(at).sources;
        match sources.iter_mut().find(|source| source.run == from.source_run) {
            Some(source) => source.rows += 1,
            None => sources.push(Source { run: from.source_run, rows: 1 }),
        }
    }

    /// Subtracts the values of an invalidated step or instance.
    pub(super) fn uncount_values(&mut self, sources: &[Source]) {
        for Source { run, rows } in sources {
            let rows = u64::from(*rows);
            self.provenance.0 -= rows;
            match run {
                Some(run) => *self.taken.entry(*run).or_default() -= rows,
                None => self.provenance.1 -= rows,
            }
        }
    }

    /// How many values the run has read from other runs, for the runs whose counts the last
    /// folded `events` have changed.
    pub fn provenance_edges(&self, events: &[Event]) -> Vec<ProvenanceEdge> {
        let mut changed: BTreeSet<RunId> = BTreeSet::new();
        for event in events {
            match event {
                Event::Step(_, StepEvent::Provenance(from)) => changed.extend(from.source_run),
                Event::Step(_, StepEvent::Invalidated) => changed.extend(self.taken.keys()),
                _ => {}
            }
        }
        let edge = |from: RunId| Some(ProvenanceEdge { from, values: *self.taken.get(&from)? });
        changed.into_iter().filter_map(edge).collect()
    }
}
