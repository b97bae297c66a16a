//! Answers to approvals: whether they are valid, and what they resolve.

use crate::canonical;
use crate::journal::event::{
    ApprovalResolved, ApprovalSource, Resolution, StepAt, StepEvent, Tightened,
};
use crate::run::command::{Decision, Refusal, Resolve};
use crate::run::decide::draft::Draft;
use crate::run::state::Approval;
use std::collections::BTreeSet;

/// A valid answer to an approval.
pub(crate) struct ValidAnswer {
    pub(crate) at: StepAt,
    pub(crate) source: ApprovalSource,
    /// Pending if more people must approve.
    pub(crate) resolution: Resolution,
    tightened: Option<Tightened>,
}

/// Refuses an answer that its approval does not allow.
pub(crate) fn check_answer(draft: &Draft<'_>, resolve: &Resolve) -> Result<ValidAnswer, Refusal> {
    let Some(approval) = draft.run.approvals.get(&resolve.approval) else {
        return Err(Refusal::NoApproval(resolve.approval));
    };
    if let Some(resolution) = approval.resolution {
        return Err(Refusal::Resolved(resolution.as_str()));
    }
    if draft.run.status.is_terminal() {
        return Err(Refusal::Ended(draft.run.status));
    }
    // The run was not loaded when the approval expired: this turn expires it.
    if approval.expires_at_ms <= draft.given.now_ms {
        return Err(Refusal::Resolved(Resolution::Expired.as_str()));
    }
    let resolution = resolution(approval.source, resolve.decision)?;
    may_answer(draft, approval, resolve)?;
    let tightened = tightened(approval, resolve)?;
    let resolution = match resolution {
        Resolution::Approved if !is_enough(draft, approval, resolve) => Resolution::Pending,
        resolution => resolution,
    };
    let commented = resolve.comment.as_ref().is_some_and(|text| !text.trim().is_empty());
    if resolution == Resolution::Rejected && !commented {
        return Err(Refusal::CommentMissing);
    }
    Ok(ValidAnswer { at: approval.at, source: approval.source, resolution, tightened })
}

pub(crate) fn record_answer(draft: &mut Draft<'_>, answer: ValidAnswer, resolve: Resolve) {
    let resolved = ApprovalResolved {
        approval: resolve.approval,
        resolution: answer.resolution,
        by: Some(resolve.by),
        comment: resolve.comment,
        roles: resolve.roles,
        tightened: answer.tightened,
    };
    draft.record(answer.at, StepEvent::ApprovalResolved(Box::new(resolved)));
}

/// Refuses an answer of a person who may not answer, or who already has.
fn may_answer(draft: &Draft<'_>, approval: &Approval, resolve: &Resolve) -> Result<(), Refusal> {
    let by = &resolve.by;
    if approval.not_initiator && draft.run.started.is_initiator(by) {
        return Err(Refusal::SelfApproval(by.clone()));
    }
    let known = &draft.given.authority.fabric().groups;
    let member = approval.groups.iter().any(|group| is_in(group, by, &resolve.roles, known));
    if !approval.groups.is_empty() && !member {
        let approvers = approval.approvers.join(", ");
        return Err(Refusal::NotApprover { by: by.clone(), approvers });
    }
    // A person who has approved may still reject.
    let approves = resolve.decision == Decision::Approve;
    if approves && approval.votes.iter().any(|(voter, _)| voter == by) {
        return Err(Refusal::AnsweredAlready(by.clone()));
    }
    Ok(())
}

/// Whether with this answer the quorum is reached and each group has approved.
fn is_enough(draft: &Draft<'_>, approval: &Approval, resolve: &Resolve) -> bool {
    let known = &draft.given.authority.fabric().groups;
    let new = (resolve.by.clone(), resolve.roles.clone());
    let votes: Vec<&(String, Vec<String>)> = approval.votes.iter().chain([&new]).collect();
    let approves =
        |group: &Vec<String>| votes.iter().any(|(by, roles)| is_in(group, by, roles, known));
    votes.len() >= approval.quorum as usize && approval.groups.iter().all(approves)
}

/// Whether a person is in a group of approvers. A group without names contains everyone.
///
/// A name that tokens have as a group or role (`known`) means that group: a person of the
/// same name does not answer for it. `group:NAME` is always a group, `user:NAME` always a
/// person.
fn is_in(group: &[String], by: &str, roles: &[String], known: &BTreeSet<String>) -> bool {
    let has = |name: &str| roles.iter().any(|role| role == name);
    let names = |one: &String| match one.split_once(':') {
        Some(("group", name)) => has(name),
        Some(("user", name)) => name == by,
        _ => has(one) || (one == by && !known.contains(one)),
    };
    group.is_empty() || group.iter().any(names)
}

/// The constraints of the approval, tightened by this answer and the ones before it.
fn tightened(approval: &Approval, resolve: &Resolve) -> Result<Option<Tightened>, Refusal> {
    let Some(by) = &resolve.constraints else { return Ok(approval.tightened.clone()) };
    if approval.source == ApprovalSource::Tool {
        return Err(Refusal::Widens("a call of a tool is allowed as it is, or not".to_owned()));
    }
    let Some(subject) = &approval.action else {
        return Err(Refusal::Widens("there is nothing to tighten".to_owned()));
    };
    let Some(written) = subject.action.get("constraints") else {
        return Err(Refusal::Widens("a question without work has no constraints".to_owned()));
    };
    let base = match &approval.tightened {
        Some(tightened) => tightened.constraints.clone(),
        None => serde_json::from_value(written.clone()).unwrap_or_default(),
    };
    let constraints = base.tighten(by).map_err(Refusal::Widens)?;
    let mut action = subject.action.clone();
    action["constraints"] = serde_json::to_value(&constraints).unwrap_or_default();
    if let Some(most) = constraints.max_cost {
        action["cost_ceiling"] = serde_json::to_value(most).unwrap_or_default();
    }
    let digest = canonical::sha256_hex(&action, 512);
    Ok(Some(Tightened { constraints, digest }))
}

fn resolution(source: ApprovalSource, decision: Decision) -> Result<Resolution, Refusal> {
    match (source, decision) {
        (ApprovalSource::Escalation, Decision::Retry) => Ok(Resolution::Retry),
        (ApprovalSource::Escalation, Decision::Skip) => Ok(Resolution::Skip),
        (ApprovalSource::Escalation, Decision::Abort) => Ok(Resolution::Abort),
        (ApprovalSource::Escalation, _) => Err(Refusal::WrongDecision("retry, skip or abort")),
        (ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool, decision) => {
            match decision {
                Decision::Approve => Ok(Resolution::Approved),
                Decision::Reject => Ok(Resolution::Rejected),
                Decision::Retry | Decision::Skip | Decision::Abort => {
                    Err(Refusal::WrongDecision("approve or reject"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
