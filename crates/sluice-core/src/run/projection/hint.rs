//! What would end a step's wait, in a sentence.

use super::timestamp;
use crate::id::ApprovalId;
use crate::journal::event::{ApprovalSource, Path, StepAt};
use crate::run::phase::StepPhase;
use crate::run::state::{Run, StepState};
use crate::status::Waiting;

/// Most steps a hint names.
const NAMED_MAX: usize = 5;

/// What would unblock a step that waits for `waiting`.
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
        Waiting::HumanInput => person(run, at, state)?,
        Waiting::RetryBackoff | Waiting::RateLimit | Waiting::Gate => {
            format!("next attempt at {}", timestamp(state.phase.wakes_at_ms()?))
        }
        Waiting::ExternalCallback => match state.phase.deadline_ms() {
            Some(until_ms) => format!("waits for its result until {}", timestamp(until_ms)),
            None => "waits for its result".to_owned(),
        },
        Waiting::Queued if state.phase.moderated().is_some() => "the moderator is asked".to_owned(),
        Waiting::Queued => place(run, at),
        // It does not wait: that is why it was skipped.
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

fn person(run: &Run, at: StepAt, state: &StepState) -> Option<String> {
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

fn place(run: &Run, at: StepAt) -> String {
    if let Some(head) = run.stands_behind(at) {
        let code = run.state(head).gate.as_ref().map_or("", |gate| gate.code.as_str());
        return format!("waits behind `{}`: {code}", run.name(head));
    }
    let plan = &run.definition.plan;
    let own = run.step(at).for_each.as_ref().and_then(|each| each.max_parallel);
    let places = at.item.and(own).map_or(plan.max_parallel, |own| own.min(plan.max_parallel));
    match places {
        1 => "waits for the only place".to_owned(),
        _ => format!("waits for one of {places} places"),
    }
}
