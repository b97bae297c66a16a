//! The phase of a step, with the data that only this phase needs.
//!
//! INVARIANT: the status, the waiting reason, the deadline and the index entry of a step
//! follow from its phase. Nothing else stores them, so they cannot disagree.

use crate::id::ApprovalId;
use crate::journal::event::{Skip, SkipCause, StepOutcome};
use crate::status::{StepStatus, Waiting};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The phase of a step, or of an instance of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum StepPhase {
    /// The step has not begun.
    #[default]
    Pending,
    /// The step is ready and waits in the queue of the run.
    Queued,
    /// The step is ready, and the engine asks the moderator about its inputs.
    Moderating {
        /// SHA-256 of the text that is moderated.
        digest: String,
    },
    /// The step is ready, but a gate refused it for now.
    AtGate {
        /// `queued` if another step holds what it needs, `gate` otherwise.
        reason: Waiting,
        /// When it is tried again; `None` if only an operator can end the wait.
        retry_at_ms: Option<u64>,
    },
    /// The step waits for an approval.
    AwaitingApproval {
        /// The open approval.
        approval: ApprovalId,
    },
    /// No member of the team fits: a person must assign the step.
    AwaitingAssignment,
    /// The step is dispatched.
    InFlight {
        /// How the attempt proceeds.
        progress: Progress,
        /// Whether parts of the answer have arrived.
        streaming: bool,
    },
    /// An attempt failed, and the step waits for the next one.
    Retrying {
        /// Why it waits.
        reason: Waiting,
        /// When the next attempt starts.
        at_ms: u64,
    },
    /// The step has ended.
    Settled {
        /// How it ended.
        end: StepEnd,
        /// When it ended.
        at_ms: u64,
    },
}

/// How a dispatched attempt proceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// It is being executed.
    Executing {
        /// When it times out.
        deadline_ms: Option<u64>,
    },
    /// A remote gateway executes it and reports the result by callback.
    AwaitingCallback {
        /// When it times out.
        deadline_ms: Option<u64>,
    },
    /// Its child run waits only for people, so its timeout is suspended.
    ChildPaused {
        /// The time that is left when the child run continues.
        left_ms: Option<u64>,
    },
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StepEnd {
    /// It succeeded, with this result.
    Completed(Arc<StepOutcome>),
    /// Its last attempt failed.
    Failed,
    /// Its last attempt exceeded the timeout.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It was skipped, for this cause.
    Skipped(Box<Skip>),
    /// It cannot be executed, because a label has no value.
    Blocked {
        /// The label.
        placeholder: Option<String>,
    },
}

impl StepPhase {
    /// The status on every wire.
    pub const fn status(&self) -> StepStatus {
        match self {
            StepPhase::Pending => StepStatus::Pending,
            StepPhase::Queued | StepPhase::Moderating { .. } | StepPhase::AtGate { .. } => {
                StepStatus::Queued
            }
            StepPhase::AwaitingApproval { .. } => StepStatus::AwaitingApproval,
            StepPhase::AwaitingAssignment => StepStatus::Blocked,
            StepPhase::InFlight { streaming: false, .. } => StepStatus::Running,
            StepPhase::InFlight { streaming: true, .. } => StepStatus::Streaming,
            StepPhase::Retrying { .. } => StepStatus::Retrying,
            StepPhase::Settled { end, .. } => end.status(),
        }
    }

    /// Why the step waits, or why a condition skipped it.
    pub fn waiting(&self) -> Option<Waiting> {
        match self {
            StepPhase::Pending => None,
            StepPhase::Queued | StepPhase::Moderating { .. } => Some(Waiting::Queued),
            StepPhase::AtGate { reason, .. } | StepPhase::Retrying { reason, .. } => Some(*reason),
            StepPhase::AwaitingApproval { .. } | StepPhase::AwaitingAssignment => {
                Some(Waiting::HumanInput)
            }
            StepPhase::InFlight { progress, .. } => match progress {
                Progress::Executing { .. } => None,
                Progress::AwaitingCallback { .. } => Some(Waiting::ExternalCallback),
                Progress::ChildPaused { .. } => Some(Waiting::HumanInput),
            },
            StepPhase::Settled { end: StepEnd::Skipped(skip), .. }
                if skip.cause == SkipCause::Condition =>
            {
                Some(Waiting::ConditionFalse)
            }
            StepPhase::Settled { .. } => None,
        }
    }

    /// Whether the step has ended.
    pub const fn is_settled(&self) -> bool {
        matches!(self, StepPhase::Settled { .. })
    }

    /// When the engine tries the step again.
    pub const fn wakes_at_ms(&self) -> Option<u64> {
        match self {
            StepPhase::AtGate { retry_at_ms, .. } => *retry_at_ms,
            StepPhase::Retrying { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }

    /// When the attempt in flight times out.
    pub const fn deadline_ms(&self) -> Option<u64> {
        match self {
            StepPhase::InFlight {
                progress:
                    Progress::Executing { deadline_ms } | Progress::AwaitingCallback { deadline_ms },
                ..
            } => *deadline_ms,
            _ => None,
        }
    }

    /// The open approval that the step waits for.
    pub const fn approval(&self) -> Option<ApprovalId> {
        match self {
            StepPhase::AwaitingApproval { approval } => Some(*approval),
            _ => None,
        }
    }

    /// SHA-256 of the text that the moderator is asked about.
    pub fn moderated(&self) -> Option<&str> {
        match self {
            StepPhase::Moderating { digest } => Some(digest),
            _ => None,
        }
    }

    /// The result of a step that succeeded.
    pub const fn outcome(&self) -> Option<&Arc<StepOutcome>> {
        match self {
            StepPhase::Settled { end: StepEnd::Completed(outcome), .. } => Some(outcome),
            _ => None,
        }
    }

    /// Why the step was skipped.
    pub fn skip(&self) -> Option<&Skip> {
        match self {
            StepPhase::Settled { end: StepEnd::Skipped(skip), .. } => Some(skip),
            _ => None,
        }
    }

    /// The label without a value that blocks the step.
    pub fn placeholder(&self) -> Option<&str> {
        match self {
            StepPhase::Settled { end: StepEnd::Blocked { placeholder }, .. } => {
                placeholder.as_deref()
            }
            _ => None,
        }
    }

    /// When the step ended.
    pub const fn ended_at_ms(&self) -> Option<u64> {
        match self {
            StepPhase::Settled { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }
}

impl StepEnd {
    /// The status on every wire.
    pub const fn status(&self) -> StepStatus {
        match self {
            StepEnd::Completed(_) => StepStatus::Completed,
            StepEnd::Failed => StepStatus::Failed,
            StepEnd::TimedOut => StepStatus::TimedOut,
            StepEnd::Cancelled => StepStatus::Cancelled,
            StepEnd::Skipped(_) => StepStatus::Skipped,
            StepEnd::Blocked { .. } => StepStatus::Blocked,
        }
    }
}
