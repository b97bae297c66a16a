//! What a run has taken from other runs, counted.
//!
//! INVARIANT: what is counted is what the journal says of results that still
//! count: a step that is invalidated has taken nothing.

use super::id::RunId;
use super::state::{Run, Source};
use crate::journal::event::{Event, Provenance, StepAt, StepEvent};
use crate::port::lineage::Taking;
use std::collections::BTreeSet;

impl Run {
    /// A value came to a step.
    pub(super) fn took(&mut self, at: StepAt, from: &Provenance) {
        self.provenance.0 += 1;
        match from.source_run {
            Some(run) => *self.taken.entry(run).or_default() += 1,
            // A value from a step of this run left it as it came in.
            None => self.provenance.1 += 1,
        }
        let sources = &mut self.state_mut(at).sources;
        match sources.iter_mut().find(|source| source.run == from.source_run) {
            Some(source) => source.rows += 1,
            None => sources.push(Source { run: from.source_run, rows: 1 }),
        }
    }

    /// What a step, or an instance of it, took counts no more.
    pub(super) fn untake(&mut self, sources: &[Source]) {
        for Source { run, rows } in sources {
            let rows = u64::from(*rows);
            self.provenance.0 -= rows;
            match run {
                Some(run) => *self.taken.entry(*run).or_default() -= rows,
                None => self.provenance.1 -= rows,
            }
        }
    }

    /// What the run has taken from other runs, as far as `events`, the last
    /// that were folded into it, have changed that.
    pub fn takings(&self, events: &[Event]) -> Vec<Taking> {
        let mut touched: BTreeSet<RunId> = BTreeSet::new();
        for event in events {
            match event {
                Event::Step(_, StepEvent::Provenance(from)) => touched.extend(from.source_run),
                Event::Step(_, StepEvent::Invalidated) => touched.extend(self.taken.keys()),
                _ => {}
            }
        }
        let taking = |from: RunId| self.taken.get(&from).map(|values| (from, *values));
        let changed = touched.into_iter().filter_map(taking);
        changed.map(|(from, values)| Taking { from, values }).collect()
    }
}
