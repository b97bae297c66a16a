//! Binds the inputs of a step and renders its templates, with the origins of the values.

use crate::code::Code;
use crate::failure::Failure;
use crate::inputs;
use crate::journal::event::{Prepared, StepAt};
use crate::limits::INPUT_BYTES_MAX;
use crate::outputs::Settled;
use crate::plan::step::{Items, WorkflowWork};
use crate::run::decide::origins::{Origins, transform};
use crate::run::scope::RunScope;
use crate::run::seat::SHELL;
use crate::run::state::Run;
use crate::scope::{Found, resolve};
use crate::template::{Reason, Template, Unresolved};
use crate::value::text;
use serde_json::Map;

/// Why a step cannot be prepared.
pub(crate) enum Unfit {
    /// The step fails.
    Failure(Failure),
    /// The inputs break their contract: the violation is recorded before the failure.
    Contract(Failure),
    /// A layer contradicts a stricter one: recorded in the same way.
    Layers(Failure),
    /// A label has no value: the step is blocked.
    Placeholder { label: String, message: String },
}

impl<F: Into<Failure>> From<F> for Unfit {
    fn from(failure: F) -> Unfit {
        Unfit::Failure(failure.into())
    }
}

/// Binds the typed inputs and standard input.
pub(super) fn prepare_inputs<'r>(
    run: &'r Run,
    at: StepAt,
    origins: &mut Origins<'_>,
) -> Result<(Prepared, RunScope<'r>), Failure> {
    let step = run.step(at);
    let scope = RunScope::of_step(run, at);
    let Settled { outputs: bound, coercions } = inputs::bind(&step.inputs, step.merge, &scope)?;
    for (name, input) in &step.inputs {
        let merged =
            (input.from.len() > 1).then(|| step.merge.unwrap_or_default().as_str().to_owned());
        let transform = transform(merged, name, &coercions);
        for path in &input.from {
            origins.note(path, &format!("inputs.{name}"), transform.clone());
        }
    }
    let stdin = step.stdin.as_ref().map(|path| {
        origins.note(path, "stdin", None);
        match resolve(path, &scope) {
            Found::Value(value) => Ok(text(&value).into_owned()),
            Found::Skipped => Ok(String::new()),
            Found::Missing => Err(Unresolved { path: path.clone(), reason: Reason::Missing }),
        }
    });
    if let Some(Items::From(path)) = step.for_each.as_ref().map(|each| &each.items) {
        origins.note_item(path, at.item);
    }
    if let Some(summary) = step.approval.as_ref().and_then(|approval| approval.summary.as_ref()) {
        origins.note_all(summary, step, "summary");
    }
    let prepared = Prepared { stdin: stdin.transpose()?, inputs: bound, ..Prepared::default() };
    let scope = scope.with_locals(&prepared.inputs);
    Ok((prepared, scope))
}

pub(super) fn prepare_command(
    run: &Run,
    at: StepAt,
    command: &Template,
    origins: &mut Origins<'_>,
) -> Result<Prepared, Failure> {
    let (mut prepared, scope) = prepare_inputs(run, at, origins)?;
    let step = run.step(at);
    origins.note_all(command, step, "command");
    if run.agent_of(at.step) == Some(SHELL) {
        let shell = command.shell().map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Failure::new(Code::UnresolvedVariable, faults.join("; "))
        })?;
        prepared.env = shell.render_env(&scope)?;
        prepared.env.extend(step.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        prepared.prompt = shell.script;
    } else {
        prepared.prompt = command.render(&scope)?;
    }
    Ok(prepared)
}

pub(super) fn prepare_child(
    run: &Run,
    at: StepAt,
    work: &WorkflowWork,
    origins: &mut Origins<'_>,
) -> Result<Prepared, Failure> {
    let (mut prepared, scope) = prepare_inputs(run, at, origins)?;
    let mut args = Map::new();
    for (name, tree) in &work.args {
        for template in tree.templates() {
            origins.note_all(template, run.step(at), &format!("args.{name}"));
        }
        args.insert(name.clone(), tree.value(&scope)?);
    }
    prepared.inputs = args;
    Ok(prepared)
}

/// Refuses inputs that are too large.
pub(super) fn within_bounds(prepared: &Prepared) -> Result<(), Failure> {
    let bytes = if prepared.inputs.is_empty() {
        0
    } else {
        serde_json::to_vec(&prepared.inputs).map_or(usize::MAX, |bytes| bytes.len())
    };
    let bytes = bytes.saturating_add(prepared.stdin.as_ref().map_or(0, String::len));
    if bytes <= INPUT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the inputs are {bytes} bytes, over the {INPUT_BYTES_MAX} allowed");
    Err(Failure::new(Code::ContextTooLarge, message))
}
