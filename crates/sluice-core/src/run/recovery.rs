//! Whether a failed run is retried by itself, when, and from which steps.
//!
//! INVARIANT: the journal counts the retries, so neither a crash nor a second owner causes
//! more of them than the workflow allows.

use super::state::{Run, StepState};
use crate::status::{RunStatus, StepStatus};
use std::collections::BTreeSet;

/// Codes of failures that only a person may retry.
const FINAL: [&str; 11] = [
    "approval_rejected",
    "moderation_blocked",
    "condition_error",
    "unresolved_variable",
    "input_contract_violation",
    "agent_disabled",
    "approval_required",
    "budget_exceeded",
    "context_untrusted",
    "policy_blocked",
    "trust_level_insufficient",
];

impl Run {
    /// When the engine retries the failed run; `None` if it does not.
    ///
    /// A child run is never retried: its failure was already reported to its parent, whose
    /// policies decide what happens.
    pub fn recovers_at_ms(&self) -> Option<u64> {
        let recovery = self.definition.plan.recovery.as_ref()?;
        let may_retry = self.status == RunStatus::Failed
            && self.started.parent.is_none()
            // A cancellation is final.
            && self.cancel_reason.is_none()
            && self.recoveries < recovery.max
            // A run that failed without a failed step stalled, and would stall again.
            && self.index.failed + self.index.cancelled > 0;
        if !may_retry || self.all().any(|(_, state)| is_final(state)) {
            return None;
        }
        Some(self.ended_at_ms?.saturating_add(recovery.after_ms))
    }
}

/// Whether a step failed in a way that another attempt would not change, or that a person has
/// decided on.
fn is_final(state: &StepState) -> bool {
    let has_failed = matches!(state.status(), StepStatus::Failed | StepStatus::Blocked);
    let code = state.failure.as_ref().map(|ending| ending.code.as_str());
    let has_final_code = code.is_some_and(|code| FINAL.contains(&code));
    has_failed && (has_final_code || state.escalated)
}

/// The steps that failed, timed out, were cancelled or are blocked.
pub(crate) fn failed_steps(run: &Run) -> BTreeSet<u32> {
    let bad = |state: &StepState| {
        matches!(
            state.status(),
            StepStatus::Failed | StepStatus::TimedOut | StepStatus::Cancelled | StepStatus::Blocked
        )
    };
    (0u32..).zip(&run.steps).filter(|(_, state)| bad(state)).map(|(step, _)| step).collect()
}

/// The steps and everything that depends on them, directly or not.
pub(crate) fn with_dependents(run: &Run, steps: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut front: Vec<u32> = steps.iter().copied().collect();
    let mut all = steps;
    while let Some(step) = front.pop() {
        for dependent in run.definition.plan.graph.dependents(step as usize) {
            if all.insert(*dependent) {
                front.push(*dependent);
            }
        }
    }
    all
}
