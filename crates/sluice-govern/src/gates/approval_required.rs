//! Gate 10: whether a person must agree, and has.
//!
//! INVARIANT: a grant is for one digest. Whatever else changed, the action that
//! passes here is the one that was agreed to.

use super::{Finding, Gate, Trial};
use crate::case::{Case, Fit};
use crate::decision::HoldBy;
use crate::facts::Subject;
use crate::policy::Rule;
use crate::registry::Posture;

pub(super) const GATE: Gate =
    Gate { name: "approval_required", code: "approval_required", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let asking = asking(case);
    let money = case.held_for_money();
    if asking.is_empty() && !money {
        return Finding::pass();
    }
    let reasons: Vec<&str> = asking.iter().map(|hold| hold.reason.as_str()).collect();
    let reasons = reasons.join("; ");
    let finding = match case.fit() {
        Fit::Same(digest) if !money => return Finding::pass().figures([("grant", digest.into())]),
        _ if money => {
            let reason = if reasons.is_empty() { "a budget stops it" } else { reasons.as_str() };
            let hint = "raise the cap first, then approve".to_owned();
            Finding::hold(format!("a person must agree: {reason}"), hint)
        }
        Fit::Same(_) | Fit::None => Finding::hold(
            format!("a person must agree: {reasons}"),
            "approve it, or reject it with a reason".to_owned(),
        ),
        Fit::Changed => Finding::hold(
            "the action changed since it was approved".to_owned(),
            "look at the difference, and approve it again".to_owned(),
        ),
        Fit::Wider(why) => Finding::hold(
            format!("what was approved would allow more than is allowed now: {why}"),
            "look at the difference, and approve it again".to_owned(),
        ),
    };
    case.hold(asking);
    finding
}

/// Everyone who wants a person to agree, beside budgets.
fn asking(case: &Case<'_>) -> Vec<HoldBy> {
    let facts = case.facts;
    let mut asking = Vec::new();
    if let Some(asks) = facts.asks {
        asking.push(HoldBy {
            policy: None,
            approvers: asks.approvers.to_vec(),
            quorum: 1,
            not_initiator: false,
            reason: "the step asks for it".to_owned(),
        });
    }
    if facts.posture == Posture::ApprovalRequired && matches!(facts.subject, Subject::Agent(..)) {
        asking.push(HoldBy {
            policy: None,
            approvers: Vec::new(),
            quorum: 1,
            not_initiator: false,
            reason: "the posture of the run is approval_required".to_owned(),
        });
    }
    asking.extend(case.matches().rules.iter().filter(|rule| rule.holds()).map(|rule| by(rule)));
    asking
}

fn by(rule: &Rule) -> HoldBy {
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
