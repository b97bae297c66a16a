//! The flow of data through one step.

use super::{Builder, Field, Part, Site};
use crate::flow::graph::{Rule, Slot};
use crate::flow::{Destination, Sink};
use crate::plan::policy::Family;
use crate::plan::step::{Items, Step, Work, WorkflowWork};
use crate::template::Template;
use sluice_govern::flow_label::UNKNOWN;

impl<'p> Builder<'p> {
    pub(super) fn connect_step(&mut self, call: u32, at: u32, step: &'p Step) {
        self.connect_inputs(call, at, step);
        self.connect_control(call, at, step);
        if self.calls[call as usize].plan().family == Family::Lens {
            self.connect_labels(call, at, step);
        }
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        match &step.work {
            Work::Approval => self.connect_approval(call, at, step),
            Work::Command { command } => {
                self.read_template(call, at, command, Field::Command);
                self.connect_executor(call, at, step);
            }
            Work::Workflow(work) => self.connect_child(call, at, step, work),
            Work::Lens(_) => self.connect_executor(call, at, step),
            Work::Unresolved { .. } => {
                self.graph.node(slots.answer).own = self.labels.origin(UNKNOWN);
                self.graph.link(slots.read, slots.answer, site(Field::Step));
            }
        }
    }

    /// What the step reads before its work.
    fn connect_inputs(&mut self, call: u32, at: u32, step: &'p Step) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        self.graph.link(slots.control, slots.sent, site(Field::Condition));
        self.graph.link(slots.sent, slots.read, site(Field::Step));
        for (slot, (name, input)) in (slots.inputs..).zip(&step.inputs) {
            // The names of inputs are not known yet.
            for path in &input.from {
                for from in self.sources(call, None, path) {
                    self.graph.link(from, slot, site(Field::Input(name)));
                }
            }
            self.graph.link(slot, slots.sent, site(Field::Input(name)));
        }
        if let Some(path) = &step.stdin {
            for from in self.sources(call, None, path) {
                self.graph.link(from, slots.sent, site(Field::Stdin));
            }
        }
        if let (Some(item), Some(each)) = (slots.item, &step.for_each) {
            if let Items::From(path) = &each.items {
                for from in self.sources(call, None, path) {
                    self.graph.link(from, item, site(Field::ForEach));
                }
            }
            self.graph.link(item, slots.sent, site(Field::ForEach));
            // The source decides how often the step runs.
            self.graph.decide(item, slots.control, site(Field::ForEach));
        }
        let summary = step.approval.as_ref().and_then(|approval| approval.summary.as_ref());
        if let Some(summary) = summary {
            self.read_template(call, at, summary, Field::Summary);
        }
    }

    fn read_template(&mut self, call: u32, at: u32, template: &Template, field: Field<'p>) {
        let to = self.calls[call as usize].steps[at as usize].sent;
        for reference in template.references() {
            for from in self.sources(call, Some(at), &reference.path) {
                self.graph.link(from, to, Site { call, step: Some(at), field });
            }
        }
    }

    /// What decides whether the step runs.
    fn connect_control(&mut self, call: u32, at: u32, step: &'p Step) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        if let Some(condition) = &step.condition {
            for reference in condition.references() {
                for from in self.sources(call, Some(at), &reference.path) {
                    self.graph.decide(from, slots.control, site(Field::Condition));
                }
            }
        }
        let this = &self.calls[call as usize];
        let start = this.start;
        let dependencies = this.plan().graph.dependencies(at as usize);
        let above: Vec<Slot> =
            dependencies.iter().map(|on| this.steps[*on as usize].control).collect();
        if call > 0 {
            self.graph.link(start, slots.control, site(Field::Step));
        }
        if !above.is_empty() {
            let all = self.slot(call, Some(at), Part::Dependencies);
            self.graph.node(all).rule = Rule::All;
            for from in above {
                self.graph.link(from, all, site(Field::DependsOn));
            }
            self.graph.link(all, slots.control, site(Field::DependsOn));
        }
    }

    /// An approval passes on what its approver has seen.
    fn connect_approval(&mut self, call: u32, at: u32, step: &'p Step) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        for (offset, name) in (0..).zip(step.inputs.keys()) {
            let (input, passed) = (slots.inputs + offset, slots.passed + offset);
            self.graph.link(input, passed, site(Field::Input(name)));
            self.graph.link(slots.control, passed, site(Field::Step));
        }
        self.graph.link(slots.read, slots.answer, site(Field::Step));
        // The values that an approver enters tell something about what the approver sees.
        self.connect_outputs(call, at, step, slots.read, Field::Step);
    }

    /// A sub-workflow: its arguments come from the step, and its results become the outputs.
    fn connect_child(&mut self, call: u32, at: u32, step: &'p Step, work: &'p WorkflowWork) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        for (name, tree) in &work.args {
            for template in tree.templates() {
                for reference in template.references() {
                    for from in self.sources(call, Some(at), &reference.path) {
                        self.pass(call, at, name, from);
                    }
                }
            }
        }
        self.sinks.push(Sink {
            call,
            step: at,
            slot: slots.sent,
            destination: Destination::Workflow(&work.name),
            agent: None,
        });
        let Some(child) = slots.child else {
            self.graph.node(slots.answer).own = self.labels.origin(UNKNOWN);
            self.graph.link(slots.read, slots.answer, site(Field::Workflow));
            self.connect_outputs(call, at, step, slots.answer, Field::Workflow);
            return;
        };
        let start = self.calls[child as usize].start;
        self.graph.link(slots.control, start, site(Field::Workflow));
        // Whether there is a result depends on whether the step runs.
        self.graph.link(slots.control, slots.answer, site(Field::Workflow));
        self.connect_outputs(call, at, step, slots.control, Field::Workflow);
        let results = self.calls[child as usize].results.clone();
        for result in results.values() {
            self.graph.link(*result, slots.answer, site(Field::Workflow));
        }
        for (offset, name) in (0..).zip(step.outputs.keys()) {
            let from = results.get(name.as_str()).copied().unwrap_or(slots.answer);
            self.graph.link(from, slots.outputs + offset, site(Field::Output(name)));
        }
    }

    /// Passes data to an argument of a sub-workflow.
    pub(super) fn pass(&mut self, call: u32, at: u32, name: &'p str, from: Slot) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = Site { call, step: Some(at), field: Field::Argument(name) };
        self.graph.link(from, slots.sent, site);
        if let Some(to) = slots.child.and_then(|child| self.argument(child, name)) {
            self.graph.link(from, to, site);
        }
    }

    /// Gives all declared outputs of a step the labels of a slot.
    pub(super) fn connect_outputs(
        &mut self,
        call: u32,
        at: u32,
        step: &'p Step,
        from: Slot,
        field: Field<'p>,
    ) {
        let slots = self.calls[call as usize].steps[at as usize];
        for (offset, (name, ..)) in (0..).zip(super::outputs_of(step)) {
            let field = if field == Field::Step { Field::Output(name) } else { field };
            let site = Site { call, step: Some(at), field };
            self.graph.link(from, slots.outputs + offset, site);
        }
    }
}
