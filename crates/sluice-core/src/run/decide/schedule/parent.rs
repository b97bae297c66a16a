//! Messages to the run that started this one.

use crate::journal::event::{ChildPace, Provenance};
use crate::run::command::Command;
use crate::run::decide::draft::Draft;
use crate::run::decide::origins::Origins;
use crate::run::state::Run;
use crate::status::{RunStatus, StepStatus};

/// Reports to the parent, if there is one, that the run now waits only for people, or no
/// longer does.
pub(crate) fn report_pace(draft: &mut Draft<'_>, rested: bool) {
    let rests = draft.run.rests();
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
    let command = Command::ChildEnded {
        child: draft.run.id,
        status: if cancelled { RunStatus::Cancelled } else { draft.run.status },
        outputs: end.outputs.map(|outputs| (*outputs).clone()),
        error: end.error,
        origins: if draft.run.status == RunStatus::Completed {
            result_origins(draft.run)
        } else {
            Vec::new()
        },
    };
    draft.post(parent, key, command);
}

/// The origins of the parts of the result.
fn result_origins(run: &Run) -> Vec<Provenance> {
    let plan = &run.definition.plan;
    let mut origins = Origins::new(run);
    for (name, template) in &plan.outputs {
        origins.note_each(template, &format!("outputs.{name}"));
    }
    if !plan.outputs.is_empty() {
        return origins.found;
    }
    for (name, writer) in &run.index.variables {
        origins.note_step(*writer, name, &format!("outputs.{name}"), None);
    }
    for (at, state) in (0u32..).zip(&run.steps) {
        let last = plan.graph.dependents(at as usize).is_empty();
        let envelope = state.outcome().and_then(|outcome| outcome.envelope.as_ref());
        if last && state.status() == StepStatus::Completed && envelope.is_some() {
            let target = format!("outputs.{}", plan.steps[at as usize].id);
            origins.note_step(at, "output", &target, None);
        }
    }
    origins.found
}
