//! Shared by all drawings: a label for each step, an arrow for each dependency.

use sluice_core::edge::test::Test;
use sluice_core::plan::step::{EdgeCondition, Step, Work};
use sluice_core::plan::{Phase, Plan};
use sluice_core::visible;
use std::collections::{BTreeMap, BTreeSet};

/// Longest condition shown in a drawing, in characters.
const CONDITION_CHARS_MAX: usize = 60;

/// An arrow from a step to a dependent one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The condition; empty for an arrow without a condition.
    pub(super) condition: Option<String>,
}

/// All arrows, in document order of their targets. Edges between the same steps with the same
/// condition are one arrow.
pub(super) fn arrows(plan: &Plan) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for (to, step) in plan.steps.iter().enumerate() {
        let mut conditions: BTreeMap<&str, BTreeSet<Option<String>>> = BTreeMap::new();
        for edge in &step.edges {
            let condition = edge.condition.as_ref().map(condition);
            conditions.entry(&edge.source).or_default().insert(condition);
        }
        for from in plan.graph.dependencies(to).iter().map(|from| *from as usize) {
            let between = conditions.remove(plan.steps[from].id.as_str());
            let between = between.unwrap_or_else(|| BTreeSet::from([None]));
            arrows.extend(between.into_iter().map(|condition| Arrow { from, to, condition }));
        }
    }
    arrows
}

pub(super) struct Group<'p> {
    pub(super) phase: Option<&'p Phase>,
    pub(super) steps: Vec<(usize, &'p Step)>,
}

/// The steps by phase, in the document's order; those without a phase come first.
/// A phase without steps is not drawn.
pub(super) fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let phases = std::iter::once(None).chain(plan.phases.iter().map(Some));
    let groups = phases.map(|phase| {
        let id = phase.map(|phase| phase.id.as_str());
        let steps = plan.steps.iter().enumerate();
        Group { phase, steps: steps.filter(|(_, step)| step.phase.as_deref() == id).collect() }
    });
    groups.filter(|group| !group.steps.is_empty()).collect()
}

/// The condition of an edge, in a few words.
pub(super) fn condition(condition: &EdgeCondition) -> String {
    let text = match condition {
        EdgeCondition::Test(Test::Equals(value)) => format!("equals {value}"),
        EdgeCondition::Test(Test::Contains(value)) => format!("contains {value}"),
        EdgeCondition::Test(Test::Present) => "present".to_owned(),
        EdgeCondition::Test(Test::Truthy) => "truthy".to_owned(),
        EdgeCondition::Expression { expr } => format!("if {}", one_line(expr.source())),
    };
    visible::clipped(&text, CONDITION_CHARS_MAX).into_owned()
}

/// The work of a step, in a few words: `command by analyst`.
pub(super) fn does(step: &Step) -> String {
    let work = match &step.work {
        Work::Workflow(work) => match work.version {
            Some(version) => format!("workflow {}@{version}", work.name),
            None => format!("workflow {}", work.name),
        },
        Work::Lens(lens) => format!("{} lens {}@{}", lens.lens_kind, lens.lens_id, lens.version_id),
        Work::Unresolved { what, name } => {
            format!("unresolved {} {name}", what.as_str().replace('_', " "))
        }
        Work::Approval | Work::Command { .. } => step.work.kind().to_owned(),
    };
    let by = match (&step.agent, &step.role) {
        (Some(agent), Some(role)) => format!(" by {agent} as {role}"),
        (Some(agent), None) => format!(" by {agent}"),
        (None, Some(role)) => format!(" as {role}"),
        (None, None) => String::new(),
    };
    visible::brief(&(work + &by)).into_owned()
}

/// The name and the work of a step, on two lines.
pub(super) fn label(step: &Step) -> Vec<String> {
    let mut lines = vec![step.id.clone()];
    lines.extend(step.label.as_ref().filter(|label| **label != step.id).cloned());
    lines.push(does(step));
    if let Some(condition) = &step.condition {
        lines.push(format!("if {}", one_line(condition.source())));
    }
    if step.for_each.is_some() {
        lines.push("for each item".to_owned());
    }
    let clip = |line: String| visible::clipped(&line, CONDITION_CHARS_MAX).into_owned();
    lines.into_iter().map(clip).collect()
}

/// Collapses white space.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
