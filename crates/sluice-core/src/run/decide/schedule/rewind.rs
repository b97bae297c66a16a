//! Goes back in a run: to a checkpoint, or to its failed steps.

use crate::journal::event::{Event, StepAt, StepEvent};
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::run::decide::settle::cancel::stop_child;
use crate::run::recovery::{failed_steps, with_dependents};
use crate::run::state::StepState;
use crate::status::{REASON_RECOVERY, REASON_RETRY, REASON_REWIND};
use crate::status::{RunStatus, StepStatus};
use std::collections::BTreeSet;

/// The author of an automatic recovery.
const RECOVERED_BY: &str = "engine";

/// Returns every step that is not kept to pending.
pub(crate) fn rewind(draft: &mut Draft<'_>, by: &str, keep: &BTreeSet<u32>) -> Result<(), Refusal> {
    // A cancel is final.
    if matches!(draft.run.status, RunStatus::Cancelling | RunStatus::Cancelled) {
        return Err(Refusal::Ended(draft.run.status));
    }
    if draft.run.cancel_reason.is_some() {
        return Err(Refusal::Ended(RunStatus::Cancelled));
    }
    let touched = |state: &StepState| state.status() != StepStatus::Pending;
    let back: BTreeSet<u32> = (0u32..)
        .zip(&draft.run.steps)
        .filter(|(step, state)| touched(state) && !keep.contains(step))
        .map(|(step, _)| step)
        .collect();
    if back.is_empty() {
        return Err(Refusal::NothingToRewind);
    }
    go_back(draft, by, REASON_REWIND, &back);
    Ok(())
}

/// Repeats the failed steps of a failed run, and everything that depends on them.
pub(crate) fn retry(draft: &mut Draft<'_>, by: &str) -> Result<(), Refusal> {
    if draft.run.status != RunStatus::Failed {
        return Err(Refusal::NotFailed(draft.run.status));
    }
    if draft.run.cancel_reason.is_some() {
        return Err(Refusal::NotFailed(RunStatus::Cancelled));
    }
    let back = with_dependents(draft.run, failed_steps(draft.run));
    go_back(draft, by, REASON_RETRY, &back);
    Ok(())
}

/// Retries a failed run by itself, if its workflow declares a recovery and its time has
/// come.
pub(super) fn recover(draft: &mut Draft<'_>) {
    if draft.run.recovers_at_ms().is_some_and(|at_ms| at_ms <= draft.given.now_ms) {
        let back = with_dependents(draft.run, failed_steps(draft.run));
        go_back(draft, RECOVERED_BY, REASON_RECOVERY, &back);
    }
}

fn go_back(draft: &mut Draft<'_>, by: &str, reason: &str, back: &BTreeSet<u32>) {
    for step in back {
        let at = StepAt::whole(*step);
        let instances = draft.run.state(at).fan_out.as_ref().map_or(0, |one| one.instances.len());
        let instances = (0u32..).take(instances).map(|item| StepAt::instance(*step, item));
        for one in instances.chain([at]).collect::<Vec<_>>() {
            stop_child(draft, one, reason);
            draft.close_approval(one);
        }
    }
    draft.emit(Event::RunStatusChanged {
        status: RunStatus::Running,
        reason: reason.to_owned(),
        by: Some(by.to_owned()),
    });
    for step in back {
        draft.record(StepAt::whole(*step), StepEvent::Invalidated);
    }
}
