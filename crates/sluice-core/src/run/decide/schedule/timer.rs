//! What happens when a time has come.

use super::approval::remind_or_expire;
use super::dispatch::{follow, wake};
use super::end::{end_if_done, report_end};
use super::fan_out::gather_fan_outs;
use crate::code::Code;
use crate::duration;
use crate::journal::event::{Event, StepAt};
use crate::plan::policy::RetryCause;
use crate::run::decide::draft::Draft;
use crate::run::decide::settle::cancel::{stop, stop_child, undispatched};
use crate::run::decide::settle::cost::settle_unknown;
use crate::run::decide::settle::fail::{FailedAttempt, fail_attempt};
use crate::run::index::Timer;
use crate::run::state::Open;
use crate::status::RunStatus;

/// Fires every timer that is due.
pub(super) fn fire_timers(draft: &mut Draft<'_>) {
    while let Some((at_ms, timer)) = draft.run.index.timers.first().copied()
        && at_ms <= draft.given.now_ms
        && !draft.run.status.is_terminal()
    {
        match timer {
            Timer::Settle(at, dispatch_no) => settle_unknown(draft, at, dispatch_no),
            Timer::Retry(at) => wake(draft, at),
            Timer::Attempt(at) => time_out(draft, at),
            Timer::Approval(id) => remind_or_expire(draft, id),
            Timer::Run => time_out_run(draft),
        }
    }
}

/// Settles the overdue reservations of a run that has ended.
pub(super) fn settle_overdue(draft: &mut Draft<'_>) {
    let now_ms = draft.given.now_ms;
    let is_due = |open: &Open| open.is_reserved() && open.until_ms <= now_ms;
    let due = draft.run.open.iter().filter(|(_, open)| is_due(open));
    for (at, dispatch_no) in due.map(|(key, _)| *key).collect::<Vec<_>>() {
        settle_unknown(draft, at, dispatch_no);
    }
}

fn time_out(draft: &mut Draft<'_>, at: StepAt) {
    if draft.run.status == RunStatus::Cancelling {
        return stop(draft, at, Code::Cancelled, "it did not stop in time");
    }
    let timeout = duration::format(draft.run.step(at).timeout_ms);
    let message = format!("the attempt took longer than {timeout}");
    stop_child(draft, at, &message);
    let usage = draft.abandoned_usage(at);
    let failed = FailedAttempt::new(Code::Timeout, message, usage);
    let cause = Some(RetryCause::Timeout);
    let next = fail_attempt(draft, at, FailedAttempt { cause, ..failed });
    follow(draft, next);
}

/// Ends a run that has taken too long: everything stops at once.
fn time_out_run(draft: &mut Draft<'_>) {
    if draft.run.status == RunStatus::Cancelling {
        return end_cancelled(draft);
    }
    let timeout_ms = draft.run.definition.plan.timeout_ms.unwrap_or_default();
    let reason = format!("the run took longer than {}", duration::format(timeout_ms));
    for at in draft.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
        stop(draft, at, Code::Timeout, &reason);
    }
    for at in undispatched(draft.run) {
        stop(draft, at, Code::Timeout, &reason);
    }
    gather_fan_outs(draft);
    draft.emit(Event::RunTimedOut { timeout_ms });
    report_end(draft);
}

/// Ends a cancelled run whose steps did not stop in time.
fn end_cancelled(draft: &mut Draft<'_>) {
    for at in draft.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
        stop(draft, at, Code::Cancelled, "it did not stop in time");
    }
    gather_fan_outs(draft);
    end_if_done(draft);
}
