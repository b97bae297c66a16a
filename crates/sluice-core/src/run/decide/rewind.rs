//! Going back: in the same run, or into a new one.

use super::Turn;
use crate::journal::event::{Event, StepAt, StepEvent};
use crate::run::command::Refusal;
use crate::run::state::{Run, StepState};
use crate::status::{REASON_RECOVERY, REASON_RETRY, REASON_REWIND};
use crate::status::{RunStatus, StepStatus};
use std::collections::BTreeSet;

/// Who takes a failed run up again when nobody does.
const RECOVERED_BY: &str = "engine";

impl Turn<'_> {
    /// Everything that is not kept goes back to pending.
    pub(super) fn rewind(&mut self, by: &str, keep: &BTreeSet<u32>) -> Result<(), Refusal> {
        // A cancel is final.
        if matches!(self.run.status, RunStatus::Cancelling | RunStatus::Cancelled) {
            return Err(Refusal::Ended(self.run.status));
        }
        if self.run.cancel_reason.is_some() {
            return Err(Refusal::Ended(RunStatus::Cancelled));
        }
        let touched = |state: &StepState| state.status() != StepStatus::Pending;
        let back: Vec<u32> = (0u32..)
            .zip(&self.run.steps)
            .filter(|(step, state)| touched(state) && !keep.contains(step))
            .map(|(step, _)| step)
            .collect();
        if back.is_empty() {
            return Err(Refusal::NothingToRewind);
        }
        self.go_back(by, REASON_REWIND, &back);
        Ok(())
    }

    /// A failed run is taken up again where it failed.
    pub(super) fn retry(&mut self, by: &str) -> Result<(), Refusal> {
        if self.run.status != RunStatus::Failed {
            return Err(Refusal::NotFailed(self.run.status));
        }
        if self.run.cancel_reason.is_some() {
            return Err(Refusal::NotFailed(RunStatus::Cancelled));
        }
        let back: Vec<u32> = with_dependents(self.run, failed(self.run)).into_iter().collect();
        self.go_back(by, REASON_RETRY, &back);
        Ok(())
    }

    /// A failed run is taken up again by itself, if its workflow says so and
    /// the time has come.
    pub(super) fn recover(&mut self) {
        if self.run.recovers_at_ms().is_some_and(|at_ms| at_ms <= self.given.now_ms) {
            let back: Vec<u32> = with_dependents(self.run, failed(self.run)).into_iter().collect();
            self.go_back(RECOVERED_BY, REASON_RECOVERY, &back);
        }
    }

    fn go_back(&mut self, by: &str, reason: &str, back: &[u32]) {
        for step in back {
            let at = StepAt::whole(*step);
            let instances =
                self.run.state(at).fan_out.as_ref().map_or(0, |one| one.instances.len());
            let instances = (0u32..).take(instances).map(|item| StepAt::instance(*step, item));
            for one in instances.chain([at]).collect::<Vec<_>>() {
                self.stop_child(one, reason);
                self.drop_question(one);
            }
        }
        self.emit(Event::RunStatusChanged {
            status: RunStatus::Running,
            reason: reason.to_owned(),
            by: Some(by.to_owned()),
        });
        for step in back {
            self.node(StepAt::whole(*step), StepEvent::Invalidated);
        }
    }
}

/// Steps that did not come to a good end.
pub(crate) fn failed(run: &Run) -> BTreeSet<u32> {
    let bad = |state: &StepState| {
        matches!(
            state.status(),
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Cancelled | StepStatus::Blocked
        )
    };
    (0u32..).zip(&run.steps).filter(|(_, state)| bad(state)).map(|(step, _)| step).collect()
}

/// The steps and everything that depends on them, however far.
pub(crate) fn with_dependents(run: &Run, steps: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut front: Vec<u32> = steps.iter().copied().collect();
    let mut all = steps;
    while let Some(step) = front.pop() {
        for dependent in run.definition.plan.graph.dependents(step as usize) {
            if all.insert(*dependent) {
                front.push(*dependent);
            }
        }
    }
    all
}
