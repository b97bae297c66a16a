//! What the audit shows of a run's journal.
//!
//! Facts of runs are not stored twice. The audit shows its own entries and those events
//! whose declaration names a category and a type. A decision implies up to two more facts:
//! where it routed the step if there was a choice, and that it rejected the step for good.

use crate::journal::event::declarations;
use serde_json::{Value, json};

const DECIDED: &str = "governance.decided";

/// The categories of the audit.
pub const CATEGORIES: [&str; 7] =
    ["governance", "execution", "lifecycle", "security", "configuration", "deploy", "routing"];

/// The category and the type of an event, if it is an audit fact.
pub fn fact(kind: &str) -> Option<(&'static str, &'static str)> {
    declarations().find(|declared| declared.name == kind)?.fact
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

    #[test]
    fn facts_have_a_known_category_and_one_event_has_one_fact() {
        for declared in declarations() {
            assert_eq!(fact(declared.name), declared.fact, "{}", declared.name);
            assert!(declared.fact.is_none_or(|(category, _)| CATEGORIES.contains(&category)));
        }
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
