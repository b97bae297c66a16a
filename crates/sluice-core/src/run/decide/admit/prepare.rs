//! Prepares a step for an attempt: inputs, prompt and layers.

use super::bind::{Unfit, prepare_child, prepare_command, prepare_inputs, within_bounds};
use super::layer::add_layers;
use super::lens::{prepare_approval_node, prepare_child_node, prepare_lens};
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Prepared, Provenance, StepAt};
use crate::plan::policy::Family;
use crate::plan::step::Work;
use crate::run::decide::draft::Draft;
use crate::run::decide::origins::Origins;
use crate::run::label::Labels;

/// Binds and renders everything that a step is sent, with the origins of the values.
pub(super) fn prepare(draft: &Draft<'_>, at: StepAt) -> Result<(Prepared, Vec<Provenance>), Unfit> {
    let run = &*draft.run;
    let (step, state) = (run.step(at), run.state(at));
    let mut origins = Origins::new(run);
    let is_node = run.definition.plan.family == Family::Lens;
    let mut prepared = match &step.work {
        Work::Command { command } => prepare_command(run, at, command, &mut origins)?,
        Work::Workflow(work) if is_node => prepare_child_node(run, at, work, &mut origins)?,
        Work::Workflow(work) => prepare_child(run, at, work, &mut origins)?,
        Work::Lens(work) => prepare_lens(run, at, work, &mut origins)?,
        Work::Approval if is_node => prepare_approval_node(run, at, &mut origins)?,
        Work::Approval => prepare_inputs(run, at, &mut origins)?.0,
        Work::Unresolved { what, name } => {
            let message = format!("{what} `{name}` was not at hand when the run was planned");
            return Err(Failure::new(Code::UnresolvedVariable, message).into());
        }
    };
    // The size of a lens node was checked before its contract.
    if !matches!(step.work, Work::Lens(_)) {
        within_bounds(&prepared)?;
    }
    prepared.labels = origins.labels;
    if state.reask {
        if let Some(ending) = &state.failure {
            let note = "Your last answer was not accepted";
            prepared.prompt = format!("{}\n\n{note}: {}", prepared.prompt, ending.message);
        }
        // The message quotes the answer, and so the results of tools.
        if state.used_tools {
            prepared.labels = prepared.labels.with(Labels::of_tools());
        }
    }
    add_layers(draft, at, &mut prepared)?;
    Ok((prepared, origins.found))
}
