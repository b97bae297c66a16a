//! Compares past decisions with those that another policy set would make.

use super::Service;
use super::past::{Past, PastDecision, PastDecisions, PolicyHistory};
use crate::refused::ServiceResult;
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_govern::policy::explain::{ExplainedArgument, ReadValue};
use sluice_govern::policy::{Policies, Replayed, replay};

/// Maximum number of decisions that are listed; all of them are counted.
const SHOWN_MAX: usize = 1000;

/// The policy set that the new one is compared with.
pub enum With<'p> {
    /// The set that was in force at each decision.
    Then,
    /// A given set.
    Set(&'p Policies),
}

/// The result of a comparison.
#[derive(Default)]
pub struct Compared {
    differ: Vec<Differs>,
    /// All that differ, including those that are not listed.
    different: u64,
    looked_at: u64,
    /// Decisions whose policy set is unknown, or whose record lacks facts that policies read.
    unknown: u64,
}

/// A decision that would differ.
struct Differs {
    decided: PastDecision,
    was: Replayed,
    would: Replayed,
    /// What the policies that make the difference read.
    values: Vec<ReadValue>,
    arguments: Vec<ExplainedArgument>,
}

impl Differs {
    /// Compares the results of the policies only; the other gates are not replayed.
    fn compare(decided: PastDecision, before: &Policies, after: &Policies) -> Option<Differs> {
        let (was, would) = (replay(before, &decided.facts), replay(after, &decided.facts));
        let same = was.disposition == would.disposition;
        let (values, arguments) = (Vec::new(), Vec::new());
        (!same).then_some(Differs { decided, was, would, values, arguments })
    }

    /// Adds the values that the policies of the difference decided on.
    fn explain(mut self, before: &Policies, after: &Policies) -> Differs {
        let because = self.because();
        for (set, sign) in [(after, '+'), (before, '-')] {
            let of_set = |policy: &str| {
                because.iter().any(|one| one.strip_prefix(sign).is_some_and(|name| name == policy))
            };
            let all = set.explain(&self.decided.facts).policies;
            for policy in all.into_iter().filter(|one| of_set(&one.policy) || one.error.is_some()) {
                for value in policy.values {
                    if !self.values.contains(&value) {
                        self.values.push(value);
                    }
                }
                for argument in policy.arguments {
                    if !self.arguments.contains(&argument) {
                        self.arguments.push(argument);
                    }
                }
            }
        }
        self
    }

    /// The policies that make the difference: those that matched in only one set.
    fn because(&self) -> Vec<String> {
        let names = |one: &Replayed| -> Vec<String> {
            one.matched.iter().map(|matched| matched.policy.clone()).collect()
        };
        let (was, would) = (names(&self.was), names(&self.would));
        let new = would.iter().filter(|name| !was.contains(name)).map(|name| format!("+{name}"));
        let old = was.iter().filter(|name| !would.contains(name)).map(|name| format!("-{name}"));
        let mut because: Vec<String> = new.chain(old).collect();
        if because.is_empty() {
            because.extend(self.would.because.clone().or_else(|| self.was.because.clone()));
        }
        because
    }
}

/// Replays past decisions with a policy set.
pub async fn compare(
    service: &Service,
    past: &Past,
    with: With<'_>,
    after: &Policies,
) -> ServiceResult<Compared> {
    let mut compared = Compared::default();
    let mut sets = PolicyHistory::default();
    let mut past_decisions = PastDecisions::new(service, past).await?;
    while let Some(page) = past_decisions.next(service).await? {
        for decided in page {
            let before = match with {
                With::Set(before) => Some(before),
                With::Then => sets.get(service, &decided.hash).await?,
            };
            let Some(before) = before else {
                compared.unknown += 1;
                continue;
            };
            if before.misses_values(&decided.facts) || after.misses_values(&decided.facts) {
                compared.unknown += 1;
                continue;
            }
            compared.looked_at += 1;
            if let Some(differs) = Differs::compare(decided, before, after) {
                compared.different += 1;
                if compared.differ.len() < SHOWN_MAX {
                    compared.differ.push(differs.explain(before, after));
                }
            }
        }
    }
    compared.unknown += past_decisions.without;
    Ok(compared)
}

impl Compared {
    /// The result as a JSON object.
    pub fn object(&self) -> Value {
        let differ: Vec<Value> = self.differ.iter().map(Differs::object).collect();
        json!({
            "decisions": self.looked_at,
            "differ": self.different,
            "unknown": self.unknown,
            "data": differ,
        })
    }
}

impl Differs {
    fn object(&self) -> Value {
        json!({
            "run_id": self.decided.run.to_string(),
            "node_id": self.decided.step,
            "event_id": self.decided.event,
            "at": timestamp(self.decided.at_ms),
            "verb": self.decided.facts.verb,
            "resource": self.decided.facts.what.name(),
            "call_id": self.decided.call,
            "was": self.was.disposition,
            "would_be": self.would.disposition,
            "because": self.because(),
            "values": self.values,
            "arguments": self.arguments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::id::RunId;
    use sluice_govern::decision::Disposition;

    const PERMIT: &str = "permit (principal, action, resource);";
    const ASK: &str = "@id(\"ask\") @action(\"require_approval\")
        forbid (principal, action == Action::\"dispatch_step\", resource)
        when { context.inputs.untrusted };";

    fn set(texts: &[&str]) -> Policies {
        Policies::load(&[("p.cedar".to_owned(), texts.join("\n"))]).unwrap()
    }

    fn decided(untrusted: bool) -> PastDecision {
        let facts = json!({
            "at": 5, "verb": "dispatch_step",
            "who": {"agent": {"name": "scribe", "trust": 5, "phase": "production", "status": "idle"}},
            "what": {"gateway": {"name": "local", "environment": "dev", "min_trust": 1}},
            "run": {"id": "run_1", "workflow": "pay", "initiator": "ada"},
            "step": {"id": "draft", "kind": "command", "attempt": 1},
            "inputs": {"untrusted": untrusted},
        });
        let facts = serde_json::from_value(facts).unwrap();
        let (step, hash) = ("draft".to_owned(), String::new());
        PastDecision { run: RunId(1), step, event: 3, at_ms: 5, hash, facts, call: None }
    }

    #[test]
    fn a_decision_differs_only_where_a_policy_makes_it() {
        let (before, after) = (set(&[PERMIT]), set(&[PERMIT, ASK]));
        assert!(Differs::compare(decided(false), &before, &after).is_none());
        let differs = Differs::compare(decided(true), &before, &after).unwrap();
        assert_eq!(
            (differs.was.disposition, differs.would.disposition),
            (Disposition::Allow, Disposition::Hold)
        );
        assert_eq!(differs.because(), ["+p.cedar/ask"]);
        let back = Differs::compare(decided(true), &after, &before).unwrap();
        assert_eq!(back.because(), ["-p.cedar/ask"]);
        assert_eq!(back.object()["would_be"], "allow");
    }

    #[test]
    fn the_values_that_make_the_difference_are_named() {
        const LIMIT: &str = "@id(\"limit\") @action(\"require_approval\")
            forbid (principal, action == Action::\"use_tool\", resource == Tool::\"shop.refund\")
            unless { context.call.hasTag(\"amount\") && context.call.getTag(\"amount\") has number
                && context.call.getTag(\"amount\").number.lessThanOrEqual(decimal(\"500.0\")) };";
        let call = |amount: u64| {
            let mut one = decided(false);
            let facts = json!({
                "at": 5, "verb": "use_tool", "who": one.facts.who, "run": one.facts.run,
                "what": {"tool": "shop.refund"},
                "call": {"arguments": {"amount": {"seen": ["stranger"]}}},
                "input": {"amount": amount, "order": "o-1"},
            });
            one.facts = serde_json::from_value(facts).unwrap();
            one.call = Some("call-1".to_owned());
            one
        };
        let (before, after) = (set(&[PERMIT]), set(&[PERMIT, LIMIT]));
        assert!(Differs::compare(call(500), &before, &after).is_none());
        let differs = Differs::compare(call(501), &before, &after).unwrap();
        let object = differs.explain(&before, &after).object();
        assert_eq!(object["resource"], "shop.refund");
        assert_eq!(object["call_id"], "call-1");
        assert_eq!(
            object["values"],
            json!([{"path": "context.call.getTag(\"amount\").number", "value": 501}])
        );
        assert_eq!(
            object["arguments"],
            json!([{"argument": "amount", "value": 501, "seen": ["stranger"]}])
        );
    }
}
