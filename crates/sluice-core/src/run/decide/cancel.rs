//! Stopping: one step, everything, for a while or for good.

use super::Turn;
use crate::code::Code;
use crate::journal::event::{ApprovalResolved, Ending, Event, Path, Resolution, StepAt, StepEvent};
use crate::plan::policy::Family;
use crate::port::adapter::Usage;
use crate::run::command::{Command, Refusal};
use crate::run::state::Pause;
use crate::status::REASON_OPERATOR;
use crate::status::RunStatus;
use std::sync::Arc;

impl Turn<'_> {
    pub(super) fn cancel(&mut self, by: &str, reason: &str) -> Result<(), Refusal> {
        match self.run.status {
            RunStatus::Cancelling | RunStatus::Cancelled => return Ok(()),
            RunStatus::Failed if self.run.cancel_reason.is_some() => return Ok(()),
            // One that would be taken up again by itself is kept from it.
            RunStatus::Failed if self.run.recovers_at_ms().is_some() => {}
            status if status.is_terminal() => return Err(Refusal::Ended(status)),
            _ => {}
        }
        self.emit(Event::RunStatusChanged {
            status: RunStatus::Cancelling,
            reason: reason.to_owned(),
            by: Some(by.to_owned()),
        });
        for at in self.undispatched() {
            self.stop(at, Code::Cancelled, reason);
        }
        for (at, _) in self.run.index.in_flight.clone() {
            self.stop_child(at, reason);
        }
        Ok(())
    }

    /// Settles a step as cancelled, and whatever it waits for with it.
    pub(super) fn stop(&mut self, at: StepAt, code: Code, reason: &str) {
        let usage = self.given_up(at);
        self.stop_with(at, code, reason, usage);
    }

    pub(super) fn stop_with(&mut self, at: StepAt, code: Code, reason: &str, usage: Usage) {
        self.drop_question(at);
        self.stop_child(at, reason);
        self.cancelled(at, code, reason, usage);
    }

    /// Settles a step that nothing is under way for any more.
    pub(super) fn cancelled(&mut self, at: StepAt, code: Code, reason: &str, usage: Usage) {
        let (code, reason) = (code.to_string(), reason.to_owned());
        self.node(at, StepEvent::Cancelled { code, reason, usage });
    }

    /// Closes the open approval of a step.
    pub(super) fn drop_question(&mut self, at: StepAt) {
        if let Some(approval) = self.run.open_approval(at) {
            let resolved = ApprovalResolved::new(approval, Resolution::Cancelled);
            self.node(at, StepEvent::ApprovalResolved(Box::new(resolved)));
        }
    }

    /// Tells a child run in flight to stop.
    pub(super) fn stop_child(&mut self, at: StepAt, reason: &str) {
        let state = self.run.state(at);
        if let (Some(Path::Child(child)), true) = (state.path(), state.status().is_dispatched()) {
            let command =
                Command::Cancel { by: self.run.id.to_string(), reason: reason.to_owned() };
            self.post(child, "cancel:parent".to_owned(), command);
        }
    }

    pub(super) fn pause(&mut self, by: &str) -> Result<(), Refusal> {
        match self.run.status {
            _ if self.run.pause == Some(Pause::Operator) => Ok(()),
            RunStatus::Queued | RunStatus::Running | RunStatus::Paused => {
                self.change(RunStatus::Paused, by);
                Ok(())
            }
            status => Err(Refusal::Ended(status)),
        }
    }

    pub(super) fn unpause(&mut self, by: &str) -> Result<(), Refusal> {
        if self.run.pause != Some(Pause::Operator) {
            return Err(Refusal::NotPaused);
        }
        self.change(RunStatus::Running, by);
        Ok(())
    }

    fn change(&mut self, status: RunStatus, by: &str) {
        self.emit(Event::RunStatusChanged {
            status,
            reason: REASON_OPERATOR.to_owned(),
            by: Some(by.to_owned()),
        });
    }

    /// Fails a step because of another, without looking further.
    pub(super) fn fail_upstream_quietly(&mut self, at: StepAt) {
        self.drop_question(at);
        let ending = Ending {
            code: Code::UpstreamFailure.to_string(),
            message: match self.run.definition.plan.family {
                Family::Lobsterx => "Blocked by upstream failure".to_owned(),
                Family::Lens => Code::UpstreamFailure.to_string(),
            },
            violations: Arc::default(),
            attempts: self.run.state(at).attempt,
            usage: Usage::default(),
            answer: None,
        };
        self.node(at, StepEvent::Failed(Box::new(ending)));
    }
}
