//! What follows from a failure: another attempt, an escalation, a skip, or the end of
//! the step.

use super::Next;
use super::cancel::fail_dependent;
use super::halt::{cut_off_rest, is_cut_off, spread};
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Ending, Retried, Skip, SkipCause, StepAt, StepEvent, Wait};
use crate::limits::DURATION_MS_MAX;
use crate::plan::policy::{OnFailure, RetryCause};
use crate::plan::step::Retry;
use crate::port::adapter::Usage;
use crate::run::decide::draft::Draft;
use crate::status::Waiting;
use crate::violation::Violation;
use serde_json::Value;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct FailedAttempt {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) violations: Vec<Violation>,
    /// The cause as a `retry` map names it; none if another attempt is pointless.
    pub(crate) cause: Option<RetryCause>,
    /// The delay that the provider asks for.
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) usage: Usage,
    /// The refused answer, as the journal keeps it.
    pub(crate) answer: Option<Arc<Value>>,
    /// The session of the provider that the answer left.
    pub(crate) session: Option<String>,
}

impl FailedAttempt {
    pub(crate) fn new(code: Code, message: String, usage: Usage) -> FailedAttempt {
        FailedAttempt { code: code.to_string(), message, usage, ..FailedAttempt::default() }
    }
}

/// The next attempt.
struct Again {
    delay_ms: u64,
    reask: bool,
}

/// Fails a step for a reason that another attempt would not change.
pub(crate) fn fail(draft: &mut Draft<'_>, at: StepAt, failure: Failure) {
    let contract =
        matches!(failure.code, Code::InputContractViolation | Code::OutputContractViolation);
    // The message of a contract failure is its code; the violations name the fields.
    let message = if contract { failure.code.to_string() } else { failure.message };
    let usage = draft.abandoned_usage(at);
    let failed = FailedAttempt::new(failure.code, message, usage);
    give_up(draft, at, FailedAttempt { violations: failure.violations, ..failed });
}

/// Fails a step because of one that it depends on.
pub(crate) fn fail_upstream(draft: &mut Draft<'_>, at: StepAt) {
    fail_dependent(draft, at);
    cut_off_rest(draft, at);
}

/// An attempt failed: it is tried again, escalated, or the step has failed.
pub(crate) fn fail_attempt(draft: &mut Draft<'_>, at: StepAt, failed: FailedAttempt) -> Next {
    // Once the run is halted nothing is dispatched and no approval is requested.
    if !is_cut_off(draft.run, at) {
        if let Some(again) = again(draft, at, &failed) {
            return retry_later(draft, at, failed, &again);
        }
        if escalates(draft, at) {
            return Next::Escalate(at, Box::new(failed));
        }
    }
    give_up(draft, at, failed);
    Next::Nothing
}

fn again(draft: &mut Draft<'_>, at: StepAt, failed: &FailedAttempt) -> Option<Again> {
    let step = draft.run.step(at);
    let state = draft.run.state(at);
    let tries = state.attempt - state.reasks;
    if failed.cause == Some(RetryCause::ContractViolated) && state.reasks < step.reask {
        return Some(Again { delay_ms: 0, reask: true });
    }
    let asked_ms = failed.retry_after_ms.unwrap_or(0).min(DURATION_MS_MAX);
    let retry = &step.retry;
    let worth = failed.cause.is_some_and(|cause| retry.retry_on.contains(&cause));
    if worth && tries < retry.attempts {
        let delay_ms = delay_ms(retry, tries, asked_ms, draft.given.entropy.bits());
        return Some(Again { delay_ms, reask: false });
    }
    let after = |ms: u64| Some(Again { delay_ms: ms.max(asked_ms), reask: false });
    match (step.on_failure, tries) {
        (Some(OnFailure::RetryOnce | OnFailure::RetryOnceThenEscalate), 1) => after(0),
        (Some(OnFailure::Retry), 1) => after(1000),
        (Some(OnFailure::Retry), 2) => after(2000),
        (Some(OnFailure::Retry), 3) => after(4000),
        _ => None,
    }
}

fn retry_later(draft: &mut Draft<'_>, at: StepAt, failed: FailedAttempt, again: &Again) -> Next {
    let attempt = draft.run.state(at).attempt;
    let cause = failed.cause.map_or(failed.code, |cause| cause.to_string());
    let retried = Retried {
        attempt,
        cause: cause.clone(),
        message: failed.message,
        delay_ms: again.delay_ms,
        reask: again.reask,
        usage: failed.usage,
        answer: failed.answer,
        session: failed.session.filter(|_| again.reask),
    };
    draft.record(at, StepEvent::Retried(Box::new(retried)));
    let limited = failed.cause == Some(RetryCause::RateLimit);
    let wait = Wait {
        reason: if limited { Waiting::RateLimit } else { Waiting::RetryBackoff },
        attempt: attempt + 1,
        cause: Some(cause),
        delay_ms: again.delay_ms,
        until_ms: draft.given.now_ms.saturating_add(again.delay_ms),
        code: None,
        hint: None,
    };
    draft.record(at, StepEvent::Waiting(Box::new(wait)));
    if again.delay_ms == 0 { Next::Retry(at) } else { Next::Nothing }
}

fn escalates(draft: &Draft<'_>, at: StepAt) -> bool {
    let asks = draft.run.step(at).on_failure == Some(OnFailure::RetryOnceThenEscalate);
    asks && !draft.run.state(at).escalated
}

/// Aborts a step after an escalation: a person chose so, or no approver answered.
pub(crate) fn abort(draft: &mut Draft<'_>, at: StepAt) {
    let failure = draft.run.state(at).failure.as_ref();
    let (code, message) =
        failure.map(|ending| (ending.code.clone(), ending.message.clone())).unwrap_or_default();
    give_up(draft, at, FailedAttempt { code, message, ..FailedAttempt::default() });
}

/// The step has failed; its policy decides what that means.
pub(crate) fn give_up(draft: &mut Draft<'_>, at: StepAt, failed: FailedAttempt) {
    if draft.run.step(at).on_failure == Some(OnFailure::Skip) {
        let skip = Skip {
            cause: SkipCause::Failure,
            reason: failed.message.clone(),
            error: Some((failed.code, failed.message)),
            violations: Arc::new(failed.violations),
            usage: failed.usage,
            answer: failed.answer,
            carried: None,
            control: draft.run.is_guarded(at.step),
        };
        return draft.record(at, StepEvent::Skipped(skip));
    }
    let timed_out = failed.code == Code::Timeout.as_str();
    let ending = Box::new(Ending {
        code: failed.code,
        message: failed.message,
        violations: Arc::new(failed.violations),
        attempts: draft.run.state(at).attempt,
        usage: failed.usage,
        answer: failed.answer,
    });
    let event = if timed_out { StepEvent::TimedOut(ending) } else { StepEvent::Failed(ending) };
    draft.record(at, event);
    spread(draft, at);
}

/// How long to wait after so many tries, if the provider asks for `asked_ms`.
fn delay_ms(retry: &Retry, tries: u32, asked_ms: u64, bits: u64) -> u64 {
    jittered(backoff_ms(retry, tries), bits).max(asked_ms)
}

/// The longest wait after so many tries: doubled with each, up to the bound.
fn backoff_ms(retry: &Retry, tries: u32) -> u64 {
    let doubled = retry.backoff_ms.saturating_mul(1 << (tries.max(1) - 1).min(40));
    doubled.min(retry.max_backoff_ms)
}

/// Between half of a delay and all of it, as chance has it. Half a millisecond
/// is rounded up: a wait is never less than half.
fn jittered(full_ms: u64, bits: u64) -> u64 {
    let half = full_ms.div_ceil(2);
    let share = (u128::from(full_ms - half) * u128::from(bits)) >> 64;
    half + u64::try_from(share).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{backoff_ms, delay_ms, jittered};
    use crate::plan::step::Retry;

    #[test]
    fn a_delay_is_between_half_and_all_of_it() {
        assert_eq!(jittered(500, 0), 250);
        assert_eq!(jittered(500, u64::MAX), 499);
        assert_eq!(jittered(500, u64::MAX / 2), 374);
        assert_eq!(jittered(501, 0), 251);
        assert_eq!(jittered(1, 0), 1);
        assert_eq!(jittered(0, u64::MAX), 0);
        assert_eq!(jittered(u64::MAX, 0), 1 << 63);
    }

    #[test]
    fn the_wait_doubles_up_to_its_bound() {
        let waits =
            |retry: &Retry| (1..=7).map(|tries| backoff_ms(retry, tries)).collect::<Vec<_>>();
        assert_eq!(waits(&Retry::default()), [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        let long = Retry { backoff_ms: u64::MAX / 2, max_backoff_ms: u64::MAX, ..Retry::default() };
        assert_eq!(waits(&long)[2..], [u64::MAX; 5]);
        assert_eq!(backoff_ms(&Retry::default(), u32::MAX), 8000);
    }

    #[test]
    fn ten_thousand_delays_are_inside_the_formula_and_a_longer_wish_wins() {
        let mut bits = 1_u64;
        let mut seen = [false; 2];
        for draw in 0..10_000_u32 {
            // A generator of Knuth's, mixed; its low bits alone would show a pattern.
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let chance = bits.rotate_left(draw % 64) ^ bits;
            let retry = Retry { backoff_ms: 1 + bits % 997, ..Retry::default() };
            let tries = 1 + draw % 9;
            let full_ms = (retry.backoff_ms << (tries - 1)).min(8000);
            let delay = delay_ms(&retry, tries, 0, chance);
            assert!(delay * 2 >= full_ms && delay <= full_ms, "{delay} of {full_ms}");
            seen[usize::from(delay * 4 > full_ms * 3)] = true;
            assert_eq!(delay_ms(&retry, tries, 9000, chance), 9000);
            assert_eq!(delay_ms(&retry, tries, delay / 2, chance), delay);
        }
        assert_eq!(seen, [true; 2], "both halves of the range are used");
    }
}
