//! Recovery of a run by a new owner.

use super::dispatch::start;
use crate::code::Code;
use crate::journal::event::{Event, Path, StepAt, StepEvent};
use crate::run::command::Dispatching;
use crate::run::decide::draft::Draft;
use crate::run::decide::people::approval::escalate;
use crate::run::decide::settle::cancel::stop;
use crate::run::decide::settle::fail::{FailedAttempt, give_up};
use crate::run::decide::settle::halt::is_cut_off;
use crate::status::RunStatus;

/// The run has a new owner: local dispatches that were in flight are repeated.
pub(crate) fn take_over(draft: &mut Draft<'_>) {
    if draft.run.status.is_terminal() {
        return;
    }
    draft.emit(Event::RunStatusChanged {
        status: draft.run.status,
        reason: "taken_over".to_owned(),
        by: None,
    });
    for at in draft.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
        // The failure of one may have stopped the next.
        let in_flight = draft.run.index.in_flight.contains_key(&at);
        if in_flight && draft.run.state(at).path() == Some(Path::Edge) {
            send_again(draft, at);
        }
    }
}

fn send_again(draft: &mut Draft<'_>, at: StepAt) {
    if draft.run.status == RunStatus::Cancelling {
        let reason = draft.run.cancel_reason.clone().unwrap_or_default();
        return stop(draft, at, Code::Cancelled, &reason);
    }
    if draft.run.step(at).idempotent {
        return match draft.given.dispatching {
            Dispatching::Allowed => start(draft, at),
            Dispatching::Deferred => draft.record(at, StepEvent::Queued { items: None }),
        };
    }
    let message = "the engine stopped while it was under way, and it must not be repeated";
    let usage = draft.abandoned_usage(at);
    let failed = FailedAttempt::new(Code::UnknownOutcome, message.to_owned(), usage);
    if draft.run.state(at).escalated || is_cut_off(draft.run, at) {
        return give_up(draft, at, failed);
    }
    escalate(draft, at, failed);
}
