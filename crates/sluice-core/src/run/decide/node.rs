//! What a node of a lens document is given: labels bound, templates rendered.

use super::Turn;
use super::bind::{Unfit, within_bounds};
use super::origins::Origins;
use crate::bind::{Bound, Origin, Sources, Wire, bind};
use crate::code::Code;
use crate::contract::InputContract;
use crate::contract::field::ContractField;
use crate::edge::key::OutputKey;
use crate::failure::Failure;
use crate::journal::event::{Prepared, StepAt};
use crate::label::label;
use crate::plan::policy::OnParentFailure;
use crate::plan::step::{Edge, LensWork, Step, Work, WorkflowWork};
use crate::run::scope::RunScope;
use crate::status::StepStatus;
use crate::template::Template;
use crate::template::lens::{LensTemplate, Placeholder, Unbound};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The labels of a node.
struct Labels {
    bound: BTreeMap<String, Bound>,
    /// Whether a wired label may be without a value: under `substitute_default`, or
    /// where an edge of the node is satisfied. The label's own edges then brought
    /// nothing because of a condition or a skipped parent (a branch that was not
    /// taken): a failed parent would have ended the node before.
    may_lack: bool,
}

impl Labels {
    fn values(&self) -> BTreeMap<String, Value> {
        self.bound.iter().map(|(name, one)| (name.clone(), one.value.clone())).collect()
    }
}

impl Turn<'_> {
    /// Binds the labels of a node.
    fn labels(&self, at: StepAt, overrides: &Map<String, Value>) -> Result<Labels, Failure> {
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
        let mut bound = bind(&Sources { root, wires: &wires, merge: step.merge, overrides });
        let substitutes = step.on_parent_failure == OnParentFailure::SubstituteDefault;
        if substitutes {
            self.substitute(step, &mut bound);
        }
        let may_lack = substitutes || wires.iter().any(|wire| wire.value.is_some());
        Ok(Labels { bound, may_lack })
    }

    /// "" stands in for what edges from failed sources would carry, unless their
    /// label has a value from another source.
    fn substitute(&self, step: &Step, bound: &mut BTreeMap<String, Bound>) {
        let labelled = |edge: &Edge| !edge.target_param_label.trim().is_empty();
        let failed = (0..).zip(&step.edges).filter(|(_, edge)| labelled(edge));
        let failed = failed.filter(|(_, edge)| self.source_failed(edge));
        let mut gone: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, edge) in failed {
            gone.entry(label(&edge.target_param_label)).or_default().push(place);
        }
        for (name, wires) in gone {
            let origin = Origin::Edges { wires, strategy: None };
            bound.entry(name).or_insert(Bound { value: "".into(), origin });
        }
    }

    /// Notes where the value of a label comes from.
    fn note_bound(
        &self,
        step: &Step,
        (name, one): (&str, &Bound),
        target: &str,
        origins: &mut Origins<'_>,
    ) {
        match &one.origin {
            Origin::Edges { wires, strategy } => {
                for place in wires {
                    let merged = strategy.map(|strategy| strategy.as_str().to_owned());
                    origins.note_edge(&step.edges[*place], target, merged);
                }
            }
            Origin::Root => {
                let root = &self.run.started.args;
                let written = root.keys().find(|key| label(key) == name);
                let written = written.map_or(name, String::as_str);
                origins.note_caller(&format!("args.{written}"), target);
            }
            Origin::Override => {}
        }
    }

    /// The labels of a node by name, as the summary of its approval reads them.
    pub(super) fn label_names(&self, at: StepAt) -> Result<Map<String, Value>, Failure> {
        let step = self.run.step(at);
        let none = Map::new();
        let overrides = match &step.work {
            Work::Lens(work) => &work.param_overrides,
            _ => &none,
        };
        let labels = self.labels(at, overrides)?;
        let mut names: Map<String, Value> = labels.values().into_iter().collect();
        for edge in step.edges.iter().filter(|_| labels.may_lack) {
            names.entry(label(&edge.target_param_label)).or_insert_with(|| "".into());
        }
        Ok(names)
    }

    /// Notes what the summary of an approval reads beside the node's labels.
    fn note_summary(&self, step: &Step, labels: &Labels, origins: &mut Origins<'_>) {
        let summary = step.approval.as_ref().and_then(|asked| asked.summary.as_ref());
        let references = summary.into_iter().flat_map(Template::references);
        for reference in references {
            if !labels.bound.contains_key(reference.path.head()) {
                origins.note(&reference.path, "summary", None);
            }
        }
    }

    pub(super) fn prepare_lens(
        &self,
        at: StepAt,
        work: &LensWork,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Unfit> {
        let step = self.run.step(at);
        let labels = self.labels(at, &work.param_overrides)?;
        for (name, one) in &labels.bound {
            self.note_bound(step, (name, one), name, origins);
        }
        self.note_summary(step, &labels, origins);
        let contract = work.input_contract.as_ref();
        let strangers = contract.map(|contract| strangers(contract, step, &labels.bound));
        let values = labels.values();
        // What has no value at all blocks, whatever the contract would say of it.
        let field = |name: &str| {
            let fields = contract.iter().flat_map(|contract| &contract.fields);
            fields.into_iter().find(|(field, _)| label(field) == name).map(|(_, field)| field)
        };
        let declared = |name: &str| field(name).is_some() || is_wired(step, name);
        let optional = |name: &str| {
            field(name).is_some_and(|field| !field.required)
                || (labels.may_lack && is_wired(step, name))
        };
        let prompt = work.template.render(&values, declared, optional).map_err(blocked)?;
        let inputs = values.into_iter().collect();
        let prepared = Prepared { inputs, prompt, ..Prepared::default() };
        within_bounds(&prepared)?;
        if let (Some(contract), Some(strangers)) = (contract, strangers) {
            check_contract(contract, &prepared.inputs, &strangers)?;
        }
        Ok(prepared)
    }

    /// The arguments of a sub-workflow. An argument that is one placeholder has the
    /// value of its label, with its type; without a value it is left out.
    pub(super) fn prepare_child_of_node(
        &self,
        at: StepAt,
        work: &WorkflowWork,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Unfit> {
        let step = self.run.step(at);
        let labels = self.labels(at, &Map::new())?;
        self.note_summary(step, &labels, origins);
        let values = labels.values();
        let declared = |name: &str| is_wired(step, name);
        let optional = |name: &str| labels.may_lack && is_wired(step, name);
        let fill = |template: &LensTemplate| template.value(&values, declared, optional);
        let mut args = Map::new();
        let mut typed = InputContract::default();
        for (name, tree) in &work.label_args {
            for one in tree.templates().into_iter().flat_map(LensTemplate::placeholders) {
                if let Some(bound) = labels.bound.get(&one.label) {
                    let target = format!("args.{name}");
                    self.note_bound(step, (&one.label, bound), &target, origins);
                }
                typed.fields.extend(typed_field(one));
            }
            let value = tree.fill(&fill).map_err(blocked)?;
            args.extend(value.map(|value| (name.clone(), value)));
        }
        let given: Map<String, Value> =
            values.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        check_contract(&typed, &given, &BTreeSet::new())?;
        Ok(Prepared { inputs: args, ..Prepared::default() })
    }

    /// What a person sees who is asked for an approval or for values: every label of
    /// the node.
    pub(super) fn prepare_question_of_node(
        &self,
        at: StepAt,
        origins: &mut Origins<'_>,
    ) -> Result<Prepared, Unfit> {
        let step = self.run.step(at);
        let labels = self.labels(at, &Map::new())?;
        for (name, one) in &labels.bound {
            self.note_bound(step, (name, one), name, origins);
        }
        self.note_summary(step, &labels, origins);
        let inputs = labels.values().into_iter().collect();
        Ok(Prepared { inputs, ..Prepared::default() })
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
        let (StepStatus::Completed, Some(outcome)) = (state.status(), state.outcome()) else {
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

    fn source_failed(&self, edge: &Edge) -> bool {
        let position = self.run.definition.plan.graph.position(&edge.source);
        position
            .and_then(|position| u32::try_from(position).ok())
            .is_some_and(|position| self.run.counts_as_failed(position))
    }

    fn source_label<'v>(&'v self, edge: &'v Edge) -> &'v str {
        let source = self.run.definition.plan.step(&edge.source);
        source.and_then(|step| step.label.as_deref()).unwrap_or(&edge.source)
    }
}

fn blocked(unbound: Unbound) -> Unfit {
    Unfit::Placeholder { message: unbound.to_string(), label: unbound.label }
}

fn is_wired(step: &Step, name: &str) -> bool {
    step.edges.iter().any(|edge| label(&edge.target_param_label) == name)
}

/// What a placeholder with a type says of its label.
fn typed_field(one: &Placeholder) -> Option<(String, ContractField)> {
    let field = ContractField { required: false, ..ContractField::of(one.kind?) };
    Some((one.label.clone(), field))
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
