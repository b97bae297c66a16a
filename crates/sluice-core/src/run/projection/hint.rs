//! Hints for people: what ends the wait of a step.

use super::timestamp;
use crate::id::ApprovalId;
use crate::journal::event::{ApprovalSource, Path, StepAt};
use crate::run::phase::StepPhase;
use crate::run::state::{Run, StepState};
use crate::status::Waiting;

/// The maximum number of steps that a hint names.
const NAMED_MAX: usize = 5;

/// What ends the wait of a step with this waiting reason.
pub(super) fn hint(run: &Run, at: StepAt, waiting: Waiting) -> Option<String> {
    let state = run.state(at);
    if let Some(gate) =
        state.gate.as_ref().filter(|_| matches!(state.phase, StepPhase::AtGate { .. }))
    {
        return Some(match &gate.hint {
            Some(hint) => format!("{}: {hint}", gate.code),
            None => gate.code.clone(),
        });
    }
    Some(match waiting {
        Waiting::Dependency => dependencies(run, at.step),
        Waiting::HumanInput => human_input(run, at, state)?,
        Waiting::RetryBackoff | Waiting::RateLimit | Waiting::Gate => {
            format!("next attempt at {}", timestamp(state.phase.wakes_at_ms()?))
        }
        Waiting::ExternalCallback => match state.phase.deadline_ms() {
            Some(until_ms) => format!("waits for its result until {}", timestamp(until_ms)),
            None => "waits for its result".to_owned(),
        },
        Waiting::Queued if state.phase.moderated().is_some() => {
            "waits for the moderator".to_owned()
        }
        Waiting::Queued => queue_place(run, at),
        // The step was skipped, so it does not wait.
        Waiting::ConditionFalse => return None,
    })
}

fn dependencies(run: &Run, step: u32) -> String {
    let plan = &run.definition.plan;
    let open: Vec<&str> = (plan.graph.dependencies(step as usize).iter())
        .filter(|dependency| !run.steps[**dependency as usize].is_settled())
        .map(|dependency| plan.steps[*dependency as usize].id.as_str())
        .collect();
    let named = open[..open.len().min(NAMED_MAX)].join(", ");
    match open.len().saturating_sub(NAMED_MAX) {
        0 => format!("waits for `{named}`"),
        more => format!("waits for `{named}` and {more} more"),
    }
}

fn human_input(run: &Run, at: StepAt, state: &StepState) -> Option<String> {
    let command = |id: ApprovalId, word: &str| format!("`sluice approvals {word} {id}`");
    if let Some(id) = state.phase.approval() {
        let word = match run.approvals.get(&id)?.source {
            ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool => "approve",
            ApprovalSource::Escalation => "retry",
        };
        return Some(command(id, word));
    }
    if let Some(Path::Child(child)) = state.path() {
        return Some(format!("{child} waits for people: `sluice approvals list`"));
    }
    if state.phase == StepPhase::AwaitingAssignment {
        let (run, step) = (run.id, run.name(at));
        return Some(format!("`sluice runs assign {run} {step} MEMBER`"));
    }
    let label = state.phase.placeholder()?;
    Some(format!("give `{label}` a value"))
}

fn queue_place(run: &Run, at: StepAt) -> String {
    if let Some(head) = run.stands_behind(at) {
        let code = run.state(head).gate.as_ref().map_or("", |gate| gate.code.as_str());
        return format!("waits behind `{}`: {code}", run.name(head));
    }
    let plan = &run.definition.plan;
    let own = run.step(at).for_each.as_ref().and_then(|each| each.max_parallel);
    let max_parallel = at.item.and(own).map_or(plan.max_parallel, |own| own.min(plan.max_parallel));
    format!("waits for a free slot: max_parallel is {max_parallel}")
}
