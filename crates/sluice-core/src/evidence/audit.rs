//! Which journalled events are audit facts, and which facts follow from a decision.
//!
//! Facts about runs are not written twice. The audit consists of the entries and of the events
//! listed in this module, each with a category and a type. A decision is up to three facts:
//! that it was made, the chosen gateway if there was a choice, and that it finally rejected the
//! step.

use serde_json::{Value, json};

const DECIDED: &str = "governance.decided";

/// Events that are audit facts: event, category, type.
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
    (DECIDED, "governance", "dispatch_decided"),
    ("moderation.flagged", "governance", "content_flagged"),
    ("contract.violated", "governance", "contract_violated"),
    ("approval.requested", "governance", "approval_requested"),
    ("approval.reminded", "governance", "approval_reminded"),
    ("approval.resolved", "governance", "approval_resolved"),
];

/// Events that are not audit facts: they describe progress, not actions.
#[cfg(test)]
const NOT_FACTS: &[&str] =
    &["node.queued", "node.waiting", "node.stream.delta", "node.log", "node.provenance"];

/// The categories of the audit.
pub const CATEGORIES: [&str; 7] =
    ["governance", "execution", "lifecycle", "security", "configuration", "deploy", "routing"];

/// The category and the type of an event, if it is an audit fact.
pub fn fact(kind: &str) -> Option<(&'static str, &'static str)> {
    let (_, category, what) = FACTS.iter().find(|(event, _, _)| *event == kind)?;
    Some((category, what))
}

/// A journalled event.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// The event's name.
    pub kind: &'a str,
    /// The event's payload.
    pub payload: &'a Value,
}

/// A fact that follows from a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Implied {
    /// The category of the fact.
    pub category: &'static str,
    /// The type of the fact.
    pub what: &'static str,
    /// The part of the decision that proves it.
    pub detail: Value,
}

/// The facts that follow from a decision. `next` is the next event of the same step in the same
/// append: the consequence of the decision.
pub fn implied(event: Written<'_>, next: Option<Written<'_>>) -> Vec<Implied> {
    if event.kind != DECIDED {
        return Vec::new();
    }
    routed(event.payload).into_iter().chain(rejected(event.payload, next)).collect()
}

/// The chosen gateway, unless there was no choice and nothing was compared.
fn routed(decision: &Value) -> Option<Implied> {
    let brief = || {
        // A decision in short form has the gateway only among its facts.
        let gateway = decision.pointer("/facts/what/gateway/name");
        decision.get("layer").map(|layer| json!({"gateway": gateway, "layer": layer}))
    };
    let route = decision.get("route").cloned().or_else(brief)?;
    let compared = route["candidates"].as_array().is_some_and(|all| !all.is_empty());
    let usual = route["layer"] == "default" && !compared;
    let (category, what) = ("routing", "step_routed");
    (!usual).then_some(Implied { category, what, detail: route })
}

/// A final rejection by a gate: the step does not wait for a change, and the run is not a dry
/// run.
fn rejected(decision: &Value, next: Option<Written<'_>>) -> Option<Implied> {
    if decision["disposition"] != "block" {
        return None;
    }
    let goes_on = next.is_some_and(|next| match next.kind {
        "node.waiting" => true,
        "node.skipped" => next.payload["cause"] == "advisory",
        _ => false,
    });
    let by = &decision["blockedBy"];
    let detail = json!({"gate": by["gate"], "code": by["code"], "retryable": by["retryable"]});
    let (category, what) = ("governance", "safety_gate_rejected");
    (!goes_on).then_some(Implied { category, what, detail })
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

    fn of(decision: &Value, next: Option<(&str, &Value)>) -> Vec<(&'static str, &'static str)> {
        let next = next.map(|(kind, payload)| Written { kind, payload });
        let found = implied(Written { kind: DECIDED, payload: decision }, next);
        found.iter().map(|one| (one.category, one.what)).collect()
    }

    #[test]
    fn a_route_that_was_chosen_is_a_fact_and_the_usual_way_is_none() {
        let routed = [("routing", "step_routed")];
        let plain = json!({"disposition": "allow", "layer": "default"});
        assert_eq!(of(&plain, None), []);
        let whole = json!({"disposition": "hold", "route": {"gateway": "a", "layer": "default"}});
        assert_eq!(of(&whole, None), []);
        let facts = json!({"what": {"gateway": {"name": "a"}}});
        let pinned = json!({"disposition": "allow", "layer": "pinned", "facts": facts});
        assert_eq!(of(&pinned, None), routed);
        let found = implied(Written { kind: DECIDED, payload: &pinned }, None);
        assert_eq!(found[0].detail, json!({"gateway": "a", "layer": "pinned"}));
        // A step that waits for its own gateway was compared with others.
        let candidates = json!([{"gateway": "a"}, {"gateway": "b", "lost": "it is offline"}]);
        let route = json!({"gateway": "a", "layer": "default", "candidates": candidates});
        assert_eq!(of(&json!({"disposition": "allow", "route": route}), None), routed);
        assert_eq!(implied(Written { kind: "node.started", payload: &pinned }, None), []);
    }

    #[test]
    fn a_gate_that_rejects_for_good_is_a_fact_and_one_that_is_waited_at_is_none() {
        let by = json!({"gate": "policy_rules", "code": "policy_blocked", "retryable": false});
        let block = json!({"disposition": "block", "blockedBy": by});
        let rejected = [("governance", "safety_gate_rejected")];
        assert_eq!(of(&block, Some(("node.failed", &json!({})))), rejected);
        assert_eq!(of(&block, Some(("node.skipped", &json!({"cause": "failure"})))), rejected);
        assert_eq!(of(&block, Some(("node.retried", &json!({})))), rejected);
        // A call of a tool is rejected on its own.
        assert_eq!(of(&block, None), rejected);
        assert_eq!(of(&block, Some(("node.waiting", &json!({})))), []);
        assert_eq!(of(&block, Some(("node.skipped", &json!({"cause": "advisory"})))), []);
        let found = implied(Written { kind: DECIDED, payload: &block }, None);
        assert_eq!(found[0].detail, by);
    }
}
