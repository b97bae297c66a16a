//! Questions to people, and their answers.

use super::{Service, find};
use crate::auth::Caller;
use crate::refused::Done;
use serde_json::{Map, Value, json};
use sluice_core::journal::envelope::timestamp;
use sluice_core::journal::event::Resolution;
use sluice_core::outputs::schema::{FieldSchema, FieldType};
use sluice_core::plan::step::Work;
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::id::ApprovalId;
use sluice_core::run::state::{Approval, Run};
use sluice_govern::decision::Constraints;

/// A question, for programs.
pub fn shown(run: &Run, id: ApprovalId) -> Value {
    let asked = &run.approvals[&id];
    json!({
        "approval_id": id.to_string(),
        "run_id": run.id.to_string(),
        "workflow": run.started.workflow,
        "node_id": run.name(asked.at),
        "source": asked.source.as_str(),
        "summary": asked.summary,
        "approvers": asked.approvers,
        "status": asked.resolution.map_or("pending", Resolution::as_str),
        "requested_at": timestamp(asked.requested_at_ms),
        "expires_at": timestamp(asked.expires_at_ms),
        "by": asked.by,
        "comment": asked.comment,
        "digest": asked.digest(),
        "action": asked.action.as_ref().map(|one| &one.action),
        "reasons": asked.action.as_ref().map(|one| &one.reasons),
        "changes": changes(asked),
        "quorum": asked.quorum,
        "votes": asked.votes.iter().map(|(by, _)| by).collect::<Vec<_>>(),
        "not_initiator": asked.not_initiator,
        "initiator": run.started.initiator,
        "on_behalf_of": run.started.on_behalf_of,
        "asks_for": asks_for(run, asked),
    })
}

/// The values that an approval step wants.
fn asks_for(run: &Run, asked: &Approval) -> Vec<Value> {
    let step = run.step(asked.at);
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

fn changes(asked: &Approval) -> Vec<Value> {
    let changes = asked.action.iter().flat_map(|one| &one.changes);
    let shown =
        changes.map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
    shown.collect()
}

/// The questions that are open, oldest first. Runs that cannot be read are left
/// out, and named.
pub async fn open(service: &Service) -> Done<(Vec<(Run, ApprovalId)>, Vec<String>)> {
    let (mut open, mut unreadable) = (Vec::new(), Vec::new());
    for row in find::asking(service).await? {
        let Some(run) = find::load_if_readable(service, row.run).await? else {
            unreadable.push(row.run.to_string());
            continue;
        };
        let asked = run.approvals.iter().filter(|(_, asked)| asked.resolution.is_none());
        let ids: Vec<ApprovalId> = asked.map(|(id, _)| *id).collect();
        open.extend(ids.into_iter().map(|id| (run.clone(), id)));
    }
    open.sort_by_key(|(_, id)| *id);
    Ok((open, unreadable))
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What is chosen.
    pub decision: Decision,
    /// What they say.
    pub comment: Option<String>,
    /// Values that the step asks for.
    pub values: Map<String, Value>,
    /// What is tightened.
    pub constraints: Option<Constraints>,
}

/// What a run is told of an answer.
pub fn command(approval: ApprovalId, answer: Answer, caller: &Caller) -> Command {
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
