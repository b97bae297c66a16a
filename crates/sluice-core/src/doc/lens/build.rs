//! Builds the plan of a lens document without errors.

use super::pin::Applied;
use super::written::{ConditionDoc, ConditionType, EdgeDoc, LensDocument, NodeDoc, VersionDoc};
use crate::contract::InputContract;
use crate::contract::field::ContractField;
use crate::doc::leaf::WholeNumber;
use crate::doc::team::{self, TeamField};
use crate::doc::{names, shared};
use crate::edge::test::Test;
use crate::label::label;
use crate::limits::{MAX_PARALLEL_DEFAULT, NODE_TIMEOUT_MS_DEFAULT, STEP_TIMEOUT_MS_DEFAULT};
use crate::plan::graph::Graph;
use crate::plan::policy::{
    Family, Moderation, OnParentFailure, ParallelFailure, Scheduling, Sought,
};
use crate::plan::step::{Approval, Edge, EdgeCondition, LensWork, Step, Work, WorkflowWork};
use crate::plan::{Plan, Recovery, Team};
use crate::template::lens::LensTemplate;
use crate::template::tree::LabelTree;
use indexmap::IndexMap;
use sluice_govern::registry::LensKind;
use std::collections::BTreeSet;

pub(super) fn plan(document: &LensDocument, versions: &[Applied<'_>], graph: Graph) -> Plan {
    let nodes = document.nodes();
    let team = document.team.clone().map(TeamField::into_team);
    let shared = team.as_ref();
    let steps = nodes.iter().zip(versions).map(|(node, version)| step(node, *version, shared));
    let steps: Vec<Step> = steps.collect();
    let outputs = document.outputs.clone().unwrap_or_default();
    let mut plan = Plan {
        family: Family::Lens,
        name: document.name.clone().map(|name| name.value).unwrap_or_default(),
        version: document.version.map(|version| version.0),
        description: document.description.clone(),
        args: document.args.clone().unwrap_or_default().into_map(|arg| arg.0),
        roles: IndexMap::new(),
        phases: Vec::new(),
        default_model: document.default_model.clone(),
        max_cost: document.budget.as_ref().and_then(|budget| budget.max_cost_cents),
        timeout_ms: document.timeout.map(|timeout| timeout.0),
        max_parallel: document.max_parallel.map_or(MAX_PARALLEL_DEFAULT, WholeNumber::small),
        scheduling: document.scheduling.unwrap_or(Scheduling::Eager),
        recovery: document.recovery.clone().map(Recovery::from),
        outputs: outputs.into_map(|output| output.value),
        team,
        steps,
        graph,
    };
    let taken: BTreeSet<&str> = document
        .edges()
        .iter()
        .filter_map(|edge| edge.id.as_ref())
        .map(|id| id.value.as_str())
        .collect();
    for (index, edge) in document.edges().iter().enumerate() {
        let target = edge.target_node_id.as_ref().and_then(|id| plan.graph.position(&id.value));
        let target = target.expect("an edge without errors ends at a node");
        plan.steps[target].edges.push(plan_edge(index, edge, &taken));
    }
    for (step, node) in plan.steps.iter_mut().zip(nodes) {
        let written = node.config.as_ref().is_some_and(|config| config.args.is_some());
        if let (Work::Workflow(work), false) = (&mut step.work, written) {
            work.label_args = wired_args(&step.edges);
        }
    }
    shared::order_dependencies(&mut plan);
    plan
}

/// The arguments of a sub-workflow without `args`: the values wired to its node.
fn wired_args(edges: &[Edge]) -> IndexMap<String, LabelTree> {
    let mut args = IndexMap::new();
    let mut seen = BTreeSet::new();
    for written in edges.iter().map(|edge| edge.target_param_label.trim()) {
        let name = label(written);
        if name.is_empty() || !seen.insert(name.clone()) {
            continue;
        }
        let Ok(template) = LensTemplate::parse(&format!("[[{name}]]")) else { continue };
        let name = if names::is_field(written) { written.to_owned() } else { name };
        args.insert(name, LabelTree::Template(template));
    }
    args
}

fn step(node: &NodeDoc, version: Applied<'_>, shared: Option<&Team>) -> Step {
    let config = node.config.clone().unwrap_or_default();
    let human_input = node.human_input().map(|asked| asked.value.clone());
    let asked = human_input.clone().map(Approval::from);
    let approval = asked.or_else(|| node.approval().cloned().map(Approval::from));
    let schema = human_input.and_then(|asked| asked.schema).unwrap_or_default();
    // A sub-workflow has the same default timeout as in a `.lobsterX` step.
    let timeout_ms = match node.workflow() {
        Some(_) => STEP_TIMEOUT_MS_DEFAULT,
        None => NODE_TIMEOUT_MS_DEFAULT,
    };
    let on_failure = config.on_failure.map(|policy| policy.value);
    let on_failure = team::on_failure(on_failure, shared, None);
    Step {
        id: node.id.clone().map(|id| id.value).unwrap_or_default(),
        label: node.label.clone(),
        ordinal: node.ordinal,
        work: work(node, version),
        role: config.role,
        agent: config.agent,
        depends_on: Vec::new(),
        edges: Vec::new(),
        stdin: None,
        condition: None,
        inputs: IndexMap::new(),
        outputs: schema.into_map(|field| field.0),
        success_criteria: Vec::new(),
        timeout_ms: config.timeout_ms.map_or(timeout_ms, |timeout| timeout.0),
        on_failure,
        retry: team::retry(config.retry.map(|retry| retry.value), on_failure, shared),
        parallel_failure_policy: ParallelFailure::WaitAll,
        approval: approval.map(Box::new),
        for_each: None,
        phase: None,
        model: config.model_id,
        tools: config.required_tools.unwrap_or_default(),
        capabilities: Vec::new(),
        required_tier: config.required_tier,
        max_output_tokens: None,
        max_cost: config.max_cost_cents,
        moderation: config.moderation.unwrap_or(Moderation::Off),
        on_parent_failure: config.on_parent_failure.unwrap_or(OnParentFailure::Skip),
        merge: config.merge,
        reask: 0,
        cwd: None,
        env: IndexMap::new(),
        memory: config.memory,
        idempotent: true,
    }
}

fn work(node: &NodeDoc, version: Applied<'_>) -> Work {
    if let Some(reference) = node.workflow() {
        let (name, version) = shared::split_workflow_ref(&reference.value);
        let args = node.config.as_ref().and_then(|config| config.args.clone());
        let label_args = args.map(|args| args.value).unwrap_or_default().into_map(|tree| tree);
        let (args, name) = (IndexMap::new(), name.to_owned());
        return Work::Workflow(Box::new(WorkflowWork { args, label_args, name, version }));
    }
    let Some(lens_id) = node.lens().map(|id| id.value.clone()) else { return Work::Approval };
    let Some((version_id, version)) = version else {
        return Work::Unresolved { what: Sought::Lens, name: lens_id };
    };
    let overrides = node.config.as_ref().and_then(|config| config.param_overrides.clone());
    Work::Lens(Box::new(LensWork {
        lens_id,
        version_id: version_id.to_owned(),
        lens_kind: version.kind.unwrap_or(LensKind::Text),
        template: version.template.clone().expect("a version without errors has a template"),
        input_contract: input_contract(version),
        output_contract: version.output_contract.clone().map(|contract| contract.0),
        param_overrides: overrides
            .unwrap_or_default()
            .into_map(|value| value)
            .into_iter()
            .collect(),
    }))
}

/// The version's input contract, with a field for each typed placeholder that it does not
/// declare.
fn input_contract(version: &VersionDoc) -> Option<InputContract> {
    let mut contract = version.input_contract.clone().map(|contract| contract.0);
    let declared = contract.iter().flat_map(|contract| contract.fields.keys());
    let mut known: BTreeSet<String> = declared.map(|name| label(name)).collect();
    for placeholder in version.template.iter().flat_map(LensTemplate::placeholders) {
        let Some(kind) = placeholder.kind else { continue };
        if !known.insert(placeholder.label.clone()) {
            continue;
        }
        let field = ContractField { required: !placeholder.optional, ..ContractField::of(kind) };
        let contract = contract.get_or_insert_default();
        contract.fields.insert(placeholder.label.clone(), field);
    }
    contract
}

fn plan_edge(index: usize, edge: &EdgeDoc, taken: &BTreeSet<&str>) -> Edge {
    let source_output_key = edge.source_output_key.clone().filter(|key| !key.is_empty());
    Edge {
        id: edge.id.as_ref().map_or_else(|| edge_id(index, taken), |id| id.value.clone()),
        source: edge.source_node_id.clone().map(|id| id.value).unwrap_or_default(),
        source_output_key: source_output_key.unwrap_or_else(|| "output".to_owned()),
        target_param_label: edge.target_param_label.clone().unwrap_or_default(),
        merge_strategy: edge.merge_strategy,
        condition: edge.condition.as_ref().and_then(|condition| edge_condition(&condition.value)),
    }
}

/// The id of an edge without one: its position, with `_` appended until it is unique.
fn edge_id(index: usize, taken: &BTreeSet<&str>) -> String {
    let mut id = format!("edge_{index}");
    while taken.contains(id.as_str()) {
        id.push('_');
    }
    id
}

fn edge_condition(written: &ConditionDoc) -> Option<EdgeCondition> {
    let value = || written.value.clone().map(|value| value.value).unwrap_or_default();
    Some(EdgeCondition::Test(match written.kind?.value {
        ConditionType::Equals => Test::Equals(value()),
        ConditionType::Contains => Test::Contains(value()),
        ConditionType::Present => Test::Present,
        ConditionType::Truthy => Test::Truthy,
        ConditionType::Expression => {
            return Some(EdgeCondition::Expression { expr: written.expr.clone()?.value.0? });
        }
    }))
}
