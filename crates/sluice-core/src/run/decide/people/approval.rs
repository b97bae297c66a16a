//! Requests approvals.

use crate::canonical;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalRequested, ApprovalSource, ApprovalSubject, ChangedValue, Resolution, StepAt, StepEvent,
};
use crate::port::adapter::{ToolUse, Usage};
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::run::decide::settle::fail::FailedAttempt;
use crate::run::seen::shown::{arguments, question, shown_arguments};
use crate::run::state::{Approval, Run, agreed_tool};
use serde_json::{Value, json};
use sluice_govern::action::diff;
use sluice_govern::decision::{Decision, HoldBy};
use sluice_govern::facts::CallFacts;
use std::sync::Arc;

/// An approval to request.
struct Request {
    source: ApprovalSource,
    summary: String,
    agreement: Agreement,
    subject: ApprovalSubject,
}

/// Requests the approval that an approval step consists of.
pub(crate) fn request_answer(draft: &mut Draft<'_>, step: &PreparedStep, summary: String) {
    let run = &*draft.run;
    let action = json!({
        "workflow": run.started.workflow, "step": run.name(step.at), "question": summary,
        "inputs": step.prepared.inputs, "definition": run.definition.hash,
    });
    let digest = canonical::sha256_hex(&action, 512);
    let subject = subject(run, step.at, action, digest, Vec::new(), None);
    let groups = run.approval_of(step.at.step).map(|approval| approval.approvers.clone());
    let groups = groups.into_iter().filter(|group| !group.is_empty()).collect();
    let agreement = Agreement { groups, ..Agreement::default() };
    request(draft, step, Request { source: ApprovalSource::Step, summary, agreement, subject });
}

/// Requests the approval that the gates require for a dispatch.
pub(crate) fn request_consent(
    draft: &mut Draft<'_>,
    step: &PreparedStep,
    mut summary: String,
    decision: &Decision,
) {
    let declared = draft.run.approval_of(step.at.step).is_some();
    let reasons = reasons(decision);
    if !declared {
        summary = format!("{summary}\n{}", reasons.join("\n"));
    }
    let source = if declared { ApprovalSource::Step } else { ApprovalSource::Policy };
    request_held(draft, step, source, summary, decision, reasons);
}

/// Requests the approval that the gates require for a tool call.
pub(crate) fn request_tool_consent(
    draft: &mut Draft<'_>,
    at: StepAt,
    wanted: &ToolUse,
    call: &CallFacts,
    decision: &Decision,
) -> ApprovalId {
    let reasons = reasons(decision);
    let input = arguments(&wanted.input);
    let shown = shown_arguments(&input, call);
    let question = question(&draft.run.name(at), &wanted.tool, &input, &shown);
    let summary = format!("{question}\n{}", reasons.join("\n"));
    let step = PreparedStep::sent(draft.run, at);
    let subject = ApprovalSubject {
        arguments: shown,
        asked_for: draft.run.asked_for(at),
        ..held_subject(draft.run, at, decision, reasons, Some(&wanted.tool))
    };
    let agreement = Agreement::of(&decision.holds);
    request(draft, &step, Request { source: ApprovalSource::Tool, summary, agreement, subject })
}

fn request_held(
    draft: &mut Draft<'_>,
    step: &PreparedStep,
    source: ApprovalSource,
    summary: String,
    decision: &Decision,
    reasons: Vec<String>,
) -> ApprovalId {
    let subject = held_subject(draft.run, step.at, decision, reasons, None);
    let agreement = Agreement::of(&decision.holds);
    request(draft, step, Request { source, summary, agreement, subject })
}

/// The action of a decision, for a call of `tool` or for the step.
fn held_subject(
    run: &Run,
    at: StepAt,
    decision: &Decision,
    reasons: Vec<String>,
    tool: Option<&str>,
) -> ApprovalSubject {
    let digest = decision.action_digest.clone();
    let action = decision.action.clone().expect("a hold has the action it is about");
    subject(run, at, action, digest, reasons, tool)
}

fn reasons(decision: &Decision) -> Vec<String> {
    decision.holds.iter().map(|hold| hold.reason.clone()).collect()
}

/// The action to approve, with its differences from the last approved one: of the same step, or
/// of the same tool in any step.
fn subject(
    run: &Run,
    at: StepAt,
    action: Value,
    digest: String,
    reasons: Vec<String>,
    tool: Option<&str>,
) -> ApprovalSubject {
    let approved = |one: &&Approval| {
        let is_same = match tool {
            Some(tool) => one.tool() == Some(tool),
            None => one.at == at && one.source != ApprovalSource::Tool,
        };
        is_same && one.resolution == Some(Resolution::Approved)
    };
    let agreed_key = tool.map_or_else(|| run.name(at), agreed_tool);
    let before = run.approvals.values().filter(approved);
    let before = before.max_by_key(|one| one.resolved_at_ms);
    let before = before.and_then(|one| one.action.as_ref()).map(|subject| &subject.action);
    let before = before.or_else(|| run.started.agreed.get(&agreed_key));
    let changes = before.map(|before| diff(before, &action)).unwrap_or_default();
    let changes = changes.into_iter().map(|one| ChangedValue {
        path: one.path,
        before: one.before.unwrap_or_default(),
        after: one.after.unwrap_or_default(),
    });
    let changes = changes.collect();
    let (arguments, asked_for) = (Vec::new(), None);
    ApprovalSubject { action, digest, reasons, changes, arguments, asked_for }
}

fn request(draft: &mut Draft<'_>, step: &PreparedStep, request: Request) -> ApprovalId {
    let Request { source, summary, agreement, subject } = request;
    let Agreement { groups, quorum, not_initiator } = agreement;
    let at = step.at;
    let now_ms = draft.given.now_ms;
    let patience = draft.given.authority.patience();
    let declared = draft.run.approval_of(at.step).filter(|_| source != ApprovalSource::Tool);
    let open_ms = declared.and_then(|one| one.expires_in_ms).unwrap_or(patience.expires_ms);
    let mut approvers: Vec<String> = Vec::new();
    for one in groups.iter().flatten() {
        if !approvers.contains(one) {
            approvers.push(one.clone());
        }
    }
    let approval = ApprovalId::new(now_ms, &mut *draft.given.entropy);
    let requested = ApprovalRequested {
        approval,
        source,
        summary,
        approvers,
        expires_at_ms: now_ms.saturating_add(open_ms),
        error: None,
        prepared: (!step.recorded).then(|| Arc::clone(&step.prepared)),
        usage: match source {
            ApprovalSource::Tool => Usage::default(),
            _ => draft.abandoned_usage(at),
        },
        answer: None,
        groups,
        quorum: quorum.max(declared.map_or(1, |one| one.quorum)),
        not_initiator: not_initiator || declared.is_some_and(|one| one.not_initiator),
        reminders: Some(reminders(draft)),
        action: Some(Arc::new(subject)),
    };
    draft.record(at, StepEvent::ApprovalRequested(Box::new(requested)));
    approval
}

/// Lets a person decide about a failed attempt: retry, skip or abort.
pub(crate) fn escalate(draft: &mut Draft<'_>, at: StepAt, failed: FailedAttempt) {
    let name = draft.run.name(at);
    let open_ms = draft.given.authority.patience().expires_ms;
    let requested = ApprovalRequested {
        approval: ApprovalId::new(draft.given.now_ms, &mut *draft.given.entropy),
        source: ApprovalSource::Escalation,
        summary: format!("`{name}` failed: {}. Retry, skip or abort?", failed.message),
        approvers: Vec::new(),
        expires_at_ms: draft.given.now_ms.saturating_add(open_ms),
        error: Some((failed.code, failed.message)),
        prepared: None,
        usage: failed.usage,
        answer: failed.answer,
        groups: Vec::new(),
        quorum: 1,
        not_initiator: false,
        reminders: Some(reminders(draft)),
        action: None,
    };
    draft.record(at, StepEvent::ApprovalRequested(Box::new(requested)));
}

/// When approvers are reminded of an approval that is requested now.
fn reminders(draft: &Draft<'_>) -> Vec<(u64, String)> {
    let now_ms = draft.given.now_ms;
    let remind =
        |(after_ms, level): &(u64, String)| (now_ms.saturating_add(*after_ms), level.clone());
    draft.given.authority.patience().reminders.iter().map(remind).collect()
}

/// Which people must approve.
struct Agreement {
    /// At least one person of each group.
    groups: Vec<Vec<String>>,
    /// This many people.
    quorum: u32,
    not_initiator: bool,
}

impl Default for Agreement {
    fn default() -> Agreement {
        Agreement { groups: Vec::new(), quorum: 1, not_initiator: false }
    }
}

impl Agreement {
    /// Everything that the reasons for a hold require together.
    fn of(holds: &[HoldBy]) -> Agreement {
        let mut all = Agreement::default();
        for hold in holds {
            if !all.groups.contains(&hold.approvers) {
                all.groups.push(hold.approvers.clone());
            }
            all.quorum = all.quorum.max(hold.quorum);
            all.not_initiator |= hold.not_initiator;
        }
        // A hold without names is a group of all people. It is kept next to named groups,
        // so that all people count towards its quorum.
        if all.groups.iter().all(Vec::is_empty) {
            all.groups.clear();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{Agreement, HoldBy};

    #[test]
    fn everything_that_holds_a_dispatch_counts_together() {
        let hold = |approvers: &[&str], quorum, not_initiator| HoldBy {
            policy: None,
            approvers: approvers.iter().map(|name| (*name).to_owned()).collect(),
            quorum,
            not_initiator,
            reason: String::new(),
        };
        let agreement = |holds: &[HoldBy]| {
            let Agreement { groups, quorum, not_initiator } = Agreement::of(holds);
            (groups.len(), quorum, not_initiator)
        };
        assert_eq!(agreement(&[hold(&[], 1, false)]), (0, 1, false));
        assert_eq!(agreement(&[hold(&[], 3, false), hold(&["ada"], 2, true)]), (2, 3, true));
    }
}
