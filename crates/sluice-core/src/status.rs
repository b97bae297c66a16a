//! The statuses of runs and steps, and why a step waits.

use crate::choices::choices;

choices! {
    /// The status of a run.
    pub enum RunStatus, "a run status" {
        /// The run has not started a step yet.
        Queued = "queued",
        /// Steps are ready or in flight.
        Running = "running",
        /// An operator paused the run, or it waits for approvals only.
        Paused = "paused",
        /// Steps in flight are being stopped.
        Cancelling = "cancelling",
        /// The run failed, was resumed, and has just succeeded.
        Recovered = "recovered",
        /// The run succeeded.
        Completed = "completed",
        /// The run failed.
        Failed = "failed",
        /// The run was cancelled.
        Cancelled = "cancelled",
        /// The run reached its time limit.
        TimedOut = "timed_out",
    }
}

impl RunStatus {
    /// Whether the run has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::TimedOut => true,
            RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Paused
            | RunStatus::Cancelling
            | RunStatus::Recovered => false,
        }
    }
}

/// Reasons of `run.status.changed` that the run and the journal act on. Every other
/// reason is free text for people.
pub(crate) const REASON_OPERATOR: &str = "operator";
pub(crate) const REASON_APPROVAL: &str = "approval";
pub(crate) const REASON_REWIND: &str = "rewind";
pub(crate) const REASON_RETRY: &str = "retry";
pub(crate) const REASON_RECOVERY: &str = "recovery";

choices! {
    /// The status of a step.
    pub enum StepStatus, "a step status" {
        /// The run has not reached the step yet.
        Pending = "pending",
        /// The step waits for other steps.
        AwaitingDependency = "awaiting_dependency",
        /// The step is ready and waits for capacity.
        Queued = "queued",
        /// The step waits for an approval.
        AwaitingApproval = "awaiting_approval",
        /// The step is dispatched.
        Running = "running",
        /// The step is dispatched, and partial output has arrived.
        Streaming = "streaming",
        /// An attempt failed; a retry follows.
        Retrying = "retrying",
        /// The step succeeded.
        Completed = "completed",
        /// The step failed, without further retries.
        Failed = "failed",
        /// The step was not executed.
        Skipped = "skipped",
        /// The step was cancelled.
        Cancelled = "cancelled",
        /// The last attempt of the step timed out.
        TimedOut = "timed_out",
        /// The step cannot run until a person acts.
        Blocked = "blocked",
    }
}

impl StepStatus {
    /// Whether the step changes no more by itself.
    pub const fn is_settled(self) -> bool {
        match self {
            StepStatus::Completed
            | StepStatus::Failed
            | StepStatus::Skipped
            | StepStatus::Cancelled
            | StepStatus::TimedOut
            | StepStatus::Blocked => true,
            StepStatus::Pending
            | StepStatus::AwaitingDependency
            | StepStatus::Queued
            | StepStatus::AwaitingApproval
            | StepStatus::Running
            | StepStatus::Streaming
            | StepStatus::Retrying => false,
        }
    }

    /// Whether a dispatch is in flight.
    pub const fn is_dispatched(self) -> bool {
        matches!(self, StepStatus::Running | StepStatus::Streaming)
    }
}

choices! {
    /// Why a step waits.
    pub enum Waiting, "a waiting reason" {
        /// It waits for other steps.
        Dependency = "dependency",
        /// Its condition is false: the reason of a skip.
        ConditionFalse = "condition_false",
        /// The provider limits the rate of requests.
        RateLimit = "rate_limit",
        /// An attempt failed, and the backoff has not passed.
        RetryBackoff = "retry_backoff",
        /// It waits for an approval or another action of a person.
        HumanInput = "human_input",
        /// A remote worker executes it; the result arrives by callback.
        ExternalCallback = "external_callback",
        /// It waits for capacity.
        Queued = "queued",
        /// A gate delays it.
        Gate = "gate",
    }
}
