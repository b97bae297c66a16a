//! What the audit shows of a run's journal: one table.
//!
//! Facts of runs are not written twice. Who reads the audit reads entries, and
//! beside them the events named here, each under a category and a type.

/// Events that are facts of the audit: category and type.
const FACTS: &[(&str, &str, &str)] = &[
    ("run.started", "execution", "run_started"),
    ("run.status.changed", "execution", "run_status_changed"),
    ("run.completed", "execution", "run_completed"),
    ("run.failed", "execution", "run_failed"),
    ("run.cancelled", "execution", "run_cancelled"),
    ("run.timed_out", "execution", "run_timed_out"),
    ("run.recovered", "execution", "run_recovered"),
    ("node.started", "execution", "step_dispatched"),
    ("node.retried", "execution", "step_retried"),
    ("node.completed", "execution", "step_completed"),
    ("node.failed", "execution", "step_failed"),
    ("node.timed_out", "execution", "step_timed_out"),
    ("node.cancelled", "execution", "step_cancelled"),
    ("node.skipped", "execution", "step_skipped"),
    ("node.blocked", "execution", "step_blocked"),
    ("node.invalidated", "execution", "step_invalidated"),
    ("budget.alert", "governance", "budget_alert"),
    ("governance.decided", "governance", "dispatch_decided"),
    ("moderation.flagged", "governance", "content_flagged"),
    ("contract.violated", "governance", "contract_violated"),
    ("approval.requested", "governance", "approval_requested"),
    ("approval.reminded", "governance", "approval_reminded"),
    ("approval.resolved", "governance", "approval_resolved"),
];

/// Events that are none: they say how the work went, not what was done.
#[cfg(test)]
const NOT_FACTS: &[&str] =
    &["node.queued", "node.waiting", "node.stream.delta", "node.log", "node.provenance"];

/// The categories of the audit.
pub const CATEGORIES: [&str; 7] =
    ["governance", "execution", "lifecycle", "security", "configuration", "deploy", "routing"];

/// The category and the type of an event, if it is a fact of the audit.
pub fn fact(kind: &str) -> Option<(&'static str, &'static str)> {
    let (_, category, what) = FACTS.iter().find(|(event, _, _)| *event == kind)?;
    Some((category, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_event_is_a_fact_or_is_not() {
        let facts = FACTS.iter().map(|(event, _, _)| *event);
        let all: BTreeSet<&str> = facts.chain(NOT_FACTS.iter().copied()).collect();
        assert_eq!(all.len(), FACTS.len() + NOT_FACTS.len());
        // As many as the samples of all events are.
        assert_eq!(all.len(), 28);
        assert!(FACTS.iter().all(|(_, category, _)| CATEGORIES.contains(category)));
        assert_eq!(fact("node.log"), None);
        assert_eq!(fact("node.started"), Some(("execution", "step_dispatched")));
    }
}
