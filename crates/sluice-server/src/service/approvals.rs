//! Approvals: shown, listed, resolved.

use super::{Service, find};
use crate::auth::Caller;
use crate::refused::ServiceResult;
use serde_json::{Map, Value, json};
use sluice_core::id::ApprovalId;
use sluice_core::journal::envelope::timestamp;
use sluice_core::journal::event::{Resolution, ShownArgument};
use sluice_core::outputs::schema::{FieldSchema, FieldType};
use sluice_core::plan::step::Work;
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::state::{Approval, Run};
use sluice_govern::decision::Constraints;

/// An approval as a JSON object.
pub fn shown(run: &Run, id: ApprovalId) -> Value {
    let approval = &run.approvals[&id];
    json!({
        "approval_id": id.to_string(),
        "run_id": run.id.to_string(),
        "workflow": run.started.workflow,
        "node_id": run.name(approval.at),
        "source": approval.source.as_str(),
        "summary": approval.summary,
        "approvers": approval.approvers,
        "status": approval.resolution.map_or("pending", Resolution::as_str),
        "requested_at": timestamp(approval.requested_at_ms),
        "expires_at": timestamp(approval.expires_at_ms),
        "by": approval.by,
        "comment": approval.comment,
        "digest": approval.digest(),
        "action": approval.action.as_ref().map(|one| &one.action),
        "reasons": approval.action.as_ref().map(|one| &one.reasons),
        "changes": changes(approval),
        "call": call(approval),
        "quorum": approval.quorum,
        "votes": approval.votes.iter().map(|(by, _)| by).collect::<Vec<_>>(),
        "not_initiator": approval.not_initiator,
        "initiator": run.started.initiator,
        "on_behalf_of": run.started.on_behalf_of,
        "asks_for": asks_for(run, approval),
    })
}

/// The values that an approval step needs from the approver.
fn asks_for(run: &Run, approval: &Approval) -> Vec<Value> {
    let step = run.step(approval.at);
    if !matches!(step.work, Work::Approval) {
        return Vec::new();
    }
    let one = |(name, schema): (&String, &FieldSchema)| {
        let kind = schema.kind.map(FieldType::as_str);
        json!({
            "name": name, "type": kind, "required": schema.required, "enum": schema.values,
            "description": schema.description,
        })
    };
    step.outputs.iter().map(one).collect()
}

/// The tool call to approve: what the caller asked for, and where each value was seen.
fn call(approval: &Approval) -> Option<Value> {
    let subject = approval.action.as_ref()?;
    let tool = approval.tool()?;
    let none = Map::new();
    let input = subject.action["inputs"].as_object().unwrap_or(&none);
    let argument = |one: &ShownArgument| {
        json!({
            "path": one.path, "value": one.value(input), "seen": one.seen,
            "mentions": one.mentions, "carries": one.carries, "places": one.places(),
        })
    };
    let arguments: Vec<Value> = subject.arguments.iter().map(argument).collect();
    Some(json!({"tool": tool, "asked_for": subject.asked_for, "arguments": arguments}))
}

fn changes(approval: &Approval) -> Vec<Value> {
    let changes = approval.action.iter().flat_map(|one| &one.changes);
    let shown =
        changes.map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
    shown.collect()
}

/// The open approvals, oldest first, and the ids of runs that cannot be read.
pub async fn open(service: &Service) -> ServiceResult<(Vec<(Run, ApprovalId)>, Vec<String>)> {
    let (mut open, mut unreadable) = (Vec::new(), Vec::new());
    for row in find::runs_with_open_approvals(service).await? {
        let Some(run) = find::load_if_readable(service, row.run).await? else {
            unreadable.push(row.run.to_string());
            continue;
        };
        let approval = run.approvals.iter().filter(|(_, approval)| approval.resolution.is_none());
        let ids: Vec<ApprovalId> = approval.map(|(id, _)| *id).collect();
        open.extend(ids.into_iter().map(|id| (run.clone(), id)));
    }
    open.sort_by_key(|(_, id)| *id);
    Ok((open, unreadable))
}

/// The decision of an approver.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    /// The chosen decision.
    pub decision: Decision,
    /// Reason or remark of the approver.
    pub comment: Option<String>,
    /// Values that the step needs.
    pub values: Map<String, Value>,
    /// Constraints that the approver tightens.
    pub constraints: Option<Constraints>,
}

/// The command that resolves an approval.
pub fn command(approval: ApprovalId, answer: ApprovalAnswer, caller: &Caller) -> Command {
    Command::Resolve(Box::new(Resolve {
        approval,
        decision: answer.decision,
        by: caller.name.clone(),
        comment: answer.comment,
        values: answer.values,
        roles: caller.roles.clone(),
        constraints: answer.constraints,
    }))
}
