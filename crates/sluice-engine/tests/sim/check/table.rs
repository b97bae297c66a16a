//! Allowed changes of step status.

use sluice_core::status::{RunStatus, StepStatus};

pub(super) fn run_may(from: RunStatus, to: RunStatus) -> bool {
    use RunStatus as R;
    match from {
        R::Queued => to != R::Recovered,
        R::Running | R::Paused => to != R::Queued,
        R::Cancelling => matches!(to, R::Cancelled | R::Failed | R::TimedOut),
        R::Recovered => to == R::Completed,
        R::Failed => matches!(to, R::Running | R::Cancelling),
        R::Completed | R::Cancelled | R::TimedOut => to == R::Running,
    }
}

pub(super) fn step_may(from: StepStatus, to: StepStatus) -> bool {
    use StepStatus as S;
    match from {
        S::Pending => matches!(to, S::Queued | S::Skipped | S::Failed | S::Cancelled),
        // A granted approval queues the step; a pure approval step is then complete.
        S::Queued => matches!(
            to,
            S::Completed
                | S::Running
                | S::AwaitingApproval
                | S::Failed
                | S::Skipped
                | S::Cancelled
                | S::Blocked
                | S::Pending
        ),
        S::AwaitingApproval => matches!(
            to,
            S::Queued
                | S::Completed
                | S::Failed
                | S::TimedOut
                | S::Skipped
                | S::Cancelled
                | S::Pending
        ),
        // Sent again after a crash, it may be refused at a gate and wait there.
        S::Running => to != S::Blocked,
        S::Streaming => to != S::Blocked && to != S::Streaming,
        S::Retrying => matches!(
            to,
            S::Running
                | S::Queued
                | S::AwaitingApproval
                | S::Failed
                | S::Skipped
                | S::Cancelled
                | S::Pending
        ),
        S::Completed | S::Failed | S::Skipped | S::Cancelled | S::TimedOut | S::Blocked => {
            to == S::Pending
        }
        S::AwaitingDependency => false,
    }
}
