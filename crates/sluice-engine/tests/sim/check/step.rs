//! Invariants of each step.

use crate::adapter::text_of;
use sluice_core::journal::event::{Dispatch, Path, Resolution, StepAt, StepEvent};
use sluice_core::plan::step::Work;
use sluice_core::run::state::Run;
use std::collections::{BTreeMap, BTreeSet};

/// State of the steps of one run.
#[derive(Default)]
pub(super) struct Steps {
    /// Last dispatch of each step.
    dispatches: BTreeMap<StepAt, u32>,
    deltas: BTreeMap<StepAt, u64>,
    /// Completed steps, by generation.
    completed: BTreeSet<(StepAt, u32)>,
    /// Attempts that an operator allowed, and attempts made.
    grants: BTreeMap<StepAt, u32>,
    attempts: BTreeMap<StepAt, BTreeSet<u32>>,
}

impl Steps {
    /// Number of the step's last dispatch.
    pub(super) fn dispatched(&self, at: StepAt) -> u32 {
        self.dispatches.get(&at).copied().unwrap_or_default()
    }

    /// Checks an event before it is folded.
    pub(super) fn before(
        &mut self,
        run: &Run,
        at: StepAt,
        event: &StepEvent,
    ) -> Result<(), String> {
        let Some(state) = run.get(at) else {
            if matches!(event, StepEvent::Reconciled { .. }) {
                // The cost became known after the step was removed.
                return Ok(());
            }
            return Err(format!("the event is about a missing instance: {at:?}"));
        };
        let generation = run.steps[at.step as usize].generation;
        match event {
            StepEvent::Started(dispatch) => self.started(run, at, dispatch)?,
            StepEvent::Completed(completed) => {
                if !self.completed.insert((at, generation)) {
                    return Err("a step completes once".into());
                }
                let agent = matches!(run.step(at).work, Work::Command { .. } | Work::Lens(_));
                let whole = run.step(at).for_each.is_some() && at.item.is_none();
                let text = text_of(&run.name(at), state.dispatch_no);
                if agent && !whole && completed.outcome.stdout.as_ref() != Some(&text) {
                    let found = completed.outcome.stdout.as_deref().unwrap_or_default();
                    return Err(format!(
                        "a result is of the dispatch in flight: {found}, not {text}"
                    ));
                }
            }
            StepEvent::Delta(delta) => {
                let next = self.deltas.entry(at).or_default();
                if delta.index != *next {
                    return Err(format!("parts are numbered: {} is not {next}", delta.index));
                }
                *next += 1;
            }
            StepEvent::ApprovalResolved(resolved)
                if matches!(resolved.resolution, Resolution::Approved | Resolution::Retry) =>
            {
                *self.grants.entry(at).or_default() += 1;
            }
            StepEvent::Invalidated => {
                self.grants.retain(|one, _| one.step != at.step);
                self.attempts.retain(|one, _| one.step != at.step);
            }
            _ => {}
        }
        Ok(())
    }

    fn started(&mut self, run: &Run, at: StepAt, dispatch: &Dispatch) -> Result<(), String> {
        let state = run.state(at);
        if state.status().is_settled() {
            return Err(format!("a step that is {} does not start again", state.status()));
        }
        let generation = run.steps[at.step as usize].generation;
        if self.completed.contains(&(at, generation)) {
            return Err("a finished step does not start again".into());
        }
        let last = self.dispatches.entry(at).or_default();
        if dispatch.dispatch_no <= *last {
            let number = dispatch.dispatch_no;
            return Err(format!("dispatches are numbered: {number} after {last}"));
        }
        *last = dispatch.dispatch_no;
        if dispatch.attempt < state.attempt || dispatch.attempt > state.attempt + 1 {
            let (now, then) = (dispatch.attempt, state.attempt);
            return Err(format!("attempts are numbered: {now} after {then}"));
        }
        let covers = run.step(at).approval.as_ref().map(|asked| asked.covers_retries);
        if covers == Some(false)
            && dispatch.path != Path::FanOut
            && dispatch.attempt > state.attempt
        {
            let made = self.attempts.entry(at).or_default();
            // An attempt that a crash interrupted keeps its number when sent again.
            made.insert(dispatch.attempt);
            let made = made.len();
            let granted = self.grants.get(&at).copied().unwrap_or_default();
            if made > granted as usize {
                return Err(format!("an approval is for one attempt: {made} of {granted}"));
            }
        }
        Ok(())
    }

    /// Checks the run after an event was folded.
    pub(super) fn after(&self, run: &Run, at: StepAt, event: &StepEvent) -> Result<(), String> {
        let state = run.state(at);
        let dispatched = self.dispatched(at);
        if at.item.is_none() && state.dispatch_no < dispatched {
            return Err(format!("`{}` lost its dispatch number", run.name(at)));
        }
        if matches!(event, StepEvent::Queued { .. }) && state.status().is_settled() {
            return Err("a queued step is not settled".into());
        }
        Ok(())
    }
}
