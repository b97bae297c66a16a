//! Questions to people, asked and closed.

use super::add;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, Ending, Resolution, StepAt,
};
use crate::port::adapter::Usage;
use crate::run::index::Timer;
use crate::run::phase::StepPhase;
use crate::run::state::{Approval, Grant, Run, default_reminders};
use std::sync::Arc;

impl Run {
    pub(super) fn asked(&mut self, at: StepAt, asked: &ApprovalRequested, at_ms: u64) {
        let approval = Approval {
            at,
            source: asked.source,
            summary: asked.summary.clone(),
            approvers: asked.approvers.clone(),
            resolution: None,
            requested_at_ms: at_ms,
            expires_at_ms: asked.expires_at_ms,
            reminders: 0,
            resolved_at_ms: None,
            by: None,
            comment: None,
            groups: asked.groups.clone(),
            quorum: asked.quorum.max(1),
            not_initiator: asked.not_initiator,
            // Journals older than reminders that can be set have none.
            remind_at: if asked.reminders.is_empty() {
                default_reminders(at_ms)
            } else {
                asked.reminders.clone()
            },
            action: asked.action.clone(),
            votes: Vec::new(),
            tightened: None,
        };
        self.index.timers.insert((approval.due_at_ms(), Timer::Approval(asked.approval)));
        self.approvals.insert(asked.approval, approval);
        // The step goes on while a person decides about a call of a tool.
        if asked.source == ApprovalSource::Tool {
            return;
        }
        self.enter(at, StepPhase::AwaitingApproval { approval: asked.approval });
        let state = self.state_mut(at);
        state.gate = None;
        state.escalated |= asked.source == ApprovalSource::Escalation;
        add(&mut state.usage, &asked.usage);
        if let Some(prepared) = &asked.prepared {
            state.prepared = Some(Arc::clone(prepared));
            state.reask = false;
        }
        if let Some((code, message)) = &asked.error {
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

    pub(super) fn reminded(&mut self, id: ApprovalId) {
        let Some(approval) = self.approvals.get_mut(&id) else { return };
        self.index.timers.remove(&(approval.due_at_ms(), Timer::Approval(id)));
        approval.reminders += 1;
        self.index.timers.insert((approval.due_at_ms(), Timer::Approval(id)));
    }

    pub(super) fn resolved(&mut self, at: StepAt, resolved: &ApprovalResolved, at_ms: u64) {
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
        if approval.source == ApprovalSource::Tool {
            return;
        }
        let covers = self.approval_of(at.step).is_some_and(|asked| asked.covers_retries);
        let state = self.state_mut(at);
        match resolved.resolution {
            Resolution::Approved | Resolution::Retry => {
                // To try again after a failure is no grant of what needs one.
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
            // What follows settles the step.
            Resolution::Pending
            | Resolution::Rejected
            | Resolution::Expired
            | Resolution::Cancelled
            | Resolution::Skip
            | Resolution::Abort => {}
        }
    }
}
