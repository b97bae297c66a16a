//! What a step is given: inputs bound, templates rendered, origins noted.

use super::Turn;
use super::origins::{Origins, transform};
use crate::code::Code;
use crate::failure::Failure;
use crate::inputs;
use crate::journal::event::{Prepared, Provenance, StepAt};
use crate::limits::INPUT_BYTES_MAX;
use crate::outputs::Settled;
use crate::plan::policy::Family;
use crate::plan::step::{Work, WorkflowWork};
use crate::run::label::Labels;
use crate::run::scope::RunScope;
use crate::scope::{Found, resolve};
use crate::template::{Reason, Template, Unresolved};
use crate::value::text;
use serde_json::Map;

/// Why a step cannot be given what it needs.
pub(super) enum Unfit {
    /// It fails.
    Failure(Failure),
    /// A contract is broken: that is told first.
    Contract(Failure),
    /// A layer contradicts a stricter one: that is told first.
    Layers(Failure),
    /// A label has no value: the node is blocked.
    Placeholder { label: String, message: String },
}

impl<F: Into<Failure>> From<F> for Unfit {
    fn from(failure: F) -> Unfit {
        Unfit::Failure(failure.into())
    }
}

/// The agent whose instructions are shell scripts.
pub(in crate::run) const SHELL: &str = "shell";

impl Turn<'_> {
    /// Binds and renders everything a step is given.
    pub(super) fn prepare(&self, at: StepAt) -> Result<(Prepared, Vec<Provenance>), Unfit> {
        let step = self.run.step(at);
        let mut origins = Origins::new(self.run);
        let is_node = self.run.definition.plan.family == Family::Lens;
        let mut prepared = match &step.work {
            Work::Command { command } => self.prepare_command(at, command, &mut origins)?,
            Work::Workflow(work) if is_node => {
                self.prepare_child_of_node(at, work, &mut origins)?
            }
            Work::Workflow(work) => self.prepare_child(at, work, &mut origins)?,
            Work::Lens(work) => self.prepare_lens(at, work, &mut origins)?,
            Work::Approval if is_node => self.prepare_question_of_node(at, &mut origins)?,
            Work::Approval => self.prepare_inputs(at, &mut origins)?.0,
            Work::Unresolved { what, name } => {
                let message = format!("{what} `{name}` was not at hand when the run was planned");
                return Err(Failure::new(Code::UnresolvedVariable, message).into());
            }
        };
        // A lens node has a contract, which comes after: its size is known already.
        if !matches!(step.work, Work::Lens(_)) {
            within_bounds(&prepared)?;
        }
        if self.run.state(at).reask
            && let Some(ending) = &self.run.state(at).failure
        {
            let note = "Your last answer was not accepted";
            prepared.prompt = format!("{}\n\n{note}: {}", prepared.prompt, ending.message);
        }
        prepared.labels = origins.labels;
        // What was wrong with an answer repeats parts of it, and so of what tools said.
        if self.run.state(at).reask && self.run.state(at).used_tools {
            prepared.labels = prepared.labels.with(Labels::of_tools());
        }
        self.add_layers(at, &mut prepared)?;
        Ok((prepared, origins.found))
    }

    /// The typed inputs and what is piped in.
    fn prepare_inputs(
        &self,
        at: StepAt,
        origins: &mut Origins<'_>,
    ) -> Result<(Prepared, RunScope<'_>), Failure> {
        let step = self.run.step(at);
        let scope = RunScope::of_step(self.run, &self.args, at);
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
        if let Some(crate::plan::step::Items::From(path)) =
            step.for_each.as_ref().map(|each| &each.items)
        {
            origins.note_item(path, at.item);
        }
        if let Some(summary) = step.approval.as_ref().and_then(|asks| asks.summary.as_ref()) {
            origins.note_all(summary, step, "summary");
        }
        let prepared = Prepared { stdin: stdin.transpose()?, inputs: bound, ..Prepared::default() };
        let scope = scope.with_locals(&prepared.inputs);
        Ok((prepared, scope))
    }

    fn prepare_command(
        &self,
        at: StepAt,
        command: &Template,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Failure> {
        let (mut prepared, scope) = self.prepare_inputs(at, origins)?;
        let step = self.run.step(at);
        origins.note_all(command, step, "command");
        if self.run.agent_of(at.step) == Some(SHELL) {
            let shell = command.shell().map_err(|faults| {
                let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
                Failure::new(Code::UnresolvedVariable, told.join("; "))
            })?;
            prepared.env = shell.render_env(&scope)?;
            prepared.env.extend(step.env.iter().map(|(name, value)| (name.clone(), value.clone())));
            prepared.prompt = shell.script;
        } else {
            prepared.prompt = command.render(&scope)?;
        }
        Ok(prepared)
    }

    fn prepare_child(
        &self,
        at: StepAt,
        work: &WorkflowWork,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Failure> {
        let (mut prepared, scope) = self.prepare_inputs(at, origins)?;
        let mut args = Map::new();
        for (name, tree) in &work.args {
            for template in tree.templates() {
                origins.note_all(template, self.run.step(at), &format!("args.{name}"));
            }
            args.insert(name.clone(), tree.value(&scope)?);
        }
        prepared.inputs = args;
        Ok(prepared)
    }
}

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
