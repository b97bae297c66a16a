//! What happens by itself when its time has come.

use super::Turn;
use super::fail::Trouble;
use crate::code::Code;
use crate::failure::Failure;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalResolved, ApprovalSource, Event, Resolution, StepAt, StepEvent,
};
use crate::plan::policy::RetryCause;
use crate::run::index::Timer;
use crate::run::state::Open;
use crate::status::RunStatus;

impl Turn<'_> {
    /// Does everything that is due.
    pub(super) fn fire_timers(&mut self) {
        while let Some((at_ms, timer)) = self.run.index.timers.first().copied()
            && at_ms <= self.given.now_ms
            && !self.run.status.is_terminal()
        {
            match timer {
                Timer::Settle(at, dispatch_no) => self.settle_unknown(at, dispatch_no),
                Timer::Retry(at) => self.wake(at),
                Timer::Attempt(at) => self.time_out(at),
                Timer::Approval(id) => self.remind(id),
                Timer::Run => self.time_out_run(),
            }
        }
    }

    /// Of a run that has ended only money is still to be settled.
    pub(super) fn settle_overdue(&mut self) {
        let now_ms = self.given.now_ms;
        let is_due = |open: &Open| open.is_reserved() && open.until_ms <= now_ms;
        let due = self.run.open.iter().filter(|(_, open)| is_due(open));
        for (at, dispatch_no) in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.settle_unknown(at, dispatch_no);
        }
    }

    /// The wait before an attempt is over.
    pub(super) fn wake(&mut self, at: StepAt) {
        let now = !self.run.must_ask(at) && self.may_start() && self.has_room_for(at);
        if now {
            self.start(at);
        } else {
            self.node(at, StepEvent::Queued { items: None });
        }
    }

    fn time_out(&mut self, at: StepAt) {
        if self.run.status == RunStatus::Cancelling {
            return self.stop(at, Code::Cancelled, "it did not stop in time");
        }
        let took = crate::duration::format(self.run.step(at).timeout_ms);
        let message = format!("the attempt took longer than {took}");
        self.stop_child(at, &message);
        let trouble = Trouble {
            code: Code::Timeout.to_string(),
            message,
            violations: Vec::new(),
            cause: Some(RetryCause::Timeout),
            retry_after_ms: None,
            usage: self.given_up(at),
            answer: None,
            session: None,
        };
        self.fail_attempt(at, trouble);
    }

    fn remind(&mut self, id: ApprovalId) {
        let approval = &self.run.approvals[&id];
        let at = approval.at;
        if approval.expires_at_ms > self.given.now_ms {
            let level = approval.remind_at.get(approval.reminders as usize);
            let level = level.map(|(_, level)| level.clone()).unwrap_or_default();
            return self.node(at, StepEvent::ApprovalReminded { approval: id, level });
        }
        let source = approval.source;
        let resolved = ApprovalResolved::new(id, Resolution::Expired);
        self.node(at, StepEvent::ApprovalResolved(Box::new(resolved)));
        self.go_on_after_people();
        match source {
            ApprovalSource::Escalation => self.abort(at),
            ApprovalSource::Tool => self.rule_on_held(at, id),
            ApprovalSource::Step | ApprovalSource::Policy => {
                let message = "no approver answered in time";
                self.fail(at, Failure::new(Code::ApprovalRejected, message));
            }
        }
    }

    /// The run has taken too long: everything stops at once.
    fn time_out_run(&mut self) {
        if self.run.status == RunStatus::Cancelling {
            return self.end_cancelled();
        }
        let timeout_ms = self.run.definition.plan.timeout_ms.unwrap_or_default();
        let reason = format!("the run took longer than {}", crate::duration::format(timeout_ms));
        for at in self.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
            self.stop(at, Code::Timeout, &reason);
        }
        for at in self.undispatched() {
            self.stop(at, Code::Timeout, &reason);
        }
        self.gather_fan_outs();
        self.emit(Event::RunTimedOut { timeout_ms });
        self.tell_parent();
    }

    /// A cancel is final: what does not stop while there is time is left behind.
    fn end_cancelled(&mut self) {
        for at in self.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
            self.stop(at, Code::Cancelled, "it did not stop in time");
        }
        self.gather_fan_outs();
        self.end_if_done();
    }
}
