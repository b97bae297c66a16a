//! The public state of a run as one JSON object.
//!
//! `GET /runs/{id}/state` returns it and `sluice run --json` prints it. Every field is always
//! present and null if it has no value, except those that are left out if empty. A projection borrows from its
//! run, and the caller serialises it at once.
//!
//! INVARIANT: a projection depends on the run alone and not on the current time, so a duration
//! is null until its end is known. What depends on other runs is added by the caller.

pub mod child_wait;
pub mod failure;
pub mod labels;
pub mod node;
pub mod prompt;

mod hint;
#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

use super::state::{Approval, Run, StepState};
use crate::id::{ApprovalId, RunId};
use crate::journal::envelope::timestamp;
use crate::journal::event::{SkipCause, StepAt};
use crate::money::Money;
use crate::plan::Phase;
use crate::port::adapter::Usage;
use crate::status::{RunStatus, StepStatus};
use failure::FailureSnapshot;
use node::NodeResult;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Display;

/// The public state of a run.
#[derive(Debug, Serialize)]
pub struct Projection<'a> {
    /// The run that is shown.
    #[serde(serialize_with = "as_text")]
    pub run_id: RunId,
    /// The workflow's name.
    pub workflow: &'a str,
    /// The workflow's version.
    pub version: Option<u64>,
    /// The status after the last event.
    pub status: RunStatus,
    /// Why it is paused, while it is: `operator` or `approval`.
    pub pause_reason: Option<&'static str>,
    /// Whether it completed although a step failed or was skipped after a failure.
    pub degraded: bool,
    /// The outputs of a completed run.
    pub outputs: Option<&'a Value>,
    /// The code of its failure.
    pub error_code: Option<&'a str>,
    /// The message of its failure.
    pub error_message: Option<&'a str>,
    /// When it was started.
    pub started_at: Time,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// From start to end.
    pub duration_ms: Option<u64>,
    /// The cost of all steps, in dollars.
    #[serde(serialize_with = "as_dollars")]
    pub cost: Money,
    /// Input tokens of all steps.
    pub input_tokens: u64,
    /// Output tokens of all steps.
    pub output_tokens: u64,
    /// The first node in flight, in the order of ids.
    pub active_node_id: Option<String>,
    /// The number of pending nodes.
    pub pending_count: usize,
    /// The number of nodes that wait for dependencies, in the queue or for an approval.
    pub waiting_count: usize,
    /// The number of nodes that are running, streaming or retrying.
    pub in_flight_count: usize,
    /// The number of nodes that completed or were skipped.
    pub executed_count: usize,
    /// The number of nodes that failed, timed out, are blocked or were cancelled.
    pub failed_count: usize,
    /// Whether it has not ended.
    pub is_running: bool,
    /// The run that started it.
    #[serde(serialize_with = "as_text_if_any")]
    pub parent_run_id: Option<RunId>,
    /// How many runs are above it.
    pub recursion_depth: u32,
    /// How many values its steps read, and how many were read from them.
    pub provenance: ProvenanceCounts,
    /// The groups of its steps, in the order the document has them.
    #[serde(skip_serializing_if = "<[Phase]>::is_empty")]
    pub phases: &'a [Phase],
    /// By ordinal, then id; instances directly after their step.
    pub node_results: Vec<NodeResult<'a>>,
    /// Open approvals, oldest first.
    pub approvals: Vec<OpenApproval<'a>>,
    /// The state at its end, if it failed; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_snapshot: Option<FailureSnapshot<'a>>,
}

/// Counts of the values that the steps of a run read, and that were read from them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ProvenanceCounts {
    /// Values that its steps read.
    pub upstream: u64,
    /// Values that were read from its steps.
    pub downstream: u64,
}

impl Projection<'_> {
    /// Adds the values that other runs read from this one.
    #[must_use]
    pub fn with_taken(mut self, values: u64) -> Self {
        self.provenance.downstream += values;
        self
    }
}

/// An approval that the run waits for.
#[derive(Debug, Serialize)]
pub struct OpenApproval<'a> {
    /// The id that a decision names.
    #[serde(serialize_with = "as_text")]
    pub approval_id: ApprovalId,
    /// The node that needs it.
    pub node_id: String,
    /// What requires it: `step`, `policy`, `tool` or `escalation`.
    pub source: &'static str,
    /// What the approver decides on, in words.
    pub summary: &'a str,
    /// SHA-256 of the action.
    pub digest: Option<&'a str>,
    /// `pending`, or how it was closed.
    pub status: &'static str,
    /// When it was requested.
    pub requested_at: Time,
    /// When it expires.
    pub expires_at: Time,
}

/// A point in time, written as ISO 8601 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp(self.0))
    }
}

/// The public state of a run.
pub fn project(run: &Run) -> Projection<'_> {
    let node_results = node::results(run);
    let spent = total(run.all().map(|(_, state)| &state.usage));
    let count = |group: fn(StepStatus) -> bool| {
        node_results.iter().filter(|node| group(node.status)).count()
    };
    let error = run.end.as_ref().and_then(|end| end.error.as_ref());
    let open = run.approvals.iter().filter(|(_, approval)| approval.resolution.is_none());
    Projection {
        run_id: run.id,
        workflow: &run.started.workflow,
        version: run.started.version,
        status: run.status,
        pause_reason: run.pause.map(super::state::Pause::as_str),
        degraded: is_degraded(run),
        outputs: run.end.as_ref().and_then(|end| end.outputs.as_deref()),
        error_code: error.map(|(code, _)| code.as_str()),
        error_message: error.map(|(_, message)| message.as_str()),
        started_at: Time(run.started_at_ms),
        completed_at: run.ended_at_ms.map(Time),
        duration_ms: run.ended_at_ms.map(|end_ms| end_ms.saturating_sub(run.started_at_ms)),
        cost: spent.cost,
        input_tokens: spent.input_tokens,
        output_tokens: spent.output_tokens,
        active_node_id: active(run).map(|at| run.name(at)),
        pending_count: count(|status| status == StepStatus::Pending),
        waiting_count: count(is_waiting),
        in_flight_count: count(is_in_flight),
        executed_count: count(is_executed),
        failed_count: count(is_failed),
        is_running: !run.status.is_terminal(),
        parent_run_id: run.started.parent.as_ref().map(|parent| parent.run),
        recursion_depth: run.started.depth,
        provenance: ProvenanceCounts { upstream: run.provenance.0, downstream: run.provenance.1 },
        phases: &run.definition.plan.phases,
        node_results,
        approvals: open.map(|(id, approval)| open_approval(run, *id, approval)).collect(),
        failure_snapshot: failure::snapshot(run),
    }
}

const fn is_waiting(status: StepStatus) -> bool {
    use StepStatus::{AwaitingApproval, AwaitingDependency, Queued};
    matches!(status, AwaitingDependency | Queued | AwaitingApproval)
}

const fn is_in_flight(status: StepStatus) -> bool {
    matches!(status, StepStatus::Running | StepStatus::Streaming | StepStatus::Retrying)
}

const fn is_executed(status: StepStatus) -> bool {
    matches!(status, StepStatus::Completed | StepStatus::Skipped)
}

const fn is_failed(status: StepStatus) -> bool {
    use StepStatus::{Blocked, Cancelled, Failed, TimedOut};
    matches!(status, Failed | TimedOut | Blocked | Cancelled)
}

/// Whether a completed run has a step that failed or was skipped after a failure.
fn is_degraded(run: &Run) -> bool {
    let is_faulty = |state: &StepState| is_failed(state.status()) || skipped_by_failure(state);
    run.status == RunStatus::Completed && run.all().any(|(_, state)| is_faulty(state))
}

/// Whether a step was skipped because it failed, or because a step before it did.
fn skipped_by_failure(state: &StepState) -> bool {
    let cause = state.phase.skip().map(|skip| skip.cause);
    state.status() == StepStatus::Skipped
        && match cause {
            // A person can skip only a step that failed.
            Some(SkipCause::Failure | SkipCause::ParentFailure | SkipCause::Decision) => true,
            Some(SkipCause::Condition | SkipCause::Dependencies | SkipCause::Advisory) | None => {
                false
            }
        }
}

/// The first step in flight or between attempts. Of a fan-out, its instances are in flight.
fn active(run: &Run) -> Option<StepAt> {
    let dispatched = run.index.in_flight.keys().chain(&run.index.retrying);
    dispatched.copied().min_by_key(|at| run.place(*at))
}

fn open_approval<'a>(
    run: &Run,
    approval_id: ApprovalId,
    approval: &'a Approval,
) -> OpenApproval<'a> {
    OpenApproval {
        approval_id,
        node_id: run.name(approval.at),
        source: approval.source.as_str(),
        summary: &approval.summary,
        digest: approval.digest(),
        status: approval.resolution.map_or("pending", crate::journal::event::Resolution::as_str),
        requested_at: Time(approval.requested_at_ms),
        expires_at: Time(approval.expires_at_ms),
    }
}

/// The sum of several usages. A sum that overflows becomes the maximum.
fn total<'u>(all: impl Iterator<Item = &'u Usage>) -> Usage {
    all.fold(Usage::default(), |sum, one| Usage {
        model: None,
        input_tokens: sum.input_tokens.saturating_add(one.input_tokens),
        output_tokens: sum.output_tokens.saturating_add(one.output_tokens),
        thinking_tokens: sum.thinking_tokens.saturating_add(one.thinking_tokens),
        cached_tokens: sum.cached_tokens.saturating_add(one.cached_tokens),
        unpriced: false,
        cost: sum.cost.checked_add(one.cost).unwrap_or(Money::from_micro_cents(u64::MAX)),
        unknown: false,
    })
}

fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn as_text_if_any<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// Writes an amount as a JSON number from its digits, because a float would lose some.
fn as_dollars<S: Serializer>(amount: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(amount.to_string());
    digits.expect("an amount is a JSON number").serialize(serializer)
}
