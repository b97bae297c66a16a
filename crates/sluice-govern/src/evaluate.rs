//! Facts and policies to a decision.

use crate::canonical;
use crate::case::Case;
use crate::decision::{
    BlockedBy, Decision, Disposition, Evaluated, Outcome, Shadow, Verdict, brief,
};
use crate::facts::{Facts, Subject};
use crate::gates::{Finding, GATES, Gate, Trial};
use crate::key::Key;
use crate::policy::{Matches, Policies, PolicyFacts};
use crate::registry::Held;

/// Asks the ten gates, in order. The first block ends it; a hold does not, so
/// that nobody is asked about what would be blocked anyway.
///
/// INVARIANT: the same facts and policies give the same decision.
pub fn evaluate<'f>(facts: &Facts<'f>, policies: &Policies) -> Evaluated<'f> {
    let seen = facts.policy_facts();
    let brief = brief::seen(&seen);
    let mut decision = decide(Case::new(facts, &seen, policies), brief.as_deref());
    decision.shadow = policies.shadow().map(|shadow| in_shadow(facts, &seen, shadow));
    Evaluated { decision, facts: seen, brief: brief.unwrap_or_default() }
}

/// What the ten gates say, and nothing that is only for a record of it: for what
/// is recorded only where it is refused.
pub fn ask(facts: &Facts<'_>, policies: &Policies) -> Said {
    ask_all(&mut Case::new(facts, &facts.policy_facts(), policies))
}

/// What the gates say.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// What is to be done.
    pub disposition: Disposition,
    /// Every gate, in order.
    pub gates: Vec<Verdict>,
    /// The gate that blocks.
    pub blocked_by: Option<BlockedBy>,
}

fn ask_all(case: &mut Case<'_>) -> Said {
    let on_trial = case.facts.on_trial();
    let mut gates = Vec::with_capacity(GATES.len());
    let mut blocked_by = None;
    for gate in &GATES {
        if blocked_by.is_some() {
            gates.push(verdict(gate, Finding::skip()));
            continue;
        }
        let finding = (gate.judge)(case);
        if finding.outcome == Outcome::Block && gate.trial == Trial::Observed && on_trial {
            gates.push(observed(gate, finding));
            continue;
        }
        if finding.outcome == Outcome::Block {
            blocked_by = Some(BlockedBy {
                gate: gate.name,
                code: gate.code,
                retryable: finding.retryable,
                paused: finding.paused,
            });
        }
        gates.push(verdict(gate, finding));
    }
    let disposition = if blocked_by.is_some() {
        Disposition::Block
    } else if gates.iter().any(|verdict| verdict.outcome == Outcome::Hold) {
        Disposition::Hold
    } else {
        Disposition::Allow
    };
    Said { disposition, gates, blocked_by }
}

fn decide(mut case: Case<'_>, brief: Option<&str>) -> Decision {
    let Said { disposition, gates, blocked_by } = ask_all(&mut case);
    let action = case.complete();
    let text = action.text();
    let action_digest = canonical::hex(text.as_bytes());
    let facts_digest = digest(&case, brief, &action_digest, Key::instead_of(text));
    Decision {
        disposition,
        gates,
        blocked_by,
        facts_digest,
        action: (disposition == Disposition::Hold).then(|| action.value()),
        action_digest,
        constraints: action.constraints,
        matched: case.asked().map(Matches::matched).unwrap_or_default(),
        policy_hash: case.policies.hash().to_owned(),
        // Nobody is asked about what is blocked.
        holds: if disposition == Disposition::Hold { case.into_holds() } else { Vec::new() },
        shadow: None,
    }
}

/// What a set would have decided that is not in force.
fn in_shadow(facts: &Facts<'_>, seen: &PolicyFacts<'_>, policies: &Policies) -> Shadow {
    let mut case = Case::new(facts, seen, policies);
    Shadow {
        disposition: ask_all(&mut case).disposition,
        policy_hash: policies.hash().to_owned(),
        matched: case.asked().map(Matches::matched).unwrap_or_default(),
    }
}

fn verdict(gate: &Gate, finding: Finding) -> Verdict {
    let trouble = matches!(finding.outcome, Outcome::Warn | Outcome::Block | Outcome::Hold);
    Verdict {
        gate: gate.name,
        outcome: finding.outcome,
        code: trouble.then_some(gate.code),
        message: finding.message,
        figures: finding.figures,
        hint: finding.hint,
        observe: false,
    }
}

/// A block that only observes: it says what it would have done.
fn observed(gate: &Gate, finding: Finding) -> Verdict {
    let message =
        finding.message.map(|message| format!("observe: would have blocked: {message}").into());
    let finding = Finding { outcome: Outcome::Warn, message, ..finding };
    Verdict { observe: true, ..verdict(gate, finding) }
}

/// SHA-256 over everything a gate compares, and what the policies see.
fn digest(case: &Case<'_>, brief: Option<&str>, action: &str, mut key: Key) -> String {
    let Case { facts, seen, .. } = case;
    key.text(action);
    if let Subject::Agent(_, Some(row)) = facts.subject {
        key.maybe(row.max_concurrent_steps.map(u64::from));
        key.maybe(row.rate.map(|rate| u64::from(rate.limit)));
        key.maybe(row.rate.map(|rate| u64::from(rate.window_s)));
        for tools in [&row.tools.allow, &row.tools.deny, &row.tools.read_only] {
            key.texts(tools);
        }
    }
    key.number(u64::from(facts.asks.is_some()));
    key.texts(facts.asks.map(|asks| asks.approvers).unwrap_or_default());
    key.number(facts.caps.len() as u64);
    for cap in &facts.caps {
        key.text(&cap.account);
        for money in [cap.amount, cap.held, cap.over] {
            key.number(money.micro_cents());
        }
    }
    key.maybe_text(facts.grant.map(|grant| grant.digest));
    key.maybe_text(facts.place.map(|place| place.health.as_str()));
    key.number(u64::from(facts.held == Held::Yes));
    key.number(facts.in_window.into());
    key.number(facts.running.into());
    let paused = facts.place.and_then(|place| place.gateway).map(|gateway| gateway.paused);
    key.maybe(paused.map(u64::from));
    let role = facts.role.map(|(_, role)| canonical::to_string(role));
    key.maybe_text(role.as_deref());
    match brief {
        Some(brief) => {
            key.number(seen.at);
            key.text(&seen.run.id);
            key.text(&seen.run.workflow);
            key.maybe_text(seen.step.as_ref().map(|step| &*step.id));
            key.text(brief);
            if seen.run.registered {
                key.number(1);
            }
        }
        None => key.text(&canonical::to_string(seen)),
    }
    canonical::hex(key.bytes())
}

#[cfg(test)]
mod tests;
