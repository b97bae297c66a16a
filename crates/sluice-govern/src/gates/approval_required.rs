//! Gate 10: whether an approval is required, and granted.
//!
//! INVARIANT: a grant is for one digest. The action that passes is exactly the approved
//! one, whatever else has changed.

use super::{Finding, Gate, Trial};
use crate::case::{Case, Fit};
use crate::decision::HoldBy;
use crate::facts::Subject;
use crate::policy::Rule;
use crate::registry::Posture;

pub(super) const GATE: Gate =
    Gate { name: "approval_required", code: "approval_required", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let reasons_to_hold = reasons_to_hold(case);
    let money = case.held_for_budget();
    if reasons_to_hold.is_empty() && !money {
        return Finding::pass();
    }
    let reasons: Vec<&str> = reasons_to_hold.iter().map(|hold| hold.reason.as_str()).collect();
    let reasons = reasons.join("; ");
    let finding = match case.fit() {
        Fit::Same(digest) if !money => return Finding::pass().figures([("grant", digest.into())]),
        _ if money => {
            let reason = if reasons.is_empty() { "a budget blocks it" } else { reasons.as_str() };
            let hint = "raise the cap first, then approve".to_owned();
            Finding::hold(format!("approval required: {reason}"), hint)
        }
        Fit::Same(_) | Fit::None => Finding::hold(
            format!("approval required: {reasons}"),
            "approve it, or reject it with a reason".to_owned(),
        ),
        Fit::Changed => Finding::hold(
            "the action changed since it was approved".to_owned(),
            "review the difference, then approve it again".to_owned(),
        ),
        Fit::Wider(why) => Finding::hold(
            format!("what was approved would allow more than is allowed now: {why}"),
            "review the difference, then approve it again".to_owned(),
        ),
    };
    case.hold(reasons_to_hold);
    finding
}

/// All reasons for an approval, except budgets.
fn reasons_to_hold(case: &Case<'_>) -> Vec<HoldBy> {
    let facts = case.facts;
    let mut reasons_to_hold = Vec::new();
    if let Some(asks) = facts.asks {
        reasons_to_hold.push(HoldBy {
            policy: None,
            approvers: asks.approvers.to_vec(),
            quorum: 1,
            not_initiator: false,
            reason: "the step requires it".to_owned(),
        });
    }
    if facts.posture == Posture::ApprovalRequired && matches!(facts.subject, Subject::Agent(..)) {
        reasons_to_hold.push(HoldBy {
            policy: None,
            approvers: Vec::new(),
            quorum: 1,
            not_initiator: false,
            reason: "the posture of the run is approval_required".to_owned(),
        });
    }
    reasons_to_hold
        .extend(case.matches().rules.iter().filter(|rule| rule.holds()).map(|rule| hold_by(rule)));
    reasons_to_hold
}

fn hold_by(rule: &Rule) -> HoldBy {
    HoldBy {
        policy: Some(rule.name.clone()),
        approvers: rule.approvers.clone(),
        quorum: rule.quorum,
        not_initiator: rule.not_initiator,
        reason: match &rule.description {
            Some(description) => format!("policy {}: {description}", rule.name),
            None => format!("policy {}", rule.name),
        },
    }
}
