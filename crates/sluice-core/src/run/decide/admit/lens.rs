//! The inputs of a lens node: labels bound, templates rendered.

use super::bind::{Unfit, within_bounds};
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
use crate::run::decide::origins::Origins;
use crate::run::scope::RunScope;
use crate::run::state::Run;
use crate::status::StepStatus;
use crate::template::Template;
use crate::template::lens::{LensTemplate, Placeholder, Unbound};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The labels of a node.
struct Labels {
    bound: BTreeMap<String, Bound>,
    /// Whether a wired label may lack a value: under `substitute_default`, or where some
    /// edge of the node is satisfied. The edges of the label itself then carry nothing
    /// because of a condition or a skipped parent; a failed parent would already have
    /// failed the node.
    may_lack: bool,
}

impl Labels {
    fn label_values(&self) -> BTreeMap<String, Value> {
        self.bound.iter().map(|(name, one)| (name.clone(), one.value.clone())).collect()
    }
}

/// Binds the labels of a node.
fn labels(run: &Run, at: StepAt, overrides: &Map<String, Value>) -> Result<Labels, Failure> {
    let step = run.step(at);
    let scope = RunScope::of_step(run, at);
    let mut wires = Vec::with_capacity(step.edges.len());
    for edge in &step.edges {
        let value = edge_value(run, edge, &scope)?;
        wires.push(Wire {
            label: &edge.target_param_label,
            source_label: source_label(run, edge),
            value,
            strategy: edge.merge_strategy,
        });
    }
    let root = &run.started.args;
    let mut bound = bind(&Sources { root, wires: &wires, merge: step.merge, overrides });
    let substitutes = step.on_parent_failure == OnParentFailure::SubstituteDefault;
    if substitutes {
        substitute(run, step, &mut bound);
    }
    let may_lack = substitutes || wires.iter().any(|wire| wire.value.is_some());
    Ok(Labels { bound, may_lack })
}

/// Binds "" to the labels of edges from failed sources that have no other value.
fn substitute(run: &Run, step: &Step, bound: &mut BTreeMap<String, Bound>) {
    let labelled = |edge: &Edge| !edge.target_param_label.trim().is_empty();
    let failed = (0..).zip(&step.edges).filter(|(_, edge)| labelled(edge));
    let failed = failed.filter(|(_, edge)| source_failed(run, edge));
    let mut gone: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, edge) in failed {
        gone.entry(label(&edge.target_param_label)).or_default().push(place);
    }
    for (name, wires) in gone {
        let origin = Origin::Edges { wires, strategy: None };
        bound.entry(name).or_insert(Bound { value: "".into(), origin });
    }
}

/// Notes the origin of the value of a label.
fn note_bound(
    run: &Run,
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
            let root = &run.started.args;
            let written = root.keys().find(|key| label(key) == name);
            let written = written.map_or(name, String::as_str);
            origins.note_caller(written, target);
        }
        Origin::Override => {}
    }
}

/// The labels of a node by name, for the summary of its approval.
pub(super) fn label_names(run: &Run, at: StepAt) -> Result<Map<String, Value>, Failure> {
    let step = run.step(at);
    let none = Map::new();
    let overrides = match &step.work {
        Work::Lens(work) => &work.param_overrides,
        _ => &none,
    };
    let labels = labels(run, at, overrides)?;
    let mut names: Map<String, Value> = labels.label_values().into_iter().collect();
    for edge in step.edges.iter().filter(|_| labels.may_lack) {
        names.entry(label(&edge.target_param_label)).or_insert_with(|| "".into());
    }
    Ok(names)
}

/// Notes the origins of the values that only the summary of the approval reads.
fn note_summary(step: &Step, labels: &Labels, origins: &mut Origins<'_>) {
    let summary = step.approval.as_ref().and_then(|approval| approval.summary.as_ref());
    let references = summary.into_iter().flat_map(Template::references);
    for reference in references {
        if !labels.bound.contains_key(reference.path.head()) {
            origins.note(&reference.path, "summary", None);
        }
    }
}

pub(super) fn prepare_lens(
    run: &Run,
    at: StepAt,
    work: &LensWork,
    origins: &mut Origins<'_>,
) -> Result<Prepared, Unfit> {
    let step = run.step(at);
    let labels = labels(run, at, &work.param_overrides)?;
    for (name, one) in &labels.bound {
        note_bound(run, step, (name, one), name, origins);
    }
    note_summary(step, &labels, origins);
    let contract = work.input_contract.as_ref();
    let undeclared = contract.map(|contract| undeclared(contract, step, &labels.bound));
    let values = labels.label_values();
    // A label without any value blocks, even if the contract does not require it.
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
    if let (Some(contract), Some(undeclared)) = (contract, undeclared) {
        check_contract(contract, &prepared.inputs, &undeclared)?;
    }
    Ok(prepared)
}

/// Binds the arguments of a sub-workflow. An argument that is a single placeholder has
/// the value and type of its label, and is left out if the label has no value.
pub(super) fn prepare_child_node(
    run: &Run,
    at: StepAt,
    work: &WorkflowWork,
    origins: &mut Origins<'_>,
) -> Result<Prepared, Unfit> {
    let step = run.step(at);
    let labels = labels(run, at, &Map::new())?;
    note_summary(step, &labels, origins);
    let values = labels.label_values();
    let declared = |name: &str| is_wired(step, name);
    let optional = |name: &str| labels.may_lack && is_wired(step, name);
    let fill = |template: &LensTemplate| template.value(&values, declared, optional);
    let mut args = Map::new();
    let mut typed = InputContract::default();
    for (name, tree) in &work.label_args {
        for one in tree.templates().into_iter().flat_map(LensTemplate::placeholders) {
            if let Some(bound) = labels.bound.get(&one.label) {
                let target = format!("args.{name}");
                note_bound(run, step, (&one.label, bound), &target, origins);
            }
            typed.fields.extend(typed_field(one));
        }
        let value = tree.fill(&fill).map_err(blocked)?;
        args.extend(value.map(|value| (name.clone(), value)));
    }
    let given: Map<String, Value> = values.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    check_contract(&typed, &given, &BTreeSet::new())?;
    Ok(Prepared { inputs: args, ..Prepared::default() })
}

/// Binds every label of an approval node: the approver sees them.
pub(super) fn prepare_approval_node(
    run: &Run,
    at: StepAt,
    origins: &mut Origins<'_>,
) -> Result<Prepared, Unfit> {
    let step = run.step(at);
    let labels = labels(run, at, &Map::new())?;
    for (name, one) in &labels.bound {
        note_bound(run, step, (name, one), name, origins);
    }
    note_summary(step, &labels, origins);
    let inputs = labels.label_values().into_iter().collect();
    Ok(Prepared { inputs, ..Prepared::default() })
}

/// The value that an edge carries: none if its source did not complete or its condition is
/// false.
pub(crate) fn edge_value<'v>(
    run: &'v Run,
    edge: &Edge,
    scope: &RunScope<'_>,
) -> Result<Option<Cow<'v, Value>>, Failure> {
    let position = run.definition.plan.graph.position(&edge.source);
    let Some(state) = position.map(|position| &run.steps[position]) else {
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

fn source_failed(run: &Run, edge: &Edge) -> bool {
    let position = run.definition.plan.graph.position(&edge.source);
    position
        .and_then(|position| u32::try_from(position).ok())
        .is_some_and(|position| run.counts_as_failed(position))
}

fn source_label<'v>(run: &'v Run, edge: &'v Edge) -> &'v str {
    let source = run.definition.plan.step(&edge.source);
    source.and_then(|step| step.label.as_deref()).unwrap_or(&edge.source)
}

fn blocked(unbound: Unbound) -> Unfit {
    Unfit::Placeholder { message: unbound.to_string(), label: unbound.label }
}

fn is_wired(step: &Step, name: &str) -> bool {
    step.edges.iter().any(|edge| label(&edge.target_param_label) == name)
}

/// The contract of a placeholder with a type.
fn typed_field(one: &Placeholder) -> Option<(String, ContractField)> {
    let field = ContractField { required: false, ..ContractField::of(one.kind?) };
    Some((one.label.clone(), field))
}

/// Root inputs that a strict contract does not declare. Every node sees all root inputs,
/// and in a node with edges not all of them are meant for the node.
fn undeclared(
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
    undeclared: &BTreeSet<String>,
) -> Result<(), Unfit> {
    let own = inputs.iter().filter(|(name, _)| !undeclared.contains(*name));
    let violations = contract.check(own.map(|(name, value)| (name.as_str(), value)));
    match Failure::of(Code::InputContractViolation, violations) {
        Some(failure) => Err(Unfit::Contract(failure)),
        None => Ok(()),
    }
}
