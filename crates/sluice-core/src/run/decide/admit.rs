//! Whether a step may be dispatched: it is prepared, moderated, and the gates decide.
//!
//! Records what it finds out on the way, and ends in an [`Admission`] that the
//! scheduler carries out.

pub(crate) mod bind;
mod facts;
pub(crate) mod gate;
pub(crate) mod govern;
mod layer;
pub(crate) mod lens;
mod moderate;
mod prepare;
mod session;
mod summary;
pub(crate) mod tool;

use super::draft::{Draft, PreparedStep};
use crate::code::Code;
use crate::journal::event::{StepAt, StepEvent};
use crate::plan::step::Work;
use crate::run::seat::Seated;
use crate::run::state::Run;
use crate::team::why_nobody;
use bind::Unfit;
use govern::{Judged, govern};
use layer::{check_layers, log_missing_memory};
use moderate::input_check;
use prepare::prepare;
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
    /// A test dispatches it without a decision.
    #[cfg(feature = "sabotage")]
    Unasked(PreparedStep),
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
        return Admission::DryRun("the run only looks: a person would be asked this");
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

/// No member of the team fits the step: it waits until an operator assigns one.
fn unassigned(run: &Run, at: StepAt) -> StepEvent {
    let plan = &run.definition.plan;
    let step = &plan.steps[at.step as usize];
    let message = plan.team.as_ref().map(|team| why_nobody(team, step)).unwrap_or_default();
    let code = Code::NoMemberFits.to_string();
    StepEvent::Blocked { code, message, placeholder: None, waits: true }
}
