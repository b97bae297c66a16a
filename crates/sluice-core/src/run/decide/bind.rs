//! What a step is given: inputs bound, templates rendered, origins noted.

use super::Turn;
use super::origins::{Origins, transform};
use crate::bind::{Bound, Origin, Sources, Wire, bind};
use crate::code::Code;
use crate::contract::InputContract;
use crate::edge::key::OutputKey;
use crate::failure::Failure;
use crate::inputs;
use crate::journal::event::{Prepared, Provenance, StepAt};
use crate::label::label;
use crate::limits::INPUT_BYTES_MAX;
use crate::outputs::Settled;
use crate::plan::policy::OnParentFailure;
use crate::plan::step::{Edge, LensWork, Step, Work, WorkflowWork};
use crate::run::label::Labels;
use crate::run::scope::RunScope;
use crate::run::status::StepStatus;
use crate::scope::{Found, resolve};
use crate::template::{Reason, Template, Unresolved};
use crate::value::text;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

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
        let mut prepared = match &step.work {
            Work::Command { command } => self.prepare_command(at, command, &mut origins)?,
            Work::Workflow(work) => self.prepare_child(at, work, &mut origins)?,
            Work::Lens(work) => self.prepare_lens(at, work, &mut origins)?,
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
            && let Some(ending) = &self.run.state(at).ending
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

    fn prepare_lens(
        &self,
        at: StepAt,
        work: &LensWork,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Unfit> {
        let step = self.run.step(at);
        let scope = RunScope::of_step(self.run, &self.args, at);
        let mut wires = Vec::with_capacity(step.edges.len());
        for edge in &step.edges {
            let value = self.edge_value(edge, &scope)?;
            wires.push(Wire {
                label: &edge.target_param_label,
                source_label: self.source_label(edge),
                value,
                strategy: edge.merge_strategy,
            });
        }
        let root = &self.run.started.args;
        let overrides = &work.param_overrides;
        let sources = Sources { root, wires: &wires, merge: step.merge, overrides };
        let mut bound = bind(&sources);
        let missing = |edge: &&Edge| !bound.contains_key(&label(&edge.target_param_label));
        let gone = step.edges.iter().filter(|edge| self.substitutes(step, edge)).filter(missing);
        for edge in gone.collect::<Vec<_>>() {
            let name = label(&edge.target_param_label);
            origins.note_edge(edge, &name, None);
            let origin = Origin::Edges { wires: Vec::new(), strategy: None };
            bound.insert(name, Bound { value: "".into(), origin });
        }
        for (name, one) in &bound {
            match &one.origin {
                Origin::Edges { wires, strategy } => {
                    for place in wires {
                        let merged = strategy.map(|strategy| strategy.as_str().to_owned());
                        origins.note_edge(&step.edges[*place], name, merged);
                    }
                }
                Origin::Root => {
                    let written = root.keys().find(|key| label(key) == *name).unwrap_or(name);
                    origins.note_caller(&format!("args.{written}"), name);
                }
                Origin::Override => {}
            }
        }
        let contract = work.input_contract.as_ref();
        let strangers = contract.map(|contract| strangers(contract, step, &bound));
        let values: BTreeMap<String, Value> =
            bound.into_iter().map(|(name, one)| (name, one.value)).collect();
        // What has no value at all blocks, whatever the contract would say of it.
        let prompt = render_lens(work, step, &values)?;
        let inputs = values.into_iter().collect();
        let prepared = Prepared { inputs, prompt, ..Prepared::default() };
        within_bounds(&prepared)?;
        if let (Some(contract), Some(strangers)) = (contract, strangers) {
            check_contract(contract, &prepared.inputs, &strangers)?;
        }
        Ok(prepared)
    }

    /// What an edge carries: none if its source did not complete or its condition is false.
    pub(super) fn edge_value<'v>(
        &'v self,
        edge: &Edge,
        scope: &RunScope<'_>,
    ) -> Result<Option<Cow<'v, Value>>, Failure> {
        let position = self.run.definition.plan.graph.position(&edge.source);
        let Some(state) = position.map(|position| &self.run.steps[position]) else {
            return Ok(None);
        };
        let (StepStatus::Completed, Some(outcome)) = (state.status, &state.outcome) else {
            return Ok(None);
        };
        let key = OutputKey::parse(&edge.source_output_key);
        let value = match &outcome.envelope {
            Some(envelope) => key.resolve(envelope),
            None => Cow::Borrowed(&outcome.outputs),
        };
        let holds = match &edge.condition {
            Some(condition) => condition.holds(&value, scope)?,
            None => true,
        };
        Ok(holds.then_some(value))
    }

    /// Whether "" stands in for what an edge from a failed source would carry,
    /// unless its label has a value from elsewhere.
    fn substitutes(&self, step: &Step, edge: &Edge) -> bool {
        let position = self.run.definition.plan.graph.position(&edge.source);
        let failed = position
            .and_then(|position| u32::try_from(position).ok())
            .is_some_and(|position| self.run.counts_as_failed(position));
        failed && step.on_parent_failure == OnParentFailure::SubstituteDefault
    }

    fn source_label<'v>(&'v self, edge: &'v Edge) -> &'v str {
        let source = self.run.definition.plan.step(&edge.source);
        source.and_then(|step| step.label.as_deref()).unwrap_or(&edge.source)
    }
}

/// Root inputs that a strict contract says nothing about. Every node sees all of
/// them; where others feed a node too, what the caller gave is not all for it.
fn strangers(
    contract: &InputContract,
    step: &Step,
    bound: &BTreeMap<String, Bound>,
) -> BTreeSet<String> {
    if !contract.strict || step.edges.is_empty() {
        return BTreeSet::new();
    }
    let declared = |name: &String| {
        let known = |field: &String| label(field) == *name;
        contract.fields.keys().any(known) || contract.require_any_of.iter().flatten().any(known)
    };
    let roots = bound.iter().filter(|(_, one)| one.origin == Origin::Root);
    roots.map(|(name, _)| name).filter(|name| !declared(name)).cloned().collect()
}

fn check_contract(
    contract: &InputContract,
    inputs: &Map<String, Value>,
    strangers: &BTreeSet<String>,
) -> Result<(), Unfit> {
    let own = inputs.iter().filter(|(name, _)| !strangers.contains(*name));
    let violations = contract.check(own.map(|(name, value)| (name.as_str(), value)));
    match Failure::of(Code::InputContractViolation, violations) {
        Some(failure) => Err(Unfit::Contract(failure)),
        None => Ok(()),
    }
}

fn render_lens(
    work: &LensWork,
    step: &Step,
    values: &BTreeMap<String, Value>,
) -> Result<String, Unfit> {
    let field = |name: &str| {
        let fields = work.input_contract.iter().flat_map(|contract| &contract.fields);
        fields.into_iter().find(|(field, _)| label(field) == name).map(|(_, field)| field)
    };
    let wired = |name: &str| step.edges.iter().any(|edge| label(&edge.target_param_label) == name);
    let declared = |name: &str| field(name).is_some() || wired(name);
    let optional = |name: &str| field(name).is_some_and(|field| !field.required);
    let rendered = work.template.render(values, declared, optional);
    rendered.map_err(|unbound| Unfit::Placeholder {
        message: unbound.to_string(),
        label: unbound.label,
    })
}

fn within_bounds(prepared: &Prepared) -> Result<(), Failure> {
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
