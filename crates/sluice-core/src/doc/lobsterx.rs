//! `.lobsterX` documents: a list of steps that refer to each other.
//!
//! `written` declares the format, `step` reads and checks one step, `check` checks the steps
//! against each other, `build` makes the steps of the plan.

mod advice;
mod build;
mod check;
mod declared_names;
mod library;
mod step;
mod unexpanded;
pub(crate) mod written;

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::WholeNumber;
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::registry::Registry;
use crate::doc::shared;
use crate::doc::team::TeamField;
use crate::limits::{MAX_PARALLEL_DEFAULT, STEPS_MAX};
use crate::node::Node;
use crate::plan::policy::{Family, Scheduling};
use crate::plan::{Phase, Plan, Recovery};
use step::StepDraft;
use written::{Document, PhaseDoc};

/// Step fields that cannot be defaults.
const NO_DEFAULTS: &[&str] = &["id", "library_step"];

/// Reads a document and resolves it to a plan. Returns no plan if there is an error.
pub(crate) fn resolve<'n>(
    root: &'n Node<'n>,
    registry: &'n Registry,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<Plan> {
    let mut document = Document::read(root, cx)?;
    check_top(&document, cx);
    if let Some(team) = &mut document.team {
        cx.within(PathPart::Key("team"), |cx| team.settle(registry, cx));
    }
    let defaults = read_defaults(root, cx);
    let nodes = step_nodes(root, cx)?;
    let mut drafts = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let draft = cx.within(PathPart::Key("steps"), |cx| {
            cx.within(PathPart::Index(index), |cx| step::read(index, node, defaults, registry, cx))
        });
        drafts.extend(draft);
    }
    let graph = check::check(root, &document, &drafts, registry, cx);
    if cx.problems.has_errors() {
        return None;
    }
    let graph = graph.expect("steps without errors have a graph");
    let team = document.team.take().map(TeamField::into_team);
    let steps = drafts.into_iter().map(|draft: StepDraft<'_>| draft.into_step(team.as_ref()));
    let steps: Vec<_> = steps.collect();
    let mut plan = Plan {
        family: Family::Lobsterx,
        name: document.name.take().map(|name| name.value).unwrap_or_default(),
        version: document.version.map(|version| version.0),
        description: document.description.take(),
        args: document.args.take().unwrap_or_default().into_map(|arg| arg.0),
        roles: document.roles.take().unwrap_or_default().into_map(shared::RoleDoc::into_role),
        phases: document.phases.take().unwrap_or_default().into_iter().map(phase).collect(),
        default_model: None,
        max_cost: document.budget.take().and_then(|budget| budget.max_cost_cents),
        timeout_ms: document.timeout.map(|timeout| timeout.0),
        max_parallel: document.max_parallel.map_or(MAX_PARALLEL_DEFAULT, WholeNumber::small),
        scheduling: document.scheduling.unwrap_or(Scheduling::Eager),
        recovery: document.recovery.take().map(Recovery::from),
        outputs: document.outputs.take().unwrap_or_default().into_map(|output| output.value),
        team,
        steps,
        graph,
    };
    shared::order_dependencies(&mut plan);
    Some(plan)
}

fn phase(written: PhaseDoc) -> Phase {
    Phase { id: written.id.value, name: written.name }
}

fn check_top(document: &Document, cx: &mut DocumentReader<'_, '_>) {
    if let Some(name) = &document.name {
        cx.within(PathPart::Key("name"), |cx| names::kebab(&name.value, name.span, cx));
    }
    for (name, _) in document.args.iter().flat_map(|table| &table.0) {
        cx.deeper(&[PathPart::Key("args"), PathPart::Name(name.value.as_str().into())], |cx| {
            names::identifier(&name.value, name.span, cx);
        });
    }
    let phases = document.phases.iter().flatten().map(|phase| &phase.id);
    cx.within(PathPart::Key("phases"), |cx| names::unique("phase", phases, cx));
}

/// The nodes of the steps: a list that is not empty and not too long.
fn step_nodes<'n>(root: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<&'n [Node<'n>]> {
    let node = root.get("steps").filter(|node| !node.is_null())?;
    let nodes = cx.within(PathPart::Key("steps"), |cx| cx.list(node))?;
    let problem = if nodes.is_empty() {
        Problem::new(Code::NoSteps, node.span, "there are no steps")
    } else if nodes.len() > STEPS_MAX {
        let message = format!("there are {} steps; the limit is {STEPS_MAX}", nodes.len());
        Problem::new(Code::TooManySteps, node.span, message)
    } else {
        return Some(nodes);
    };
    cx.within(PathPart::Key("steps"), |cx| cx.add(problem));
    None
}

/// The entries under `defaults`, checked once on their own.
fn read_defaults<'n>(
    root: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) -> &'n [crate::node::Entry<'n>] {
    let Some(node) = root.get("defaults").filter(|node| !node.is_null()) else { return &[] };
    cx.within(PathPart::Key("defaults"), |cx| {
        let entries = cx.map(node).unwrap_or_default();
        let mut unused = written::StepDoc::default();
        for entry in entries {
            if NO_DEFAULTS.contains(&&*entry.key) {
                let message = format!("`{}` cannot be a default", entry.key);
                let problem = Problem::new(Code::BadValue, entry.key_span, message);
                cx.within(PathPart::Key(&entry.key), |cx| cx.add(problem));
            } else {
                unused.read_entry(entry, cx);
            }
        }
        entries
    })
}
