//! Builds the graph of data flow from plans and rows.
//!
//! Every call of a sub-workflow gets slots of its own, so that the data of two callers does not
//! mix. Beyond a limit, and in a recursion, calls share the slots of the workflow: the result
//! then has more labels, never fewer.

mod executor;
mod lens;
mod reference;
mod step;

use super::graph::{Graph, Rule, Slot};
use super::label::Labels;
use super::{FlowDocument, Setting, Sink};
use crate::limits::{FLOW_STEPS_MAX, RECURSION_DEPTH_MAX};
use crate::plan::Plan;
use crate::plan::policy::Family;
use crate::plan::step::{Step, Work};
use executor::Executor;
use indexmap::IndexMap;
use reference::Descendants;
use std::collections::BTreeMap;

/// The origin of arguments that declare none.
const CALLER: &str = "caller";

/// A place that data can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'p> {
    /// The number of the workflow call.
    pub(super) call: u32,
    pub(super) step: Option<u32>,
    pub(super) part: Part<'p>,
}

/// A part of a workflow, a step or the registry that data can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'p> {
    /// An argument of the run.
    Argument(&'p str),
    /// The arguments of a lens run that its document does not declare.
    Arguments,
    /// Whether the run was started under control.
    Start,
    /// A result of the run.
    Result(&'p str),
    /// An input of a step.
    Input(&'p str),
    /// The item of an instance.
    Item,
    /// Everything that a step is sent.
    Sent,
    /// Everything that a step reads: what it is sent, and the answers of its tools.
    Read,
    /// Whether a condition that read an untrusted value decides about the step.
    Control,
    /// Whether all dependencies of the step are under control.
    Dependencies,
    /// An output of a step.
    Output(&'p str),
    /// Everything that a step returns.
    Answer,
    /// The answers of a tool.
    Tool(&'p str),
    /// What an agent and its gateways add to its outputs.
    Agent(&'p str),
    /// What a gateway adds.
    Gateway(&'p str),
    /// A memory profile.
    Memory(&'p str),
    /// A note.
    Note(&'p str),
    /// The continued session of an agent.
    Session(&'p str),
}

/// The part of a document that makes data flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site<'p> {
    pub(super) call: u32,
    pub(super) step: Option<u32>,
    pub(super) field: Field<'p>,
}

/// A field of a step or of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'p> {
    /// The whole step.
    Step,
    Input(&'p str),
    Stdin,
    ForEach,
    Summary,
    Command,
    Condition,
    Argument(&'p str),
    /// The edge at this position of the target's edges.
    Edge(u32),
    DependsOn,
    Memory,
    /// The tool at this position of `tools`.
    Tool(u32),
    Agent,
    Output(&'p str),
    Workflow,
    /// A result of the run.
    Result(&'p str),
}

/// The slots of one step.
#[derive(Debug, Clone, Copy)]
struct StepSlots {
    sent: Slot,
    read: Slot,
    control: Slot,
    answer: Slot,
    item: Option<Slot>,
    /// The first of its inputs, then of its outputs, then of the inputs that an approval
    /// passes on; the others follow.
    inputs: Slot,
    outputs: Slot,
    passed: Slot,
    /// The call of its sub-workflow.
    child: Option<u32>,
}

/// A workflow with its own slots.
#[derive(Debug)]
pub(super) struct Call<'p> {
    pub(super) document: &'p FlowDocument,
    depth: u32,
    arguments: Slot,
    undeclared: Option<Slot>,
    start: Slot,
    results: IndexMap<&'p str, Slot>,
    steps: Vec<StepSlots>,
    /// The steps that set each variable.
    writers: BTreeMap<&'p str, Vec<u32>>,
    descendants: Option<Descendants>,
}

impl<'p> Call<'p> {
    pub(super) fn plan(&self) -> &'p Plan {
        &self.document.definition.plan
    }

    pub(super) fn step(&self, at: u32) -> &'p Step {
        &self.plan().steps[at as usize]
    }

    /// The slot of everything that a step reads.
    pub(super) fn read(&self, at: u32) -> Slot {
        self.steps[at as usize].read
    }

    /// The call of the sub-workflow of a step.
    pub(super) fn child(&self, at: u32) -> Option<u32> {
        self.steps[at as usize].child
    }

    /// The slot of everything that a step returns.
    pub(super) fn answer(&self, at: u32) -> Slot {
        self.steps[at as usize].answer
    }
}

pub(super) struct Builder<'p> {
    pub(super) setting: Setting<'p>,
    pub(super) labels: Labels,
    pub(super) graph: Graph<Place<'p>, Site<'p>>,
    pub(super) calls: Vec<Call<'p>>,
    pub(super) sinks: Vec<Sink<'p>>,
    /// Calls that several callers share, by reference.
    shared: BTreeMap<&'p str, u32>,
    /// The number of steps of all calls.
    steps: usize,
    executors: BTreeMap<executor::Key<'p>, Executor<'p>>,
    memories: BTreeMap<&'p str, Slot>,
    sessions: BTreeMap<(u32, &'p str), Slot>,
    /// The steps of agents whose outputs are remembered, to be linked at the end.
    remembered: Vec<(&'p str, Slot, Site<'p>)>,
}

/// Builds the graph of a document with everything that it refers to.
pub(super) fn build<'p>(main: &'p FlowDocument, setting: Setting<'p>) -> Builder<'p> {
    let mut builder = Builder {
        setting,
        labels: Labels::default(),
        graph: Graph::default(),
        calls: Vec::new(),
        sinks: Vec::new(),
        shared: BTreeMap::new(),
        steps: 0,
        executors: BTreeMap::new(),
        memories: BTreeMap::new(),
        sessions: BTreeMap::new(),
        remembered: Vec::new(),
    };
    builder.add_call(main, 0);
    let mut next = 0;
    while next < builder.calls.len() {
        builder.add_children(next);
        next += 1;
    }
    for call in 0..u32::try_from(builder.calls.len()).expect("calls are bounded") {
        builder.connect(call);
    }
    builder.link_memories();
    builder
}

impl<'p> Builder<'p> {
    /// Makes the slots of a workflow.
    fn add_call(&mut self, document: &'p FlowDocument, depth: u32) -> u32 {
        let number = u32::try_from(self.calls.len()).expect("calls are bounded");
        let plan = &document.definition.plan;
        self.steps += plan.steps.len();
        let arguments = Slot::try_from(self.graph.nodes.len()).expect("slots are bounded");
        for (name, decl) in &plan.args {
            let slot = self.slot(number, None, Part::Argument(name));
            let mut origins: Vec<&str> = decl.origin.iter().map(String::as_str).collect();
            if origins.is_empty() && number == 0 {
                origins.push(CALLER);
            }
            let secrecy = decl.sensitive.iter().map(String::as_str);
            self.graph.node(slot).own = self.labels.set(origins, secrecy);
        }
        // Without declarations, a caller of a lens document passes any inputs.
        let open = plan.args.is_empty() && plan.family == Family::Lens;
        let undeclared = open.then(|| self.slot(number, None, Part::Arguments));
        if let (Some(slot), 0) = (undeclared, number) {
            self.graph.node(slot).own = self.labels.origin(CALLER);
        }
        let start = self.slot(number, None, Part::Start);
        let steps = (0..).zip(&plan.steps);
        let steps = steps.map(|(at, step)| self.add_step(number, at, step)).collect();
        let writers = writers(plan);
        let names = plan.outputs.keys().map(String::as_str);
        let names = names.chain(writers.keys().copied().filter(|_| plan.outputs.is_empty()));
        let names: Vec<&str> = names.collect();
        let results = names.into_iter();
        let results = results.map(|name| (name, self.slot(number, None, Part::Result(name))));
        let results = results.collect();
        self.calls.push(Call {
            document,
            depth,
            arguments,
            undeclared,
            start,
            results,
            steps,
            writers,
            descendants: None,
        });
        number
    }

    fn add_step(&mut self, call: u32, at: u32, step: &'p Step) -> StepSlots {
        let mut slot = |part| self.slot(call, Some(at), part);
        let (sent, read) = (slot(Part::Sent), slot(Part::Read));
        let (control, answer) = (slot(Part::Control), slot(Part::Answer));
        let item = step.for_each.as_ref().map(|_| slot(Part::Item));
        let inputs = answer + 1 + u32::from(item.is_some());
        for name in step.inputs.keys() {
            slot(Part::Input(name));
        }
        let outputs = inputs + count(step.inputs.len());
        let names = outputs_of(step);
        for (name, ..) in &names {
            slot(Part::Output(name));
        }
        let passed = outputs + count(names.len());
        let passes = matches!(step.work, Work::Approval);
        for name in step.inputs.keys().filter(|_| passes) {
            slot(Part::Output(name));
        }
        self.declare(step, answer, outputs, names);
        if passes {
            self.graph.node(answer).rule = Rule::Approved;
            for slot in outputs..passed + count(step.inputs.len()) {
                self.graph.node(slot).rule = Rule::Approved;
            }
        }
        StepSlots { sent, read, control, answer, item, inputs, outputs, passed, child: None }
    }

    /// The labels that a step declares for its outputs.
    fn declare(
        &mut self,
        step: &'p Step,
        answer: Slot,
        outputs: Slot,
        names: Vec<DeclaredOutput<'p>>,
    ) {
        for (at, (_, origin, sensitive, endorse)) in (outputs..).zip(names) {
            let own = self.labels.set(origin, sensitive);
            let none: &[String] = &[];
            let cut = self.labels.set(endorse, none);
            let cut = cut.with(self.labels.set(none, endorse));
            let node = self.graph.node(at);
            (node.own, node.cut) = (own, cut);
            let whole = self.graph.node(answer);
            whole.own = whole.own.with(own);
        }
        if let Work::Lens(work) = &step.work
            && let Some(contract) = &work.output_contract
        {
            let own = self.labels.set(&contract.origin, &contract.sensitive);
            let count = contract.schema.as_ref().map_or(0, |schema| count(schema.len()));
            for slot in (outputs..outputs + count).chain([answer]) {
                let node = self.graph.node(slot);
                node.own = node.own.with(own);
            }
        }
    }

    /// Makes calls of the sub-workflows of a call.
    fn add_children(&mut self, call: usize) {
        let (depth, plan) = (self.calls[call].depth, self.calls[call].plan());
        for (at, step) in plan.steps.iter().enumerate() {
            let Work::Workflow(work) = &step.work else { continue };
            let Some(document) = self.setting.child(&work.name, work.version) else { continue };
            let size = document.definition.plan.steps.len();
            let alone = depth < RECURSION_DEPTH_MAX && self.steps + size <= FLOW_STEPS_MAX;
            let known = self.shared.get(document.definition.hash.as_str()).copied();
            let child = match known.filter(|_| !alone) {
                Some(child) => child,
                None => self.add_call(document, depth + 1),
            };
            if !alone {
                self.shared.insert(&document.definition.hash, child);
            }
            self.calls[call].steps[at].child = Some(child);
        }
    }

    fn connect(&mut self, call: u32) {
        let plan = self.calls[call as usize].plan();
        for (at, step) in (0..).zip(&plan.steps) {
            self.connect_step(call, at, step);
        }
        if call > 0 {
            self.connect_results(call);
        }
    }

    /// The results of a sub-workflow: its declared outputs, or else its variables.
    fn connect_results(&mut self, call: u32) {
        let plan = self.calls[call as usize].plan();
        let results: Vec<_> = self.calls[call as usize].results.clone().into_iter().collect();
        for (name, slot) in results {
            let site = Site { call, step: None, field: Field::Result(name) };
            let sources = match plan.outputs.get(name) {
                Some(template) => {
                    let paths = template.references().map(|reference| &reference.path);
                    paths.flat_map(|path| self.sources(call, None, path)).collect()
                }
                None => self.written(call, None, name),
            };
            for from in sources {
                self.graph.link(from, slot, site);
            }
        }
    }

    fn slot(&mut self, call: u32, step: Option<u32>, part: Part<'p>) -> Slot {
        self.graph.add(Place { call, step, part })
    }
}

/// A number of slots; the size of a document bounds it.
fn count(length: usize) -> Slot {
    Slot::try_from(length).expect("the size of a document is bounded")
}

/// An output: its name, and the labels that it declares.
type DeclaredOutput<'p> = (&'p str, &'p [String], &'p [String], &'p [String]);

/// The declared outputs of a step, in order.
fn outputs_of(step: &Step) -> Vec<DeclaredOutput<'_>> {
    match contract_of(step) {
        Some(schema) => {
            let fields = schema.iter();
            let declared = fields
                .map(|(name, one)| (name.as_str(), &*one.origin, &*one.sensitive, &*one.endorse));
            declared.collect()
        }
        None => {
            let fields = step.outputs.iter();
            let declared = fields
                .map(|(name, one)| (name.as_str(), &*one.origin, &*one.sensitive, &*one.endorse));
            declared.collect()
        }
    }
}

/// The fields of the output contract of a lens node.
fn contract_of(step: &Step) -> Option<&IndexMap<String, crate::contract::field::ContractField>> {
    match &step.work {
        Work::Lens(work) => work.output_contract.as_ref()?.schema.as_ref(),
        _ => None,
    }
}

/// The steps that set each variable. Outputs of instances and of lens nodes are read through
/// the step, not as variables.
fn writers(plan: &Plan) -> BTreeMap<&str, Vec<u32>> {
    let mut writers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    if plan.family == Family::Lens {
        return writers;
    }
    for (at, step) in (0..).zip(&plan.steps).filter(|(_, step)| step.for_each.is_none()) {
        for name in step.outputs.keys() {
            writers.entry(name).or_default().push(at);
        }
    }
    writers
}
