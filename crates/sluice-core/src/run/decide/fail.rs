//! What becomes of a failure: another attempt, a skip, a question, an end.

use super::Turn;
use super::bind::Unfit;
use crate::code::Code;
use crate::failure::Failure;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalRequested, ApprovalSource, ContractSide, Ending, Retried, Skip, SkipCause, StepAt,
    StepEvent, Wait,
};
use crate::limits::DURATION_MS_MAX;
use crate::plan::policy::{OnFailure, RetryCause};
use crate::plan::step::Retry;
use crate::port::adapter::Usage;
use crate::status::Waiting;
use crate::violation::Violation;
use serde_json::Value;
use std::sync::Arc;

/// A failed attempt.
pub(super) struct Trouble {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) violations: Vec<Violation>,
    /// What a `retry` map calls it; none if it is nothing worth another try.
    pub(super) cause: Option<RetryCause>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) usage: Usage,
    /// What was answered; none if nothing was.
    pub(super) answer: Option<Arc<Value>>,
    /// The session of the provider that the answer left.
    pub(super) session: Option<String>,
}

/// Another attempt.
struct Again {
    delay_ms: u64,
    reask: bool,
}

impl Turn<'_> {
    /// A step cannot be given what it needs.
    pub(super) fn unfit(&mut self, at: StepAt, unfit: Unfit) {
        match unfit {
            Unfit::Failure(failure) if failure.code != Code::InputContractViolation => {
                self.fail(at, failure);
            }
            Unfit::Failure(failure) | Unfit::Contract(failure) => {
                let errors = Arc::new(failure.violations.clone());
                let phase = ContractSide::Input;
                self.node(at, StepEvent::ContractViolated { phase, errors });
                self.fail(at, failure);
            }
            Unfit::Layers(failure) => {
                let errors = Arc::new(failure.violations.clone());
                let phase = ContractSide::Instructions;
                self.node(at, StepEvent::ContractViolated { phase, errors });
                self.fail(at, failure);
            }
            Unfit::Placeholder { label, message } => {
                let code = Code::PlaceholderUnbound.to_string();
                let placeholder = Some(label);
                let blocked = StepEvent::Blocked { code, message, placeholder, waits: false };
                self.node(at, blocked);
                self.spread(at);
            }
        }
    }

    /// A failure that no other attempt would change.
    pub(super) fn fail(&mut self, at: StepAt, failure: Failure) {
        let contract =
            matches!(failure.code, Code::InputContractViolation | Code::OutputContractViolation);
        // Contract failures carry their code for a message; the fields are told apart.
        let message = if contract { failure.code.to_string() } else { failure.message };
        self.give_up(
            at,
            Trouble {
                code: failure.code.to_string(),
                message,
                violations: failure.violations,
                cause: None,
                retry_after_ms: None,
                usage: self.given_up(at),
                answer: None,
                session: None,
            },
        );
    }

    pub(super) fn fail_upstream(&mut self, at: StepAt) {
        self.fail_upstream_quietly(at);
        self.cut_off_rest(at);
    }

    /// An attempt failed: another one, or the end of the step.
    pub(super) fn fail_attempt(&mut self, at: StepAt, trouble: Trouble) {
        // Once the run is halted nothing new is dispatched, and nobody is asked.
        if self.is_cut_off(at) {
            return self.give_up(at, trouble);
        }
        match self.again(at, &trouble) {
            Some(again) => self.retry_later(at, trouble, &again),
            None if self.escalates(at) => self.escalate(at, trouble),
            None => self.give_up(at, trouble),
        }
    }

    fn again(&mut self, at: StepAt, trouble: &Trouble) -> Option<Again> {
        let step = self.run.step(at);
        let state = self.run.state(at);
        let tries = state.attempt - state.reasks;
        if trouble.cause == Some(RetryCause::ContractViolated) && state.reasks < step.reask {
            return Some(Again { delay_ms: 0, reask: true });
        }
        let asked_ms = trouble.retry_after_ms.unwrap_or(0).min(DURATION_MS_MAX);
        let retry = &step.retry;
        let worth = trouble.cause.is_some_and(|cause| retry.retry_on.contains(&cause));
        if worth && tries < retry.attempts {
            let delay_ms = delay_ms(retry, tries, asked_ms, self.given.entropy.bits());
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

    fn retry_later(&mut self, at: StepAt, trouble: Trouble, again: &Again) {
        let attempt = self.run.state(at).attempt;
        let cause = trouble.cause.map_or(trouble.code.clone(), |cause| cause.to_string());
        let until_ms = self.given.now_ms.saturating_add(again.delay_ms);
        self.node(
            at,
            StepEvent::Retried(Box::new(Retried {
                attempt,
                cause: cause.clone(),
                message: trouble.message,
                delay_ms: again.delay_ms,
                reask: again.reask,
                usage: trouble.usage,
                answer: trouble.answer,
                session: trouble.session.filter(|_| again.reask),
            })),
        );
        let limited = trouble.cause == Some(RetryCause::RateLimit);
        let wait = Wait {
            reason: if limited { Waiting::RateLimit } else { Waiting::RetryBackoff },
            attempt: attempt + 1,
            cause: Some(cause),
            delay_ms: again.delay_ms,
            until_ms,
            code: None,
            hint: None,
        };
        self.node(at, StepEvent::Waiting(Box::new(wait)));
        if again.delay_ms == 0 {
            self.wake(at);
        }
    }

    fn escalates(&self, at: StepAt) -> bool {
        let asks = self.run.step(at).on_failure == Some(OnFailure::RetryOnceThenEscalate);
        asks && !self.run.state(at).escalated
    }

    /// Asks a person what to do about a failure.
    pub(super) fn escalate(&mut self, at: StepAt, trouble: Trouble) {
        let name = self.run.name(at);
        let open_ms = self.given.authority.patience().expires_ms;
        let asked = ApprovalRequested {
            approval: ApprovalId::new(self.given.now_ms, &mut *self.given.entropy),
            source: ApprovalSource::Escalation,
            summary: format!("`{name}` failed: {}. Retry, skip or abort?", trouble.message),
            approvers: Vec::new(),
            expires_at_ms: self.given.now_ms.saturating_add(open_ms),
            error: Some((trouble.code, trouble.message)),
            prepared: None,
            usage: trouble.usage,
            answer: trouble.answer,
            groups: Vec::new(),
            quorum: 1,
            not_initiator: false,
            reminders: self.reminders(),
            action: None,
        };
        self.node(at, StepEvent::ApprovalRequested(Box::new(asked)));
    }

    /// The step has failed for good; its policy says what that means.
    pub(super) fn give_up(&mut self, at: StepAt, trouble: Trouble) {
        if self.run.step(at).on_failure == Some(OnFailure::Skip) {
            let skip = Skip {
                cause: SkipCause::Failure,
                reason: trouble.message.clone(),
                error: Some((trouble.code, trouble.message)),
                violations: Arc::new(trouble.violations),
                usage: trouble.usage,
                answer: trouble.answer,
                carried: None,
            };
            return self.node(at, StepEvent::Skipped(skip));
        }
        let timed_out = trouble.code == Code::Timeout.as_str();
        let ending = Box::new(Ending {
            code: trouble.code,
            message: trouble.message,
            violations: Arc::new(trouble.violations),
            attempts: self.run.state(at).attempt,
            usage: trouble.usage,
            answer: trouble.answer,
        });
        let event = if timed_out { StepEvent::TimedOut(ending) } else { StepEvent::Failed(ending) };
        self.node(at, event);
        self.spread(at);
    }
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
