//! What a run and a step can be in, and which changes are allowed.

use crate::choice::choices;

choices! {
    /// What a run is doing.
    pub enum RunStatus, "a run status" {
        /// Nothing yet.
        Queued = "queued",
        /// Steps are ready or in flight.
        Running = "running",
        /// An operator stopped it, or only people are left to wait for.
        Paused = "paused",
        /// Work in flight is being stopped.
        Cancelling = "cancelling",
        /// It failed, was taken up again, and has just succeeded.
        Recovered = "recovered",
        /// It ended well.
        Completed = "completed",
        /// It ended badly.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
        /// Its time ran out.
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
    /// What a step is doing.
    pub enum StepStatus, "a step status" {
        /// Nothing yet.
        Pending = "pending",
        /// It waits for other steps.
        AwaitingDependency = "awaiting_dependency",
        /// It is ready and waits for a place.
        Queued = "queued",
        /// A person must decide.
        AwaitingApproval = "awaiting_approval",
        /// It is dispatched.
        Running = "running",
        /// It is dispatched, and parts of its answer have come.
        Streaming = "streaming",
        /// An attempt failed; the next one comes.
        Retrying = "retrying",
        /// It is done.
        Completed = "completed",
        /// It failed for good.
        Failed = "failed",
        /// It was not done.
        Skipped = "skipped",
        /// It was stopped.
        Cancelled = "cancelled",
        /// Its last attempt took too long.
        TimedOut = "timed_out",
        /// It cannot be done until someone sees to it.
        Blocked = "blocked",
    }
}

impl StepStatus {
    /// Whether nothing more happens to the step by itself.
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

    /// Whether a dispatch is out.
    pub const fn is_dispatched(self) -> bool {
        matches!(self, StepStatus::Running | StepStatus::Streaming)
    }
}

choices! {
    /// Why a step waits.
    pub enum Waiting, "a waiting reason" {
        /// For other steps.
        Dependency = "dependency",
        /// Its condition is false: the reason of a skip.
        ConditionFalse = "condition_false",
        /// The provider asked to slow down.
        RateLimit = "rate_limit",
        /// An attempt failed.
        RetryBackoff = "retry_backoff",
        /// A person must act.
        HumanInput = "human_input",
        /// The work goes on elsewhere.
        ExternalCallback = "external_callback",
        /// For a place.
        Queued = "queued",
        /// Governance says: not now.
        Gate = "gate",
    }
}
