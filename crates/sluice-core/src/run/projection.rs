//! A run as people and programs look at it: everything in one object.
//!
//! What `GET /runs/{id}/state` answers and `sluice run --json` prints. Every
//! field is always there, null where nothing is known. A projection borrows
//! from its run and is meant to be written down at once.
//!
//! INVARIANT: a projection is a function of the run alone. Nothing in it
//! depends on when it is made, so a duration is null until its end is known.

pub mod failure;
pub mod node;
pub mod prompt;

mod hint;
#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

use super::id::{ApprovalId, RunId};
use super::state::{Approval, Run, StepState};
use super::status::{RunStatus, StepStatus};
use crate::journal::envelope::timestamp;
use crate::journal::event::{SkipCause, StepAt};
use crate::money::Money;
use crate::plan::Phase;
use crate::port::adapter::Usage;
use failure::FailureSnapshot;
use node::NodeResult;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Display;

/// A run, shown.
#[derive(Debug, Serialize)]
pub struct Projection<'a> {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub run_id: RunId,
    /// The workflow's name.
    pub workflow: &'a str,
    /// The workflow's version.
    pub version: Option<u64>,
    /// What it is doing.
    pub status: RunStatus,
    /// Why it is paused, while it is: `operator` or `approval`.
    pub pause_reason: Option<&'static str>,
    /// It completed, and not everything in it went well.
    pub degraded: bool,
    /// Its result, where it ended well.
    pub outputs: Option<&'a Value>,
    /// The kind of failure it ended with.
    pub error_code: Option<&'a str>,
    /// What failed.
    pub error_message: Option<&'a str>,
    /// When it was started.
    pub started_at: Time,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// From start to end.
    pub duration_ms: Option<u64>,
    /// What all of it cost, in dollars.
    #[serde(serialize_with = "as_dollars")]
    pub cost: Money,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The first node in flight, in the order of ids.
    pub active_node_id: Option<String>,
    /// Nodes to which nothing happened yet.
    pub pending_count: usize,
    /// Nodes that wait for others, for a place or for a person.
    pub waiting_count: usize,
    /// Nodes at work, or between two attempts.
    pub in_flight_count: usize,
    /// Nodes completed or skipped.
    pub executed_count: usize,
    /// Nodes that came to another end.
    pub failed_count: usize,
    /// Whether it has not ended.
    pub is_running: bool,
    /// The run that started it.
    #[serde(serialize_with = "as_text_if_any")]
    pub parent_run_id: Option<RunId>,
    /// How many runs are above it.
    pub recursion_depth: u32,
    /// How many values came here from elsewhere, and went elsewhere from here.
    pub provenance: ProvenanceCounts,
    /// The groups of its steps, in the order the document has them.
    #[serde(skip_serializing_if = "<[Phase]>::is_empty")]
    pub phases: &'a [Phase],
    /// By ordinal, then id; instances directly after their step.
    pub node_results: Vec<NodeResult<'a>>,
    /// Open questions, oldest first.
    pub approvals: Vec<ApprovalShown<'a>>,
    /// What it had come to, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_snapshot: Option<FailureSnapshot<'a>>,
}

/// Values that crossed into and out of a run's steps.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ProvenanceCounts {
    /// Came here.
    pub upstream: u64,
    /// Went elsewhere.
    pub downstream: u64,
}

impl Projection<'_> {
    /// The same, with the values that steps of other runs took from this one.
    #[must_use]
    pub fn with_taken(mut self, values: u64) -> Self {
        self.provenance.downstream += values;
        self
    }
}

/// A question to a person, shown.
#[derive(Debug, Serialize)]
pub struct ApprovalShown<'a> {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub approval_id: ApprovalId,
    /// The node it is about.
    pub node_id: String,
    /// Why it is asked: `step`, `policy` or `escalation`.
    pub source: &'static str,
    /// What is asked.
    pub summary: &'a str,
    /// SHA-256 of exactly what would be done.
    pub digest: Option<&'a str>,
    /// `pending`, or how it was closed.
    pub status: &'static str,
    /// When it was asked.
    pub requested_at: Time,
    /// When it is too late.
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

/// Shows a run.
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
        approvals: open.map(|(id, approval)| shown(run, *id, approval)).collect(),
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

/// Whether a completed run holds something that did not go well.
fn is_degraded(run: &Run) -> bool {
    let bad = |state: &StepState| is_failed(state.status()) || skipped_by_failure(state);
    run.status == RunStatus::Completed && run.all().any(|(_, state)| bad(state))
}

/// Whether a step was skipped because something failed, itself or before it.
fn skipped_by_failure(state: &StepState) -> bool {
    let cause = state.phase.skip().map(|skip| skip.cause);
    state.status() == StepStatus::Skipped
        && match cause {
            // People decide to skip only what has failed.
            Some(SkipCause::Failure | SkipCause::ParentFailure | SkipCause::Decision) => true,
            Some(SkipCause::Condition | SkipCause::Dependencies | SkipCause::Advisory) | None => {
                false
            }
        }
}

/// The first step in flight. A fan-out as a whole is not: its instances are.
fn active(run: &Run) -> Option<StepAt> {
    let dispatched = run.index.in_flight.keys().chain(&run.index.retrying);
    dispatched.copied().min_by_key(|at| run.place(*at))
}

fn shown<'a>(run: &Run, approval_id: ApprovalId, approval: &'a Approval) -> ApprovalShown<'a> {
    ApprovalShown {
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

/// What several things cost together. Sums that do not fit stay at the most that does.
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

fn as_text<S: Serializer>(shown: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(shown)
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn as_text_if_any<S: Serializer>(
    shown: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match shown {
        Some(shown) => serializer.collect_str(shown),
        None => serializer.serialize_none(),
    }
}

/// An amount as a JSON number, digit by digit: never a float on the way.
fn as_dollars<S: Serializer>(amount: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(amount.to_string());
    digits.expect("an amount is a JSON number").serialize(serializer)
}
