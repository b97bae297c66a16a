//! The result of a dispatch.

use super::Next;
use super::cancel::stop_with;
use super::cost::{reconcile, reported_usage};
use super::fail::{FailedAttempt, fail_attempt, give_up};
use super::moderate::{fail_flagged, objection};
use super::outcome::{complete_step, outcome};
use super::progress::in_flight;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{ContractSide, StepAt, StepEvent};
use crate::plan::policy::ModerationPhase;
use crate::plan::policy::RetryCause;
use crate::port::adapter::{Answer, CallErrorCode};
use crate::port::moderator::Verdict;
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::status::RunStatus;
use std::sync::Arc;

/// Settles a dispatch with its answer and the moderator's verdict about it.
pub(crate) fn complete_dispatch(
    draft: &mut Draft<'_>,
    at: StepAt,
    dispatch_no: u32,
    answer: Answer,
    verdict: Option<Verdict>,
) -> Result<Next, Refusal> {
    if let Err(late) = in_flight(draft.run, at, dispatch_no) {
        let reconciled = reconcile(draft, at, dispatch_no, answer.usage);
        return if reconciled { Ok(Next::Nothing) } else { Err(late) };
    }
    let mut answer = answer;
    answer.usage = reported_usage(draft, at, answer.usage);
    if draft.run.status == RunStatus::Cancelling {
        let reason = draft.run.cancel_reason.clone().unwrap_or_default();
        stop_with(draft, at, Code::Cancelled, &reason, answer.usage);
        return Ok(Next::Nothing);
    }
    // An answer that the moderator has not cleared is not recorded either.
    let moderated = draft.run.step(at).moderation.covers(ModerationPhase::Output);
    let cleared = !moderated || verdict == Some(Verdict::Clear);
    if let Some(verdict) = objection(draft, at, &answer, verdict) {
        fail_flagged(draft, at, ModerationPhase::Output, &verdict, answer.usage);
        return Ok(Next::Nothing);
    }
    if let Some(error) = answer.error.take() {
        let failed = FailedAttempt {
            code: error.code.to_string(),
            message: error.message,
            cause: cause(error.code),
            retry_after_ms: error.retry_after_ms,
            usage: answer.usage.clone(),
            answer: answer.into_record().filter(|_| cleared),
            ..FailedAttempt::default()
        };
        return Ok(fail_attempt(draft, at, failed));
    }
    match outcome(draft, at, &mut answer) {
        Ok(settled) => {
            complete_step(draft, at, settled, answer);
            Ok(Next::Nothing)
        }
        Err(failure) => Ok(refuse_answer(draft, at, failure, answer)),
    }
}

/// The answer does not fit the declarations of the step. It is recorded nevertheless.
fn refuse_answer(draft: &mut Draft<'_>, at: StepAt, failure: Failure, answer: Answer) -> Next {
    let Failure { code, message, violations, .. } = failure;
    let contract = code == Code::OutputContractViolation;
    if contract {
        let errors = Arc::new(violations.clone());
        let phase = ContractSide::Output;
        draft.record(at, StepEvent::ContractViolated { phase, errors });
    }
    let reasks = draft.run.step(at).reask > 0;
    let message = if contract && !reasks { code.to_string() } else { message };
    let permanent = code == Code::ConditionError;
    let failed = FailedAttempt {
        violations,
        cause: (!permanent).then_some(RetryCause::ContractViolated),
        session: answer.session.clone(),
        ..FailedAttempt::new(code, message, answer.usage.clone())
    };
    let failed = FailedAttempt { answer: answer.into_record(), ..failed };
    if permanent {
        give_up(draft, at, failed);
        return Next::Nothing;
    }
    fail_attempt(draft, at, failed)
}

/// The name of an error in a `retry` map.
fn cause(code: CallErrorCode) -> Option<RetryCause> {
    match code {
        CallErrorCode::Timeout => Some(RetryCause::Timeout),
        CallErrorCode::ProviderError | CallErrorCode::AdapterCrash => {
            Some(RetryCause::ProviderError)
        }
        CallErrorCode::RateLimit => Some(RetryCause::RateLimit),
        CallErrorCode::Auth
        | CallErrorCode::InvalidRequest
        | CallErrorCode::ToolNotAccepted
        | CallErrorCode::ToolDefinitionChanged
        | CallErrorCode::ContentFilter
        | CallErrorCode::Cancelled => None,
    }
}
