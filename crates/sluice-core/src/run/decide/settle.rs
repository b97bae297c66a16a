//! What a result means: the step completes, is tried again, fails or is stopped,
//! and what that does to the rest of the run.
//!
//! Nothing here starts a step. What has to start is returned as [`Next`].

pub(crate) mod cancel;
pub(crate) mod child;
pub(crate) mod complete;
pub(crate) mod cost;
pub(crate) mod fail;
pub(crate) mod halt;
mod labels;
pub(crate) mod moderate;
pub(crate) mod outcome;
pub(crate) mod progress;

use crate::journal::event::StepAt;
use fail::FailedAttempt;

/// What the scheduler does after a result.
#[must_use]
pub(crate) enum Next {
    /// Nothing: the step is settled, or waits.
    Nothing,
    /// Start the next attempt at once.
    Retry(StepAt),
    /// Request an approval: a person decides about the failure.
    Escalate(StepAt, Box<FailedAttempt>),
}
