//! Pauses of a run: by an operator, or because only people are left to wait for.

use super::Draft;
use crate::journal::event::Event;
use crate::run::command::Refusal;
use crate::run::state::Pause;
use crate::status::{REASON_APPROVAL, REASON_OPERATOR, RunStatus};

/// An operator pauses the run: nothing new is dispatched.
pub(crate) fn pause(draft: &mut Draft<'_>, by: &str) -> Result<(), Refusal> {
    match draft.run.status {
        _ if draft.run.pause == Some(Pause::Operator) => Ok(()),
        RunStatus::Queued | RunStatus::Running | RunStatus::Paused => {
            change(draft, RunStatus::Paused, REASON_OPERATOR, Some(by));
            Ok(())
        }
        status => Err(Refusal::Ended(status)),
    }
}

/// An operator resumes the run.
pub(crate) fn unpause(draft: &mut Draft<'_>, by: &str) -> Result<(), Refusal> {
    if draft.run.pause != Some(Pause::Operator) {
        return Err(Refusal::NotPaused);
    }
    change(draft, RunStatus::Running, REASON_OPERATOR, Some(by));
    Ok(())
}

/// Pauses the run, and so its clock, while it waits only for people; resumes it when
/// it no longer does.
pub(crate) fn pause_if_only_people(draft: &mut Draft<'_>) {
    let only_people = draft.run.waits_only_for_people();
    if only_people && matches!(draft.run.status, RunStatus::Running | RunStatus::Queued) {
        change(draft, RunStatus::Paused, REASON_APPROVAL, None);
    }
    if !only_people {
        resume_after_people(draft);
    }
}

/// Resumes a run that waited only for people.
pub(crate) fn resume_after_people(draft: &mut Draft<'_>) {
    if draft.run.pause == Some(Pause::Approval) {
        change(draft, RunStatus::Running, REASON_APPROVAL, None);
    }
}

fn change(draft: &mut Draft<'_>, status: RunStatus, reason: &str, by: Option<&str>) {
    let (reason, by) = (reason.to_owned(), by.map(str::to_owned));
    draft.emit(Event::RunStatusChanged { status, reason, by });
}
