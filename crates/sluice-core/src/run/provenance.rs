//! Value flows: which step read which value from which step.
//!
//! The journal of the run that read a value records the flow. Flows into invalidated steps are
//! left out.

use super::state::Run;
use crate::id::RunId;
use crate::journal::event::{Endorsed, Event, Provenance, StepEvent};
use crate::origin::FlowLabels;
use std::collections::{BTreeMap, BTreeSet};

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    /// The run that the step belongs to.
    pub run: RunId,
    /// The step, as the projection names it; empty for the whole run.
    pub node: String,
}

/// A value that one step read from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueFlow {
    /// The step that the value comes from.
    pub source: StepRef,
    /// Path within the outputs of the source, or within its arguments.
    pub source_output_path: String,
    /// The step that read it.
    pub target: StepRef,
    /// Path within the inputs or outputs of the target.
    pub target_input_path: String,
    /// The transformation between the two.
    pub transform: Option<String>,
    /// The named labels of the value, where it was read.
    pub labels: FlowLabels,
}

/// The value flows of one journal, collected event by event.
#[derive(Debug, Default)]
pub struct ValueFlows {
    found: Vec<(u32, ValueFlow)>,
    /// The last endorsement of an output, by step and output.
    endorsed: BTreeMap<(String, String), String>,
}

impl ValueFlows {
    /// Adds the next event. `run` is any later state of the run.
    pub fn add(&mut self, run: &Run, event: &Event) {
        match event {
            Event::Step(at, StepEvent::Provenance(from)) => {
                let source = from.source_run.unwrap_or(run.id);
                let id = &run.step(*at).id;
                // Built here, because the instance may have been invalidated since.
                let node = at.item.map_or_else(|| id.clone(), |item| format!("{id}[{item}]"));
                let flow = ValueFlow {
                    source: StepRef { run: source, node: from.source_node.clone() },
                    source_output_path: from.source_output_path.clone(),
                    target: StepRef { run: run.id, node },
                    target_input_path: from.target_input_path.clone(),
                    transform: self.with_endorsement(from),
                    labels: run.provenance_labels(*at, from),
                };
                self.found.push((at.step, flow));
            }
            Event::Step(at, StepEvent::Endorsed(endorsed)) => {
                let Endorsed { output, origins, approval } = &**endorsed;
                let by = approval.map_or_else(|| "declared".to_owned(), |by| format!("by {by}"));
                let text = format!("endorsed: {} ({by})", origins.join(", "));
                self.endorsed.insert((run.step(*at).id.clone(), output.clone()), text);
            }
            Event::Step(at, StepEvent::Invalidated) => {
                self.found.retain(|(step, _)| *step != at.step);
            }
            _ => {}
        }
    }

    /// The transformation of a value, with the endorsement of the output that it is read from.
    fn with_endorsement(&self, from: &Provenance) -> Option<String> {
        let path = from.source_output_path.trim_start_matches("outputs.");
        let output = path.split(['.', '[']).next().unwrap_or_default();
        let key = (from.source_node.clone(), output.to_owned());
        let endorsed = self.endorsed.get(&key).filter(|_| from.source_run.is_none());
        let parts: Vec<&str> =
            endorsed.into_iter().chain(&from.transform).map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Every flow once, in the order of the journal.
    pub fn finish(self) -> Vec<ValueFlow> {
        let mut seen = BTreeSet::new();
        let flows = self.found.into_iter().map(|(_, flow)| flow);
        flows.filter(|flow| seen.insert(flow.clone())).collect()
    }
}

/// A step that a trace of a value passes, and the part of it that matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracePoint {
    /// The step that the trace passes.
    pub step: StepRef,
    /// The part of it that matters.
    pub side: Side,
}

/// The part of a step that a trace follows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// All of it.
    All,
    /// One argument that it passes to its child run: `args.x`.
    Arg(String),
    /// Its outputs. Those of a sub-workflow step come from the outputs of its child run, and
    /// depend on its arguments only through that run.
    Outputs,
}

impl TracePoint {
    /// A point that follows all inputs and outputs of the step.
    pub fn whole(step: StepRef) -> TracePoint {
        TracePoint { step, side: Side::All }
    }

    /// The source of a flow, and the part that the value comes from.
    pub fn before(flow: &ValueFlow) -> TracePoint {
        let side = arg(&flow.source_output_path).map_or(Side::Outputs, Side::Arg);
        TracePoint { step: flow.source.clone(), side }
    }

    /// The target of a flow, and the part that the value goes to.
    pub fn after(flow: &ValueFlow) -> TracePoint {
        let is_output = flow.target_input_path.starts_with("outputs");
        let side = if is_output { Side::Outputs } else { Side::All };
        let side = arg(&flow.target_input_path).map_or(side, Side::Arg);
        TracePoint { step: flow.target.clone(), side }
    }

    /// Whether a flow goes to this part of the step.
    pub fn is_fed_by(&self, flow: &ValueFlow) -> bool {
        let passed = arg(&flow.target_input_path);
        let matters = match &self.side {
            Side::All => true,
            Side::Arg(arg) => passed.as_ref() == Some(arg),
            Side::Outputs => passed.is_none(),
        };
        matters && overlap(&self.step, &flow.target)
    }

    /// Whether a flow comes from this part of the step.
    pub fn feeds(&self, flow: &ValueFlow) -> bool {
        let matters = match (arg(&flow.source_output_path), &self.side) {
            (None, _) | (Some(_), Side::All) => true,
            (Some(passed), Side::Arg(arg)) => passed == *arg,
            (Some(_), Side::Outputs) => false,
        };
        matters && overlap(&self.step, &flow.source)
    }
}

/// Whether one step contains the other: a `for_each` step contains its instances, and a whole
/// run contains all its steps.
fn overlap(one: &StepRef, other: &StepRef) -> bool {
    let step = |node: &str| node.split_once('[').map(|(step, _)| step.to_owned());
    one.run == other.run
        && (one.node == other.node
            || one.node.is_empty()
            || step(&one.node).is_some_and(|step| step == other.node)
            || step(&other.node).is_some_and(|step| step == one.node))
}

/// The argument `args.x` of a path to it or into it.
fn arg(path: &str) -> Option<String> {
    let name = path.strip_prefix("args.")?;
    let end = name.find(['.', '[']).unwrap_or(name.len());
    Some(format!("args.{}", &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step_ref(run: u128, node: &str) -> StepRef {
        StepRef { run: RunId(run), node: node.to_owned() }
    }

    fn flow(source: StepRef, path: &str, target: StepRef, input: &str) -> ValueFlow {
        ValueFlow {
            source,
            source_output_path: path.to_owned(),
            target,
            target_input_path: input.to_owned(),
            transform: None,
            labels: FlowLabels::default(),
        }
    }

    #[test]
    fn an_argument_is_followed_alone() {
        let passed = flow(step_ref(1, "a"), "x", step_ref(1, "call"), "args.one");
        let other = flow(step_ref(1, "b"), "x", step_ref(1, "call"), "args.two");
        let read = flow(step_ref(1, "call"), "args.one.deep", step_ref(2, "c"), "command");
        let up = TracePoint::before(&read);
        assert!(up.is_fed_by(&passed) && !up.is_fed_by(&other));
        assert!(TracePoint::after(&passed).feeds(&read));
        assert!(!TracePoint::after(&other).feeds(&read));
        assert!(TracePoint::whole(step_ref(1, "call")).feeds(&read));
        let outputs = flow(step_ref(1, "call"), "outputs.n", step_ref(1, "d"), "command");
        assert!(TracePoint::after(&passed).feeds(&outputs));
        // Outputs do not flow into the arguments.
        let back = flow(step_ref(2, "c"), "n", step_ref(1, "call"), "outputs.n");
        assert!(!TracePoint::after(&back).feeds(&read) && TracePoint::after(&back).feeds(&outputs));
        let made = TracePoint::before(&outputs);
        assert!(made.is_fed_by(&back) && !made.is_fed_by(&passed));
    }

    #[test]
    fn a_step_is_all_its_instances_but_they_are_not_each_other() {
        let first = flow(step_ref(1, "a"), "x", step_ref(1, "each[0]"), "item");
        assert!(TracePoint::whole(step_ref(1, "each")).is_fed_by(&first));
        assert!(TracePoint::whole(step_ref(1, "each[0]")).is_fed_by(&first));
        assert!(!TracePoint::whole(step_ref(1, "each[1]")).is_fed_by(&first));
        assert!(!TracePoint::whole(step_ref(2, "each")).is_fed_by(&first));
        let all = flow(step_ref(1, "each"), "outputs.items", step_ref(1, "join"), "command");
        assert!(TracePoint::whole(step_ref(1, "each[1]")).feeds(&all));
    }
}
