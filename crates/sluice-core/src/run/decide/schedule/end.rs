//! The end of a run, and the messages to the run that started it.

use super::queue::may_start;
use crate::code::Code;
use crate::journal::event::{ChildPace, Event, StepAt};
use crate::plan::policy::Family;
use crate::run::command::Command;
use crate::run::decide::draft::Draft;
use crate::run::decide::origins::Origins;
use crate::run::scope::RunScope;
use crate::run::state::Run;
use crate::status::{RunStatus, StepStatus};
use crate::template::Template;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Ends the run if every step is settled, or if none can continue.
pub(super) fn end_if_done(draft: &mut Draft<'_>) {
    let index = &draft.run.index;
    if index.unsettled == 0 && index.in_flight.is_empty() {
        return end(draft);
    }
    let waits = !index.in_flight.is_empty()
        || !index.queue.is_empty()
        || !index.asks.is_empty()
        || !index.ready.is_empty()
        || !index.retrying.is_empty()
        || !index.gated.is_empty()
        || !index.checking.is_empty()
        || !index.awaiting.is_empty()
        || !index.blocked.is_empty()
        || draft.run.steps.iter().any(|step| step.status() == StepStatus::Running);
    if !waits && may_start(draft.run) {
        let stuck: Vec<&str> = (draft.run.steps.iter().zip(&draft.run.definition.plan.steps))
            .filter(|(state, _)| !state.is_settled())
            .map(|(_, step)| step.id.as_str())
            .collect();
        let message = format!(
            "Workflow stalled: {} step(s) have unmet dependencies: {}",
            stuck.len(),
            stuck.join(", ")
        );
        draft.emit(Event::RunFailed { code: Code::WorkflowStalled.to_string(), message });
        report_end(draft);
    }
}

fn end(draft: &mut Draft<'_>) {
    let event = match end_status(draft.run) {
        RunStatus::Cancelled => {
            let reason = draft.run.cancel_reason.clone();
            Event::RunCancelled { reason: reason.unwrap_or_else(|| "cancelled".to_owned()) }
        }
        RunStatus::Completed => {
            if draft.run.reopened > 0 {
                draft.emit(Event::RunRecovered);
            }
            Event::RunCompleted { outputs: Arc::new(result(draft.run)) }
        }
        _ => {
            let (code, mut message) = first_failure(draft.run);
            if let Some(reason) = &draft.run.cancel_reason {
                message.push_str(&format!("; then the run was cancelled: {reason}"));
            }
            Event::RunFailed { code, message }
        }
    };
    draft.emit(event);
    report_end(draft);
}

/// The status of a run whose steps are all settled.
fn end_status(run: &Run) -> RunStatus {
    let index = &run.index;
    // A cancel does not hide a failure that came before it.
    if run.status == RunStatus::Cancelling {
        return if index.failed > 0 { RunStatus::Failed } else { RunStatus::Cancelled };
    }
    let plan = &run.definition.plan;
    let good = match plan.family {
        Family::Lobsterx => index.failed == 0 && index.cancelled == 0,
        Family::Lens => {
            run.halted_by.is_none()
                && (0..run.steps.len()).all(|step| {
                    let done = matches!(
                        run.steps[step].status(),
                        StepStatus::Completed | StepStatus::Skipped
                    );
                    done || !plan.graph.dependents(step).is_empty()
                })
        }
    };
    match plan.family {
        _ if good => RunStatus::Completed,
        Family::Lens if index.cancelled > 0 && index.failed == 0 => RunStatus::Cancelled,
        _ => RunStatus::Failed,
    }
}

/// The failure that the run reports: the one that halted it, else the first.
fn first_failure(run: &Run) -> (String, String) {
    let bad =
        |status| matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Blocked);
    let first = (0u32..).zip(&run.steps).filter(|(_, state)| bad(state.status()));
    let first = first.min_by_key(|(step, state)| {
        let upstream = state
            .failure
            .as_ref()
            .is_some_and(|ending| ending.code == Code::UpstreamFailure.as_str());
        (upstream, state.phase.ended_at_ms(), *step)
    });
    let at = run.halted_by.or(first.map(|(step, _)| StepAt::whole(step)));
    let failure = at.and_then(|at| Some((at, run.state(at).failure.as_ref()?)));
    failure.map_or_else(
        || (Code::ProviderError.to_string(), "a step failed".to_owned()),
        |(at, ending)| {
            let message = format!("`{}` failed: {}", run.name(at), ending.message);
            (ending.code.clone(), message)
        },
    )
}

/// The result of the run: the outputs that the workflow declares, else its variables and
/// the outputs of its last lens nodes. An output without a value is null.
fn result(run: &Run) -> Value {
    let plan = &run.definition.plan;
    if !plan.outputs.is_empty() {
        let scope = RunScope::of_run(run);
        let value = |template: &Template| template.value(&scope).unwrap_or(Value::Null);
        let named = plan.outputs.iter();
        return Value::Object(named.map(|(name, one)| (name.clone(), value(one))).collect());
    }
    let mut result: Map<String, Value> =
        run.variables().map(|(name, value)| (name.clone(), value.clone())).collect();
    for (at, state) in run.steps.iter().enumerate() {
        let last = plan.graph.dependents(at).is_empty();
        let envelope = state.outcome().and_then(|outcome| outcome.envelope.as_ref());
        if let (true, StepStatus::Completed, Some(envelope)) = (last, state.status(), envelope) {
            result.insert(plan.steps[at].id.clone(), envelope.output.clone());
        }
    }
    Value::Object(result)
}

/// Reports to the parent, if there is one, that the run now waits only for people, or no
/// longer does.
pub(crate) fn report_pace(draft: &mut Draft<'_>, rested: bool) {
    let rests = draft.run.is_clock_stopped();
    if rests == rested || draft.run.status.is_terminal() {
        return;
    }
    let Some(parent) = draft.run.started.parent.as_ref().map(|parent| parent.run) else {
        return;
    };
    let pace = if rests { ChildPace::Paused } else { ChildPace::Resumed };
    let child = draft.run.id;
    let key = format!("child:{child}:{}:{pace}", draft.run.version);
    draft.post(parent, key, Command::ChildPaced { child, pace, at_ms: draft.given.now_ms });
}

/// Reports to the parent, if there is one, that the run has ended.
pub(super) fn report_end(draft: &mut Draft<'_>) {
    let Some(parent) = draft.run.started.parent.as_ref().map(|parent| parent.run) else {
        return;
    };
    let end = draft.run.end.clone().expect("a run that has ended has an end");
    let key = format!("child:{}:{}", draft.run.id, draft.run.version);
    // The parent must not retry a cancelled child, even if the child had failed.
    let cancelled = draft.run.cancel_reason.is_some();
    let is_completed = draft.run.status == RunStatus::Completed;
    let (labels, origins) = match result_origins(draft.run) {
        origins if is_completed => (Some(origins.result_labels()), origins.found),
        _ => (None, Vec::new()),
    };
    let command = Command::ChildEnded {
        child: draft.run.id,
        status: if cancelled { RunStatus::Cancelled } else { draft.run.status },
        outputs: end.outputs.map(|outputs| (*outputs).clone()),
        error: end.error,
        origins,
        labels,
    };
    draft.post(parent, key, command);
}

/// The origins of the parts of the result.
fn result_origins(run: &Run) -> Origins<'_> {
    let plan = &run.definition.plan;
    let mut origins = Origins::of_result(run);
    for (name, template) in &plan.outputs {
        origins.note_each(template, &format!("outputs.{name}"));
    }
    if !plan.outputs.is_empty() {
        return origins;
    }
    for (name, writer) in &run.index.variables {
        origins.note_step(*writer, name, &format!("outputs.{name}"));
    }
    for (at, state) in (0u32..).zip(&run.steps) {
        let last = plan.graph.dependents(at as usize).is_empty();
        let envelope = state.outcome().and_then(|outcome| outcome.envelope.as_ref());
        if last && state.status() == StepStatus::Completed && envelope.is_some() {
            let target = format!("outputs.{}", plan.steps[at as usize].id);
            origins.note_step(at, "output", &target);
        }
    }
    origins
}
