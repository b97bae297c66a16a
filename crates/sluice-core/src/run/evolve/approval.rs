//! Approvals: requested, reminded and resolved.

use super::add;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, Ending, Resolution, StepAt,
};
use crate::port::adapter::Usage;
use crate::port::authority::default_reminders;
use crate::run::index::Timer;
use crate::run::phase::StepPhase;
use crate::run::state::{Approval, Grant, Run};
use std::sync::Arc;

impl Run {
    pub(super) fn approval_requested(
        &mut self,
        at: StepAt,
        request: &ApprovalRequested,
        at_ms: u64,
    ) {
        let approval = Approval {
            at,
            source: request.source,
            summary: request.summary.clone(),
            approvers: request.approvers.clone(),
            resolution: None,
            requested_at_ms: at_ms,
            expires_at_ms: request.expires_at_ms,
            reminders: 0,
            resolved_at_ms: None,
            by: None,
            comment: None,
            groups: request.groups.clone(),
            quorum: request.quorum.max(1),
            not_initiator: request.not_initiator,
            remind_at: request.reminders.clone().unwrap_or_else(|| default_reminders(at_ms)),
            action: request.action.clone(),
            votes: Vec::new(),
            tightened: None,
        };
        self.index.timers.insert((approval.due_at_ms(), Timer::Approval(request.approval)));
        self.approvals.insert(request.approval, approval);
        // The step stays in flight while an approver decides on a tool call.
        if request.source == ApprovalSource::Tool {
            return;
        }
        self.enter(at, StepPhase::AwaitingApproval { approval: request.approval });
        let state = self.state_mut(at);
        state.gate = None;
        state.escalated |= request.source == ApprovalSource::Escalation;
        add(&mut state.usage, &request.usage);
        if let Some(prepared) = &request.prepared {
            state.prepared = Some(Arc::clone(prepared));
            state.reask = false;
        }
        if let Some((code, message)) = &request.error {
            state.failure = Some(Arc::new(Ending {
                code: code.clone(),
                message: message.clone(),
                violations: Arc::default(),
                attempts: state.attempt,
                usage: Usage::default(),
                answer: None,
            }));
        }
    }

    pub(super) fn approval_reminded(&mut self, id: ApprovalId) {
        let Some(approval) = self.approvals.get_mut(&id) else { return };
        self.index.timers.remove(&(approval.due_at_ms(), Timer::Approval(id)));
        approval.reminders += 1;
        self.index.timers.insert((approval.due_at_ms(), Timer::Approval(id)));
    }

    pub(super) fn approval_resolved(
        &mut self,
        at: StepAt,
        resolved: &ApprovalResolved,
        at_ms: u64,
    ) {
        let Some(approval) = self.approvals.get_mut(&resolved.approval) else { return };
        if let Some(by) = &resolved.by {
            approval.votes.push((by.clone(), resolved.roles.clone()));
        }
        if resolved.tightened.is_some() {
            approval.tightened.clone_from(&resolved.tightened);
        }
        if resolved.resolution == Resolution::Pending {
            return;
        }
        self.index.timers.remove(&(approval.due_at_ms(), Timer::Approval(resolved.approval)));
        approval.resolution = Some(resolved.resolution);
        approval.resolved_at_ms = Some(at_ms);
        approval.by.clone_from(&resolved.by);
        approval.comment.clone_from(&resolved.comment);
        let is_tool = approval.source == ApprovalSource::Tool;
        if resolved.comment.is_some() {
            self.comment_seen(resolved.approval);
        }
        if is_tool {
            return;
        }
        let covers = self.approval_of(at.step).is_some_and(|approval| approval.covers_retries);
        let state = self.state_mut(at);
        match resolved.resolution {
            Resolution::Approved | Resolution::Retry => {
                // A retry after an escalation does not grant an action that needs approval.
                state.grant = match (resolved.resolution, state.grant) {
                    (Resolution::Approved, _) if covers => Grant::Retries,
                    (Resolution::Approved, _) => Grant::Attempt,
                    (_, Grant::Retries) => Grant::Retries,
                    (_, Grant::None | Grant::Attempt) => Grant::None,
                };
                if resolved.resolution == Resolution::Approved {
                    state.granted = Some(resolved.approval);
                }
                self.enter(at, StepPhase::Queued);
            }
            // The next event settles the step.
            Resolution::Pending
            | Resolution::Rejected
            | Resolution::Expired
            | Resolution::Cancelled
            | Resolution::Skip
            | Resolution::Abort => {}
        }
    }
}
