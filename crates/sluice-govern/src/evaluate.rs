//! Evaluates the gates.

use crate::canonical;
use crate::case::Case;
use crate::decision::{
    BlockedBy, Decision, Disposition, Evaluated, GateOutcome, GateVerdict, Shadow, brief,
};
use crate::facts::{Facts, Subject};
use crate::gates::{Finding, GATES, Gate, Trial};
use crate::key_bytes::KeyBytes;
use crate::policy::{Matches, Policies, PolicyFacts};
use crate::registry::Held;

/// Evaluates the ten gates in order. The first block ends the evaluation; a hold does
/// not, so that no approval is requested for an action that would be blocked anyway.
///
/// INVARIANT: the same facts and policies give the same decision.
pub fn evaluate<'f>(facts: &Facts<'f>, policies: &Policies) -> Evaluated<'f> {
    let seen = seen_by(policies, facts);
    let brief = brief::seen(&seen);
    let mut decision = decide(Case::new(facts, &seen, policies), brief.as_deref());
    decision.shadow = policies.shadow().map(|shadow| in_shadow(facts, &seen, shadow));
    Evaluated { decision, facts: seen, brief: brief.unwrap_or_default() }
}

/// Evaluates the ten gates without a record, for actions that are recorded only if they
/// are refused.
pub fn ask(facts: &Facts<'_>, policies: &Policies) -> GateResults {
    evaluate_gates(&mut Case::new(facts, &seen_by(policies, facts), policies))
}

/// The view of the policies, with what they ask about history.
fn seen_by<'f>(policies: &Policies, facts: &Facts<'f>) -> PolicyFacts<'f> {
    let mut seen = facts.policy_facts(policies);
    policies.add_history(&mut seen, facts.history);
    seen
}

/// The verdicts of all gates, before they are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct GateResults {
    /// The resulting disposition.
    pub disposition: Disposition,
    /// The verdicts of all gates, in order.
    pub gates: Vec<GateVerdict>,
    /// The gate that blocks.
    pub blocked_by: Option<BlockedBy>,
}

fn evaluate_gates(case: &mut Case<'_>) -> GateResults {
    let on_trial = case.facts.on_trial();
    let mut gates = Vec::with_capacity(GATES.len());
    let mut blocked_by = None;
    for gate in &GATES {
        if blocked_by.is_some() {
            gates.push(verdict(gate, Finding::skip()));
            continue;
        }
        let finding = (gate.judge)(case);
        if finding.outcome == GateOutcome::Block && gate.trial == Trial::Observed && on_trial {
            gates.push(observed(gate, finding));
            continue;
        }
        if finding.outcome == GateOutcome::Block {
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
    } else if gates.iter().any(|verdict| verdict.outcome == GateOutcome::Hold) {
        Disposition::Hold
    } else {
        Disposition::Allow
    };
    GateResults { disposition, gates, blocked_by }
}

fn decide(mut case: Case<'_>, brief: Option<&str>) -> Decision {
    let GateResults { disposition, gates, blocked_by } = evaluate_gates(&mut case);
    let action = case.complete();
    let text = action.text();
    let action_digest = canonical::hex(text.as_bytes());
    let facts_digest = digest(&case, brief, &action_digest, KeyBytes::reusing(text));
    Decision {
        disposition,
        gates,
        blocked_by,
        facts_digest,
        action: (disposition == Disposition::Hold).then(|| action.value()),
        action_digest,
        constraints: action.constraints,
        matched: case.evaluated_matches().map(Matches::matched).unwrap_or_default(),
        policy_hash: case.policies.hash().to_owned(),
        // A blocked action needs no approval.
        holds: if disposition == Disposition::Hold { case.into_holds() } else { Vec::new() },
        shadow: None,
    }
}

/// The decision of a policy set that is not in force.
fn in_shadow(facts: &Facts<'_>, seen: &PolicyFacts<'_>, policies: &Policies) -> Shadow {
    let mut case = Case::new(facts, seen, policies);
    Shadow {
        disposition: evaluate_gates(&mut case).disposition,
        policy_hash: policies.hash().to_owned(),
        matched: case.evaluated_matches().map(Matches::matched).unwrap_or_default(),
    }
}

fn verdict(gate: &Gate, finding: Finding) -> GateVerdict {
    let trouble =
        matches!(finding.outcome, GateOutcome::Warn | GateOutcome::Block | GateOutcome::Hold);
    GateVerdict {
        gate: gate.name,
        outcome: finding.outcome,
        code: trouble.then_some(gate.code),
        message: finding.message,
        figures: finding.figures,
        hint: finding.hint,
        observe: false,
    }
}

/// A block that only observes becomes a warning.
fn observed(gate: &Gate, finding: Finding) -> GateVerdict {
    let message =
        finding.message.map(|message| format!("observe: would have blocked: {message}").into());
    let finding = Finding { outcome: GateOutcome::Warn, message, ..finding };
    GateVerdict { observe: true, ..verdict(gate, finding) }
}

/// SHA-256 over everything that gates compare and policies see.
fn digest(case: &Case<'_>, brief: Option<&str>, action: &str, mut key: KeyBytes) -> String {
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
