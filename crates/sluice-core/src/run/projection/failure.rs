//! The state of a failed run at its end: the failed steps, the completed steps and the
//! variables.
//!
//! A restart carries over exactly this state: the completed steps, the variables, and the
//! order in which steps wrote them.

use crate::code::Code;
use crate::journal::event::StepAt;
use crate::run::state::Run;
use crate::status::{RunStatus, StepStatus};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The state of a failed run at its end.
#[derive(Debug, Serialize)]
pub struct FailureSnapshot<'a> {
    /// The step that failed first.
    pub failed_node_id: Option<&'a str>,
    /// Every step that failed, timed out or is blocked.
    pub failed: Vec<&'a str>,
    /// Steps that completed; their outputs are in `node_results`.
    pub completed: Vec<&'a str>,
    /// Steps that were skipped.
    pub skipped: Vec<&'a str>,
    /// Steps that were cancelled.
    pub cancelled: Vec<&'a str>,
    /// Steps in the order in which they wrote variables.
    pub writer_order: Vec<&'a str>,
    /// Every variable with its last value.
    pub variables: BTreeMap<&'a str, &'a Value>,
}

/// The snapshot of a run that failed or timed out; `None` for other runs.
pub(super) fn snapshot(run: &Run) -> Option<FailureSnapshot<'_>> {
    if !matches!(run.status, RunStatus::Failed | RunStatus::TimedOut) {
        return None;
    }
    let steps = &run.definition.plan.steps;
    let id = |step: u32| steps[step as usize].id.as_str();
    let with = |wanted: fn(StepStatus) -> bool| -> Vec<u32> {
        let all = (0u32..).zip(&run.steps);
        all.filter(|(_, state)| wanted(state.status())).map(|(step, _)| step).collect()
    };
    let ids = |wanted| with(wanted).into_iter().map(id).collect();
    let failed = with(has_failed);
    let first = failed.iter().copied().min_by_key(|step| {
        let state = &run.steps[*step as usize];
        let code = state.failure.as_ref().map(|ending| ending.code.as_str());
        // A step that failed because of a step before it is not the first failure.
        let follows = code == Some(Code::UpstreamFailure.as_str());
        (follows, state.phase.ended_at_ms().unwrap_or(u64::MAX), run.place(StepAt::whole(*step)))
    });
    Some(FailureSnapshot {
        failed_node_id: first.map(id),
        failed: failed.into_iter().map(id).collect(),
        completed: ids(|status| status == StepStatus::Completed),
        skipped: ids(|status| status == StepStatus::Skipped),
        cancelled: ids(|status| status == StepStatus::Cancelled),
        writer_order: run.writers.iter().map(|step| id(*step)).collect(),
        variables: run.variables().map(|(name, value)| (name.as_str(), value)).collect(),
    })
}

fn has_failed(status: StepStatus) -> bool {
    matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked)
}
