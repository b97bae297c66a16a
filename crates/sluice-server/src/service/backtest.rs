//! Decisions that another set would make otherwise.

use super::Service;
use super::past::{Decided, Past, Sets, Walk};
use crate::refused::Done;
use serde_json::{Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_govern::decision::Disposition;
use sluice_govern::policy::{Policies, Replayed, replay};

/// Most decisions that are shown one by one; all of them are counted.
const SHOWN_MAX: usize = 1000;

/// What a set is compared with.
pub enum With<'p> {
    /// The set that was in force at each decision.
    Then,
    /// Another set.
    Set(&'p Policies),
}

/// What came of a comparison.
#[derive(Default)]
pub struct Compared {
    differ: Vec<Differs>,
    /// All that differ, also those that are not kept.
    different: u64,
    looked_at: u64,
    /// Decisions of which nobody knows what policies saw, or what they said.
    unknown: u64,
}

/// A decision that would differ.
struct Differs {
    decided: Decided,
    was: Replayed,
    would: Replayed,
}

impl Differs {
    /// Compares as far as policies go: what other gates said stays as it was.
    fn of(decided: Decided, before: &Policies, after: &Policies) -> Option<Differs> {
        let (was, would) = (replay(before, &decided.facts), replay(after, &decided.facts));
        let same = was.disposition == would.disposition;
        (!same).then_some(Differs { decided, was, would })
    }

    /// The policies that make the difference: those that only one set matched.
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

/// Tries a set on what was decided before.
pub async fn compare(
    service: &Service,
    past: &Past,
    with: With<'_>,
    after: &Policies,
) -> Done<Compared> {
    let mut compared = Compared::default();
    let mut sets = Sets::default();
    let mut walk = Walk::begin(service, past).await?;
    while let Some(page) = walk.next(service).await? {
        for decided in page {
            let before = match with {
                With::Set(before) => Some(before),
                With::Then => sets.get(service, &decided.hash).await?,
            };
            let Some(before) = before else {
                compared.unknown += 1;
                continue;
            };
            compared.looked_at += 1;
            if let Some(differs) = Differs::of(decided, before, after) {
                compared.different += 1;
                if compared.differ.len() < SHOWN_MAX {
                    compared.differ.push(differs);
                }
            }
        }
    }
    compared.unknown += walk.without;
    Ok(compared)
}

const fn word(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Allow => "allow",
        Disposition::Block => "block",
        Disposition::Hold => "hold",
    }
}

impl Compared {
    /// For programs.
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
            "was": word(self.was.disposition),
            "would_be": word(self.would.disposition),
            "because": self.because(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::run::id::RunId;

    const PERMIT: &str = "permit (principal, action, resource);";
    const ASK: &str = "@id(\"ask\") @action(\"require_approval\")
        forbid (principal, action == Action::\"dispatch_step\", resource)
        when { context.inputs.untrusted };";

    fn set(texts: &[&str]) -> Policies {
        Policies::load(&[("p.cedar".to_owned(), texts.join("\n"))]).unwrap()
    }

    fn decided(untrusted: bool) -> Decided {
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
        Decided { run: RunId(1), step, event: 3, at_ms: 5, hash, facts }
    }

    #[test]
    fn a_decision_differs_only_where_a_policy_makes_it() {
        let (before, after) = (set(&[PERMIT]), set(&[PERMIT, ASK]));
        assert!(Differs::of(decided(false), &before, &after).is_none());
        let differs = Differs::of(decided(true), &before, &after).unwrap();
        assert_eq!(
            (differs.was.disposition, differs.would.disposition),
            (Disposition::Allow, Disposition::Hold)
        );
        assert_eq!(differs.because(), ["+p.cedar/ask"]);
        let back = Differs::of(decided(true), &after, &before).unwrap();
        assert_eq!(back.because(), ["-p.cedar/ask"]);
        assert_eq!(back.object()["would_be"], "allow");
    }
}
