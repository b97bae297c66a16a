//! Facts and policies to a decision.

use crate::canonical;
use crate::case::Case;
use crate::decision::{BlockedBy, Decision, Disposition, Outcome, Shadow, Verdict};
use crate::facts::{Facts, Subject};
use crate::gates::{Finding, GATES, Gate, Trial};
use crate::money::Money;
use crate::policy::{Matches, Policies};
use crate::registry::{Health, Held, Rate, Role, Tools};
use serde::Serialize;

/// Asks the ten gates, in order. The first block ends it; a hold does not, so
/// that nobody is asked about what would be blocked anyway.
///
/// INVARIANT: the same facts and policies give the same decision.
pub fn evaluate(facts: &Facts<'_>, policies: &Policies) -> Decision {
    let mut decision = decide(facts, policies);
    decision.shadow = policies.shadow().map(|shadow| {
        let would = decide(facts, shadow);
        Shadow {
            disposition: would.disposition,
            policy_hash: would.policy_hash,
            matched: would.matched,
        }
    });
    decision
}

fn decide(facts: &Facts<'_>, policies: &Policies) -> Decision {
    let mut case = Case::new(facts, policies);
    let on_trial = facts.on_trial();
    let mut gates = Vec::with_capacity(GATES.len());
    let mut blocked_by = None;
    for gate in &GATES {
        if blocked_by.is_some() {
            gates.push(verdict(gate, Finding::skip()));
            continue;
        }
        let finding = (gate.judge)(&mut case);
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
    let action = case.complete();
    let action_digest = action.digest();
    let seen = serde_json::to_string(&case.seen).expect("facts are plain data");
    let facts_digest = digest(facts, &seen, &action_digest);
    let matched = case.asked().map(Matches::matched).unwrap_or_default();
    let mut holds = case.into_holds();
    if disposition != Disposition::Hold {
        // Nobody is asked about what is blocked.
        holds.clear();
    }
    Decision {
        disposition,
        gates,
        blocked_by,
        holds,
        constraints: action.constraints.clone(),
        matched,
        policy_hash: policies.hash().to_owned(),
        facts_digest,
        action,
        action_digest,
        shadow: None,
        facts: seen,
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
    let message = finding.message.map(|message| format!("observe: would have blocked: {message}"));
    let finding = Finding { outcome: Outcome::Warn, message, ..finding };
    Verdict { observe: true, ..verdict(gate, finding) }
}

/// Everything a gate compares, for the digest.
#[derive(Serialize)]
struct Compared<'f> {
    action: &'f str,
    agent: Option<AgentBounds<'f>>,
    asks: Option<&'f [String]>,
    caps: Vec<(&'f str, Money, Money, Money)>,
    grant: Option<&'f str>,
    health: Option<Health>,
    held: bool,
    in_window: u32,
    paused: Option<bool>,
    role: Option<&'f Role>,
    running: u32,
}

#[derive(Serialize)]
struct AgentBounds<'f> {
    max_concurrent_steps: Option<u32>,
    rate: Option<Rate>,
    tools: &'f Tools,
}

/// SHA-256 over everything a gate compares.
fn digest(facts: &Facts<'_>, seen: &str, action: &str) -> String {
    let agent = match facts.subject {
        Subject::Agent(_, row) => row.map(|row| AgentBounds {
            max_concurrent_steps: row.max_concurrent_steps,
            rate: row.rate,
            tools: &row.tools,
        }),
        Subject::User(_) => None,
    };
    let caps = facts.caps.iter().map(|cap| (cap.account.as_str(), cap.amount, cap.held, cap.over));
    let compared = Compared {
        action,
        agent,
        asks: facts.asks.map(|asks| asks.approvers),
        caps: caps.collect(),
        grant: facts.grant.map(|grant| grant.digest),
        health: facts.place.map(|place| place.health),
        held: facts.held == Held::Yes,
        in_window: facts.in_window,
        paused: facts.place.and_then(|place| place.gateway).map(|gateway| gateway.paused),
        role: facts.role.map(|(_, role)| role),
        running: facts.running,
    };
    // In the order they are declared, and without a second writing: the facts are
    // compared with nothing but themselves.
    let mut text = serde_json::to_vec(&compared).expect("facts are plain data");
    text.extend_from_slice(seen.as_bytes());
    canonical::hex(&text)
}

#[cfg(test)]
mod tests;
