//! What comes back from a dispatch.

use super::Turn;
use super::fail::Trouble;
use crate::code::Code;
use crate::journal::event::{
    Completed, ContractSide, Delta, DeltaPart, Event, LogLine, Path, StepAt, StepEvent, Wait,
};
use crate::limits::LOG_LINE_BYTES_MAX;
use crate::plan::policy::RetryCause;
use crate::port::adapter::{Answer, CallErrorCode, Emission, Process};
use crate::port::moderator::Phase;
use crate::run::command::{Dispatching, Refusal};
use crate::status::{RunStatus, Waiting};
use std::sync::Arc;

impl Turn<'_> {
    /// Whether this is the dispatch in flight. Anything else came late, or
    /// twice; and of a child run only its end counts.
    pub(super) fn in_flight(&self, at: StepAt, dispatch_no: u32) -> Result<(), Refusal> {
        let current = self.run.index.in_flight.get(&at);
        let is_current = current.is_some_and(|current| *current == dispatch_no);
        if is_current
            && matches!(self.run.state(at).path(), Some(Path::Edge | Path::Bridge | Path::Sync))
        {
            Ok(())
        } else {
            Err(Refusal::Late)
        }
    }

    pub(super) fn complete(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        answer: Answer,
    ) -> Result<(), Refusal> {
        if let Err(late) = self.in_flight(at, dispatch_no) {
            let reconciled = self.reconcile(at, dispatch_no, answer.usage);
            return if reconciled { Ok(()) } else { Err(late) };
        }
        let usage = self.priced(at, answer.usage.clone());
        let answer = Answer { usage: self.believed(at, usage), ..answer };
        if self.run.status == RunStatus::Cancelling {
            let reason = self.run.cancel_reason.clone().unwrap_or_default();
            self.stop_with(at, Code::Cancelled, &reason, answer.usage);
            return Ok(());
        }
        // What the moderator has not cleared is not recorded either.
        let cleared = self.is_cleared(at);
        if let Some(verdict) = self.objection(at, &answer) {
            self.flagged(at, Phase::Output, &verdict, answer.usage);
            return Ok(());
        }
        let mut answer = answer;
        if let Some(error) = answer.error.take() {
            let trouble = Trouble {
                code: error.code.to_string(),
                message: error.message,
                violations: Vec::new(),
                cause: cause(error.code),
                retry_after_ms: error.retry_after_ms,
                usage: answer.usage.clone(),
                answer: answer.into_record().filter(|_| cleared),
                session: None,
            };
            self.fail_attempt(at, trouble);
            return Ok(());
        }
        match self.outcome(at, &mut answer) {
            Ok((outcome, coercions)) => {
                let state = self.run.state(at);
                let begun = state.attempt_at_ms().unwrap_or(self.given.now_ms);
                let completed = Completed {
                    outcome: Arc::new(outcome),
                    attempts: state.attempt,
                    duration_ms: self.given.now_ms.saturating_sub(begun),
                    usage: answer.usage,
                    coercions,
                    session: answer.session,
                    conversation: answer.conversation,
                    artefacts: answer.artefacts,
                    carried: None,
                };
                self.node(at, StepEvent::Completed(Box::new(completed)));
            }
            Err(failure) => self.answer_unfit(at, failure, answer),
        }
        Ok(())
    }

    /// The answer does not fit what the step declares. It is recorded all the same.
    fn answer_unfit(&mut self, at: StepAt, failure: crate::failure::Failure, answer: Answer) {
        let contract = failure.code == Code::OutputContractViolation;
        if contract {
            let errors = Arc::new(failure.violations.clone());
            let phase = ContractSide::Output;
            self.node(at, StepEvent::ContractViolated { phase, errors });
        }
        let never = failure.code == Code::ConditionError;
        let session = answer.session.clone();
        let message = if contract && self.run.step(at).reask == 0 {
            failure.code.to_string()
        } else {
            failure.message
        };
        let trouble = Trouble {
            code: failure.code.to_string(),
            message,
            violations: failure.violations,
            cause: (!never).then_some(RetryCause::ContractViolated),
            retry_after_ms: None,
            usage: answer.usage.clone(),
            answer: answer.into_record(),
            session,
        };
        if never { self.give_up(at, trouble) } else { self.fail_attempt(at, trouble) }
    }

    pub(super) fn accepted(&mut self, at: StepAt, dispatch_no: u32) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        let state = self.run.state(at);
        if state.phase.waiting() == Some(Waiting::ExternalCallback) {
            return Ok(());
        }
        let wait = Wait {
            reason: Waiting::ExternalCallback,
            attempt: state.attempt,
            cause: None,
            delay_ms: 0,
            until_ms: state.phase.deadline_ms().unwrap_or(u64::MAX),
            code: None,
            hint: None,
        };
        self.node(at, StepEvent::Waiting(Box::new(wait)));
        Ok(())
    }

    pub(super) fn stream(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        part: DeltaPart,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        let state = self.run.state(at);
        let delta = Delta { index: state.deltas, attempt: state.attempt, dispatch_no, part };
        self.node(at, StepEvent::Delta(Box::new(delta)));
        Ok(())
    }

    /// Parts of an answer that a bridge delivers. Where the output is moderated they are
    /// dropped: nothing is shown before it was judged, and the whole answer will be.
    pub(super) fn parts(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        parts: Vec<Emission>,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        if self.run.step(at).moderation.covers(Phase::Output) {
            return Ok(());
        }
        for part in parts {
            match part {
                Emission::Text(text) => self.stream(at, dispatch_no, DeltaPart::Text(text))?,
                Emission::Media { url, mime } => {
                    self.stream(at, dispatch_no, DeltaPart::Media { url, mime })?;
                }
                Emission::Log(text) => self.log(at, dispatch_no, text)?,
                Emission::ToolEnded(ended) => self.tool_ended(at, dispatch_no, ended)?,
                // A process of another machine is that machine's to stop.
                Emission::Process(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn log(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        mut text: String,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        if text.len() > LOG_LINE_BYTES_MAX {
            let cut = (0..=LOG_LINE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(cut.unwrap_or(0));
            text.push('…');
        }
        self.node(at, StepEvent::Log { dispatch_no, line: LogLine::Text(text) });
        Ok(())
    }

    pub(super) fn process(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        process: Process,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        self.node(at, StepEvent::Log { dispatch_no, line: LogLine::Process(process) });
        Ok(())
    }

    /// The run has a new owner: what was in flight here is sent again.
    pub(super) fn take_over(&mut self) {
        if self.run.status.is_terminal() {
            return;
        }
        self.emit(Event::RunStatusChanged {
            status: self.run.status,
            reason: "taken_over".to_owned(),
            by: None,
        });
        for at in self.run.index.in_flight.keys().copied().collect::<Vec<_>>() {
            // What became of one may have stopped the next.
            let flies = self.run.index.in_flight.contains_key(&at);
            if flies && self.run.state(at).path() == Some(Path::Edge) {
                self.send_again(at);
            }
        }
    }

    fn send_again(&mut self, at: StepAt) {
        if self.run.status == RunStatus::Cancelling {
            let reason = self.run.cancel_reason.clone().unwrap_or_default();
            return self.stop(at, Code::Cancelled, &reason);
        }
        if self.run.step(at).idempotent {
            return match self.given.dispatching {
                Dispatching::Allowed => self.start(at),
                // Nothing may be sent now: it is, as soon as something may.
                Dispatching::Deferred => self.node(at, StepEvent::Queued { items: None }),
            };
        }
        let trouble = Trouble {
            code: Code::UnknownOutcome.to_string(),
            message: "the engine stopped while it was under way, and it must not be repeated"
                .to_owned(),
            violations: Vec::new(),
            cause: None,
            retry_after_ms: None,
            usage: self.given_up(at),
            answer: None,
            session: None,
        };
        if self.run.state(at).escalated || self.is_cut_off(at) {
            return self.give_up(at, trouble);
        }
        self.escalate(at, trouble);
    }
}

/// What a `retry` map calls an error.
fn cause(code: CallErrorCode) -> Option<RetryCause> {
    match code {
        CallErrorCode::Timeout => Some(RetryCause::Timeout),
        CallErrorCode::ProviderError | CallErrorCode::AdapterCrash => {
            Some(RetryCause::ProviderError)
        }
        CallErrorCode::RateLimit => Some(RetryCause::RateLimit),
        CallErrorCode::Auth
        | CallErrorCode::InvalidRequest
        | CallErrorCode::ContentFilter
        | CallErrorCode::Cancelled => None,
    }
}
