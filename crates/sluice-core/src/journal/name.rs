//! The names of events and the words in them: the single source of both.

pub use crate::event_names::NAMES;

use super::event::{ApprovalSource, Event, NodeEvent, Resolution, SkipCause};

/// Declares the word of each variant, both ways.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal,)* }) => {
        impl $name {
            /// The word on every wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! { SkipCause {
    Condition = "condition_false",
    Dependencies = "dependencies_skipped",
    ParentFailure = "parent_failure",
    Failure = "failure",
    Decision = "decision",
    Advisory = "advisory",
} }

words! { ApprovalSource {
    Step = "step",
    Policy = "policy",
    Tool = "tool",
    Escalation = "escalation",
} }

words! { Resolution {
    Pending = "pending",
    Approved = "approved",
    Rejected = "rejected",
    Expired = "expired",
    Cancelled = "cancelled",
    Retry = "retry",
    Skip = "skip",
    Abort = "abort",
} }

/// The name of what a quiet stream says so that its readers see it is alive. It
/// is sent without an id and never journalled.
pub const HEARTBEAT: &str = "heartbeat";

impl Event {
    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Event::RunStarted(_) => "run.started",
            Event::RunStatusChanged { .. } => "run.status.changed",
            Event::RunCompleted { .. } => "run.completed",
            Event::RunFailed { .. } => "run.failed",
            Event::RunCancelled { .. } => "run.cancelled",
            Event::RunTimedOut { .. } => "run.timed_out",
            Event::RunRecovered => "run.recovered",
            Event::Node(_, event) => event.name(),
            Event::BudgetAlert(_) => "budget.alert",
        }
    }
}

impl NodeEvent {
    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self {
            NodeEvent::Queued { .. } | NodeEvent::Assigned(_) => "node.queued",
            NodeEvent::Waiting(_) => "node.waiting",
            NodeEvent::Started(_) => "node.started",
            NodeEvent::Delta(_) => "node.stream.delta",
            NodeEvent::Log { .. } => "node.log",
            NodeEvent::Retried(_) => "node.retried",
            NodeEvent::Completed(_) => "node.completed",
            NodeEvent::Failed(_) => "node.failed",
            NodeEvent::TimedOut(_) => "node.timed_out",
            NodeEvent::Cancelled { .. } => "node.cancelled",
            NodeEvent::Skipped(_) => "node.skipped",
            NodeEvent::Blocked { .. } => "node.blocked",
            NodeEvent::Invalidated => "node.invalidated",
            NodeEvent::Provenance(_) => "node.provenance",
            NodeEvent::ModerationFlagged { .. } => "moderation.flagged",
            NodeEvent::ContractViolated { .. } => "contract.violated",
            NodeEvent::GovernanceDecided(_) => "governance.decided",
            NodeEvent::ApprovalRequested(_) => "approval.requested",
            NodeEvent::ApprovalReminded { .. } => "approval.reminded",
            NodeEvent::ApprovalResolved(_) => "approval.resolved",
            NodeEvent::Reconciled { .. } => "budget.alert",
        }
    }
}
