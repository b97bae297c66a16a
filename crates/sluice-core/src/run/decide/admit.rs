//! Whether a step may be dispatched: it is prepared, moderated, and the gates decide.
//!
//! Records what it finds out on the way, and ends in an [`Admission`] that the
//! scheduler carries out.
//!
//! INVARIANT: a step whose input is moderated reaches approvers and gates only with a
//! clearance of exactly that input.

pub(crate) mod bind;
mod facts;
pub(crate) mod gate;
pub(crate) mod govern;
mod layer;
pub(crate) mod lens;
mod session;
mod summary;
pub(crate) mod tool;

use super::draft::{Draft, PreparedStep};
use super::origins::Origins;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{LogLine, Prepared, Provenance, StepAt, StepEvent};
use crate::plan::policy::Family;
use crate::plan::policy::ModerationPhase;
use crate::plan::step::Work;
use crate::run::moderate::{digest, input_text};
use crate::run::seat::Seated;
use crate::run::state::Run;
use crate::status::StepStatus;
use crate::team::why_unassigned;
use bind::{Unfit, prepare_child, prepare_command, prepare_inputs, within_bounds};
use govern::{Judged, govern};
use layer::{add_layers, check_layers, log_missing_memory};
use lens::{prepare_approval_node, prepare_child_node, prepare_lens};
use sluice_govern::decision::Decision;
use sluice_govern::registry::Posture;
use std::sync::Arc;
use summary::summary;

/// Whether a step may be dispatched.
#[must_use]
pub(crate) enum Admission {
    /// Every gate allows it.
    Admitted(PreparedStep, Judged),
    /// It is an approval step: its approval is requested with this summary.
    Question(PreparedStep, String),
    /// The gates require an approval, which is requested with this summary.
    Held(PreparedStep, String, Decision),
    /// It waits for a gate, the moderator or an assignment, as the event says.
    Waiting(StepEvent),
    /// It fails or is blocked.
    Refused(Unfit),
    /// The run is a dry run: the step is skipped for this reason.
    DryRun(&'static str),
}

/// Decides whether the next attempt of a step may be dispatched.
pub(crate) fn admit(draft: &mut Draft<'_>, at: StepAt) -> Admission {
    draft.require_rows_to_wait();
    if draft.run.seated(at.step) == Seated::Unassigned {
        return Admission::Waiting(unassigned(draft.run, at));
    }
    let ready = match prepared_step(draft, at) {
        Ok(ready) => ready,
        Err(unfit) => return Admission::Refused(unfit),
    };
    if let Some(event) = input_check(draft, &ready) {
        return Admission::Waiting(event);
    }
    if !matches!(draft.run.step(at).work, Work::Approval) {
        return govern(draft, ready);
    }
    if draft.run.started.posture == Posture::Advisory {
        return Admission::DryRun("dry run: this approval would be requested");
    }
    match summary(draft.run, at, &ready.prepared) {
        Ok(summary) => Admission::Question(ready, summary),
        Err(failure) => Admission::Refused(failure.into()),
    }
}

/// Prepares a step, or reuses what an earlier attempt has prepared.
fn prepared_step(draft: &mut Draft<'_>, at: StepAt) -> Result<PreparedStep, Unfit> {
    let state = draft.run.state(at);
    let attempt = state.attempt + u32::from(!state.status().is_dispatched());
    if let Some(prepared) = state.prepared.clone().filter(|_| !state.reask) {
        check_layers(draft, at)?;
        return Ok(PreparedStep { at, attempt, prepared, recorded: true });
    }
    // A reask reads the same values as the attempt before it.
    let known = state.decided || state.reask;
    let (prepared, provenance) = prepare(draft, at)?;
    for one in provenance.into_iter().filter(|_| !known) {
        draft.record(at, StepEvent::Provenance(Box::new(one)));
    }
    log_missing_memory(draft, at);
    Ok(PreparedStep { at, attempt, prepared: Arc::new(prepared), recorded: false })
}

/// Binds and renders everything that a step is sent, with the origins of the values.
fn prepare(draft: &Draft<'_>, at: StepAt) -> Result<(Prepared, Vec<Provenance>), Unfit> {
    let run = &*draft.run;
    let (step, state) = (run.step(at), run.state(at));
    let mut origins = Origins::of_step(run, at.step);
    let is_node = run.definition.plan.family == Family::Lens;
    let mut prepared = match &step.work {
        Work::Command { command } => prepare_command(run, at, command, &mut origins)?,
        Work::Workflow(work) if is_node => prepare_child_node(run, at, work, &mut origins)?,
        Work::Workflow(work) => prepare_child(run, at, work, &mut origins)?,
        Work::Lens(work) => prepare_lens(run, at, work, &mut origins)?,
        Work::Approval if is_node => prepare_approval_node(run, at, &mut origins)?,
        Work::Approval => prepare_inputs(run, at, &mut origins)?.0,
        Work::Unresolved { what, name } => {
            let message = format!("{what} `{name}` was not available when the run was planned");
            return Err(Failure::new(Code::UnresolvedVariable, message).into());
        }
    };
    // The size of a lens node was checked before its contract.
    if !matches!(step.work, Work::Lens(_)) {
        within_bounds(&prepared)?;
    }
    prepared.labels = origins.labels.clone();
    if state.reask {
        if let Some(ending) = &state.failure {
            let note = "Your last answer was not accepted";
            prepared.prompt = format!("{}\n\n{note}: {}", prepared.prompt, ending.message);
        }
        // The message quotes the answer, and so the results of tools of every attempt before.
        prepared.labels.join(&run.labels_read(at));
    }
    add_layers(draft, at, &mut prepared)?;
    let fields = if matches!(step.work, Work::Workflow(_)) { "args." } else { "inputs." };
    prepared.field_labels = origins.field_labels(fields, &prepared.labels.flow);
    Ok((prepared, origins.found))
}

/// The request to the moderator that the step waits for; none if its input is cleared or
/// is not moderated.
fn input_check(draft: &mut Draft<'_>, ready: &PreparedStep) -> Option<StepEvent> {
    let at = ready.at;
    // A dry run sends nothing.
    let dry_run = draft.run.started.posture == Posture::Advisory;
    if dry_run || !draft.run.step(at).moderation.covers(ModerationPhase::Input) {
        return None;
    }
    let digest = digest(&input_text(&ready.prepared));
    if draft.run.state(at).cleared.as_ref() == Some(&digest) {
        return None;
    }
    // It waited between attempts, or is in flight from before there was a moderator.
    if draft.run.state(at).status() != StepStatus::Queued {
        draft.record(at, StepEvent::Queued { items: None });
    }
    let prepared = (!ready.recorded).then(|| Arc::clone(&ready.prepared));
    let dispatch_no = draft.run.state(at).dispatch_no;
    Some(StepEvent::Log { dispatch_no, line: LogLine::ModerationAsked { digest, prepared } })
}

/// No member of the team fits the step: it waits until an operator assigns one.
fn unassigned(run: &Run, at: StepAt) -> StepEvent {
    let plan = &run.definition.plan;
    let step = &plan.steps[at.step as usize];
    let message = plan.team.as_ref().map(|team| why_unassigned(team, step)).unwrap_or_default();
    let code = Code::NoMemberFits.to_string();
    StepEvent::Blocked { code, message, placeholder: None, waits: true }
}
