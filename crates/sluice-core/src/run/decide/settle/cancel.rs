//! Stops steps: one, or all when the run is cancelled.

use crate::code::Code;
use crate::journal::event::{Ending, Event, Path, StepAt, StepEvent};
use crate::plan::policy::Family;
use crate::port::adapter::Usage;
use crate::run::command::{Command, Refusal};
use crate::run::decide::draft::Draft;
use crate::run::state::{Run, StepState};
use crate::status::RunStatus;

/// Cancels the run: steps in flight are asked to stop, all others are cancelled.
pub(crate) fn cancel(draft: &mut Draft<'_>, by: &str, reason: &str) -> Result<(), Refusal> {
    match draft.run.status {
        RunStatus::Cancelling | RunStatus::Cancelled => return Ok(()),
        RunStatus::Failed if draft.run.cancel_reason.is_some() => return Ok(()),
        // A failed run that would recover by itself no longer does.
        RunStatus::Failed if draft.run.recovers_at_ms().is_some() => {}
        status if status.is_terminal() => return Err(Refusal::Ended(status)),
        _ => {}
    }
    draft.emit(Event::RunStatusChanged {
        status: RunStatus::Cancelling,
        reason: reason.to_owned(),
        by: Some(by.to_owned()),
    });
    for at in undispatched(draft.run) {
        stop(draft, at, Code::Cancelled, reason);
    }
    for (at, _) in draft.run.index.in_flight.clone() {
        stop_child(draft, at, reason);
    }
    Ok(())
}

/// Every step and instance that is not settled and not dispatched.
pub(crate) fn undispatched(run: &Run) -> Vec<StepAt> {
    let waits = |state: &StepState| !state.is_settled() && !state.status().is_dispatched();
    run.all().filter(|(_, state)| waits(state)).map(|(at, _)| at).collect()
}

/// Settles a step as cancelled, with its open approval and its child run.
pub(crate) fn stop(draft: &mut Draft<'_>, at: StepAt, code: Code, reason: &str) {
    let usage = draft.abandoned_usage(at);
    stop_with(draft, at, code, reason, usage);
}

pub(super) fn stop_with(draft: &mut Draft<'_>, at: StepAt, code: Code, reason: &str, usage: Usage) {
    draft.close_approval(at);
    stop_child(draft, at, reason);
    cancelled(draft, at, code, reason, usage);
}

/// Settles a step that has neither an open approval nor a child run.
pub(super) fn cancelled(draft: &mut Draft<'_>, at: StepAt, code: Code, reason: &str, usage: Usage) {
    let (code, reason) = (code.to_string(), reason.to_owned());
    draft.record(at, StepEvent::Cancelled { code, reason, usage });
}

/// Sends a cancel to a child run in flight.
pub(crate) fn stop_child(draft: &mut Draft<'_>, at: StepAt, reason: &str) {
    let state = draft.run.state(at);
    if let (Some(Path::Child(child)), true) = (state.path(), state.status().is_dispatched()) {
        let command = Command::Cancel { by: draft.run.id.to_string(), reason: reason.to_owned() };
        draft.post(child, "cancel:parent".to_owned(), command);
    }
}

/// Fails a step because of one that it depends on. The caller looks at its dependents.
pub(super) fn fail_dependent(draft: &mut Draft<'_>, at: StepAt) {
    draft.close_approval(at);
    let ending = Ending {
        code: Code::UpstreamFailure.to_string(),
        message: match draft.run.definition.plan.family {
            Family::Lobsterx => "Blocked by upstream failure".to_owned(),
            Family::Lens => Code::UpstreamFailure.to_string(),
        },
        attempts: draft.run.state(at).attempt,
        ..Ending::default()
    };
    draft.record(at, StepEvent::Failed(Box::new(ending)));
}
