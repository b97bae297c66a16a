//! How a label can reach a sink: the shortest way from a place where it begins.

use super::build::{Field, Part, Place, Site};
use super::graph::{Carries, Slot};
use super::label::{Label, LabelSet};
use super::{Destination, Flow, FlowDocument, Sink};
use crate::plan::step::Step;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of places of one way that are shown.
const HOPS_MAX: usize = 40;
/// A label does not reach the slot.
const NOWHERE: u32 = u32::MAX;
/// A label begins at the slot.
const BEGINS: u32 = u32::MAX - 1;

/// The shortest ways of each label, computed when they are needed.
#[derive(Debug, Default)]
pub(super) struct WayTrees(BTreeMap<u16, Vec<u32>>);

/// A part of a document that data passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop<'p> {
    /// The document.
    pub(super) document: &'p str,
    /// The text of the document.
    pub(super) text: &'p str,
    /// The keys that lead to the part: `steps`, `2`, `command`.
    pub(super) path: Vec<String>,
    /// What happens there.
    pub(super) what: String,
}

impl<'p> Flow<'p> {
    /// The way of a label to a sink, from its beginning; empty if it cannot reach it.
    pub(super) fn witness(
        &self,
        sink: &Sink<'p>,
        label: &Label,
        trees: &mut WayTrees,
    ) -> Vec<Hop<'p>> {
        let Some(number) = self.labels.number(label) else { return Vec::new() };
        let mut hops = Vec::new();
        let Some((start, sites)) = self.way(sink.slot, number, trees) else { return hops };
        hops.push(self.beginning(start));
        hops.extend(sites.into_iter().filter_map(|(site, from)| self.hop(site, from)));
        hops.push(self.end(sink));
        // A place where nothing new happens is told once.
        hops.dedup();
        if hops.len() > HOPS_MAX {
            let between = hops.len() - HOPS_MAX;
            let half = HOPS_MAX / 2;
            hops.drain(half..half + between);
            hops[half].what = format!("… {between} more places … {}", hops[half].what);
        }
        hops
    }

    /// Follows a label back from a slot: where it begins, and the sites from there on.
    fn way(
        &self,
        end: Slot,
        number: u16,
        trees: &mut WayTrees,
    ) -> Option<(Slot, Vec<(Site<'p>, Slot)>)> {
        let (mut at, mut label, mut sites) = (end, number, Vec::new());
        loop {
            let tree = trees.0.entry(label).or_insert_with(|| self.tree(label));
            match tree[at as usize] {
                NOWHERE => return None,
                BEGINS => break,
                number => {
                    let edge = &self.graph.edges[number as usize];
                    sites.push((edge.via, edge.from));
                    at = edge.from;
                    if edge.carries == Carries::Decision {
                        label = self.reason(at).unwrap_or(label);
                    }
                }
            }
        }
        sites.reverse();
        Some((at, sites))
    }

    /// An untrusted origin of the data at a slot.
    fn reason(&self, slot: Slot) -> Option<u16> {
        let untrusted = self.graph.value(slot).both(self.labels.untrusted);
        untrusted.without(LabelSet::CONTROL).numbers().next()
    }

    /// The shortest ways of a label to all slots: the last edge of each.
    fn tree(&self, label: u16) -> Vec<u32> {
        let set = LabelSet::one(label);
        let mut last = vec![NOWHERE; self.graph.nodes.len()];
        let mut queue = VecDeque::new();
        for (slot, node) in (0..).zip(&self.graph.nodes) {
            if !node.own.without(node.cut).both(set).is_empty() {
                last[slot as usize] = BEGINS;
                queue.push_back(slot);
            }
        }
        // A decision on an untrusted origin is where control begins.
        for (number, edge) in (0..).zip(&self.graph.edges).filter(|_| set == LabelSet::CONTROL) {
            let begins = edge.carries == Carries::Decision && self.reason(edge.from).is_some();
            if begins && last[edge.to as usize] == NOWHERE {
                last[edge.to as usize] = number;
                queue.push_back(edge.to);
            }
        }
        while let Some(slot) = queue.pop_front() {
            for number in self.graph.edges_out_of(slot) {
                let edge = &self.graph.edges[*number as usize];
                let carried = self.graph.carried(edge, &self.labels).both(set);
                let arrives = !carried.both(self.graph.value(edge.to)).is_empty();
                if arrives && last[edge.to as usize] == NOWHERE {
                    last[edge.to as usize] = *number;
                    queue.push_back(edge.to);
                }
            }
        }
        last
    }

    /// Where a label begins.
    fn beginning(&self, slot: Slot) -> Hop<'p> {
        let Place { call, step, part } = self.graph.nodes[slot as usize].place;
        let (field, what) = match part {
            Part::Argument(name) => {
                let path = vec!["args".to_owned(), name.to_owned()];
                return self.place(call, path, format!("argument `{name}`"));
            }
            Part::Arguments => (Field::Step, "the inputs of the run".to_owned()),
            Part::Tool(name) => {
                (self.tool_field(call, step, name), format!("answers of the tool `{name}`"))
            }
            Part::Agent("") => (Field::Agent, "the answer of its agent".to_owned()),
            Part::Agent(name) => (Field::Agent, format!("what agent `{name}` adds")),
            Part::Gateway(name) => (Field::Agent, format!("what gateway `{name}` adds")),
            Part::Memory(name) => (Field::Memory, format!("memory `{name}`")),
            Part::Note(name) => (Field::Memory, format!("note `{name}`")),
            Part::Output(name) => (Field::Output(name), format!("output `{name}` declares it")),
            Part::Answer => (Field::Step, "the answer of the step".to_owned()),
            _ => (Field::Step, "the step".to_owned()),
        };
        match step {
            Some(step) => {
                let what = format!("{what} in `{}`", self.step(call, step).id);
                self.place(call, self.path(call, step, field), what)
            }
            None => self.place(call, Vec::new(), what),
        }
    }

    /// A hop along an edge; none where nothing happens that an author wrote.
    fn hop(&self, site: Site<'p>, from: Slot) -> Option<Hop<'p>> {
        let Site { call, step, field } = site;
        let Some(at) = step else {
            let Field::Result(name) = field else { return None };
            let path = vec!["outputs".to_owned(), name.to_owned()];
            return Some(self.place(call, path, format!("result `{name}`")));
        };
        let id = &self.step(call, at).id;
        let read = self.shown(from);
        let source = self.graph.nodes[from as usize].place;
        let what = match field {
            // What begins at the tool was told there.
            Field::Step | Field::Tool(_) => return None,
            // The part that the input or the condition reads was told before.
            _ if matches!(source.part, Part::Input(_) | Part::Control | Part::Dependencies)
                && source.step == step =>
            {
                return None;
            }
            Field::Memory if matches!(source.part, Part::Answer) => {
                format!("memory keeps {read}")
            }
            Field::Input(name) => format!("input `{name}` of `{id}` reads {read}"),
            Field::Stdin => format!("the standard input of `{id}` reads {read}"),
            Field::ForEach => format!("`for_each` of `{id}` reads {read}"),
            Field::Summary => format!("the approval request of `{id}` shows {read}"),
            Field::Command => format!("the command of `{id}` reads {read}"),
            Field::Condition => format!("the condition of `{id}` reads {read}"),
            Field::Argument(name) => format!("`{id}` passes {read} as argument `{name}`"),
            Field::Edge(_) => format!("an edge carries {read} to `{id}`"),
            Field::DependsOn => format!("`{id}` runs only after steps under control"),
            Field::Memory => format!("`{id}` reads {read}"),
            Field::Agent => format!("the outputs of `{id}` contain {read}"),
            Field::Output(name) => format!("`{id}` returns output `{name}`"),
            Field::Workflow => format!("`{id}` returns {read}"),
            Field::Result(name) => format!("result `{name}`"),
        };
        Some(self.place(call, self.path(call, at, field), what))
    }

    fn end(&self, sink: &Sink<'p>) -> Hop<'p> {
        let id = &self.step(sink.call, sink.step).id;
        let (field, what) = match sink.destination {
            Destination::Tool(name) => {
                let field = self.tool_field(sink.call, Some(sink.step), name);
                (field, format!("`{id}` can call `{name}` with it"))
            }
            Destination::Gateway(name) => {
                (Field::Agent, format!("`{id}` is sent to gateway `{name}` with it"))
            }
            Destination::Workflow(name) => {
                (Field::Workflow, format!("`{id}` starts workflow `{name}` with it"))
            }
        };
        self.place(sink.call, self.path(sink.call, sink.step, field), what)
    }

    /// The step of a sink.
    pub(super) fn step_of(&self, sink: &Sink<'p>) -> (&'p FlowDocument, &'p Step) {
        (self.calls[sink.call as usize].document, self.step(sink.call, sink.step))
    }

    /// The place of a sink.
    pub(super) fn place_of(&self, sink: &Sink<'p>) -> Hop<'p> {
        self.end(sink)
    }

    /// What a slot holds, for people.
    fn shown(&self, slot: Slot) -> String {
        let Place { call, step, part } = self.graph.nodes[slot as usize].place;
        let id = step.map_or("", |at| self.step(call, at).id.as_str());
        match part {
            Part::Argument(name) => format!("`args.{name}`"),
            Part::Output(name) => format!("`{id}.{name}`"),
            Part::Result(name) => format!("result `{name}`"),
            Part::Answer => format!("the output of `{id}`"),
            Part::Input(name) => format!("its input `{name}`"),
            Part::Item => "its item".to_owned(),
            Part::Tool(name) => format!("the answers of `{name}`"),
            Part::Memory(name) => format!("memory `{name}`"),
            Part::Note(name) => format!("note `{name}`"),
            Part::Gateway(name) => format!("what gateway `{name}` adds"),
            Part::Agent(_) => "what its agent adds".to_owned(),
            Part::Session(name) => format!("the session of agent `{name}`"),
            Part::Arguments => "the inputs of the run".to_owned(),
            Part::Start | Part::Sent | Part::Read | Part::Control | Part::Dependencies => {
                format!("what `{id}` reads")
            }
        }
    }

    fn step(&self, call: u32, at: u32) -> &'p Step {
        self.calls[call as usize].step(at)
    }

    fn tool_field(&self, call: u32, step: Option<u32>, name: &str) -> Field<'p> {
        let tools = step.map_or(&[][..], |at| &self.step(call, at).tools);
        let own = |one: &String| sluice_govern::tools::names(&[one], name);
        let number = tools.iter().position(own).and_then(|at| u32::try_from(at).ok());
        number.map_or(Field::Step, Field::Tool)
    }

    fn place(&self, call: u32, path: Vec<String>, what: String) -> Hop<'p> {
        let document = self.calls[call as usize].document;
        Hop { document: &document.name, text: &document.definition.document, path, what }
    }

    /// The keys that lead to a field of a step.
    fn path(&self, call: u32, at: u32, field: Field<'p>) -> Vec<String> {
        let plan = self.calls[call as usize].plan();
        let step = self.step(call, at);
        let lens = plan.family == crate::plan::policy::Family::Lens;
        let list = if lens { "nodes" } else { "steps" };
        let mut path = vec![list.to_owned(), at.to_string()];
        let mut add = |keys: &[&str]| {
            if lens {
                path.push("config".to_owned());
            }
            path.extend(keys.iter().map(|key| (*key).to_owned()));
        };
        match field {
            Field::Step => {}
            Field::Input(name) => add(&["inputs", name]),
            Field::Stdin => add(&["stdin"]),
            Field::ForEach => add(&["for_each"]),
            Field::Summary => add(&["approval", "summary"]),
            Field::Command => add(&["command"]),
            Field::Condition => add(&["condition"]),
            Field::Argument(name) => add(&["args", name]),
            Field::Edge(number) => {
                let id = step.edges.get(number as usize).map_or("", |edge| &edge.id);
                return vec!["edges".to_owned(), id.to_owned()];
            }
            Field::DependsOn => add(&["depends_on"]),
            Field::Memory => add(&["memory"]),
            Field::Tool(number) => {
                let list = if lens { "required_tools" } else { "tools" };
                add(&[list, &number.to_string()]);
            }
            Field::Agent => add(&["agent"]),
            Field::Output(name) => add(&["outputs", name]),
            Field::Workflow => add(&["workflow_ref"]),
            Field::Result(name) => return vec!["outputs".to_owned(), name.to_owned()],
        }
        path
    }
}
