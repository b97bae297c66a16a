//! The slots that a path reads.

use super::{Builder, contract_of, count};
use crate::edge::key::OutputKey;
use crate::flow::graph::Slot;
use crate::path::{Path, Segment};
use crate::plan::graph::Graph;
use crate::plan::step::{Edge, Work};

/// What an approval adds to the outputs of its step and no approver enters.
const OF_APPROVALS: [&str; 3] = ["approved", "at", "by"];

impl<'p> Builder<'p> {
    /// The slots that a path of a step, or of the document, reads.
    pub(super) fn sources(&mut self, call: u32, reader: Option<u32>, path: &Path) -> Vec<Slot> {
        let this = &self.calls[call as usize];
        let plan = this.plan();
        let head = path.head();
        let position = plan.graph.position(head).and_then(|at| u32::try_from(at).ok());
        if let (Some(at), true) = (position, path.has_sigil()) {
            return self.in_step(call, at, path);
        }
        if let Some(reader) = reader {
            let (step, slots) = (this.step(reader), this.steps[reader as usize]);
            if let Some(at) = step.inputs.get_index_of(head) {
                return vec![slots.inputs + count(at)];
            }
            if let (Some(item), "item" | "index") = (slots.item, head) {
                return vec![item];
            }
        }
        if let Some(at) = position {
            return self.in_step(call, at, path);
        }
        if head == "args" {
            return match path.rest().first() {
                Some(Segment::Key(name)) => self.argument(call, name).into_iter().collect(),
                _ => self.all_arguments(call),
            };
        }
        let key = path.dotted().filter(|key| this.writers.contains_key(key));
        let argument = self.argument(call, head);
        let mut sources = self.written(call, reader, key.unwrap_or(head));
        // The argument is read until a step sets the variable.
        sources.extend(argument);
        sources
    }

    /// The slot of an argument.
    pub(super) fn argument(&self, call: u32, name: &str) -> Option<Slot> {
        let call = &self.calls[call as usize];
        let declared = call.plan().args.get_index_of(name);
        declared.map(|at| call.arguments + count(at)).or(call.undeclared)
    }

    /// The slots of all arguments.
    pub(super) fn all_arguments(&self, call: u32) -> Vec<Slot> {
        let call = &self.calls[call as usize];
        let declared = call.arguments..call.arguments + count(call.plan().args.len());
        declared.chain(call.undeclared).collect()
    }

    /// The slots of a variable: the outputs of all steps that may have set it before.
    pub(super) fn written(&mut self, call: u32, reader: Option<u32>, name: &str) -> Vec<Slot> {
        let this = &mut self.calls[call as usize];
        let Some(writers) = this.writers.get(name) else { return Vec::new() };
        let plan = &this.document.definition.plan;
        let mut sources = Vec::new();
        for writer in writers {
            if let Some(reader) = reader {
                // Only a step in a later layer can depend on the reader.
                let later =
                    plan.graph.layer_of(*writer as usize) > plan.graph.layer_of(reader as usize);
                let descendants = &mut this.descendants;
                let depends = later && {
                    let known = descendants
                        .get_or_insert_with(|| Descendants::new(&plan.graph, plan.steps.len()));
                    known.contains(reader, *writer)
                };
                if *writer == reader || depends {
                    continue;
                }
            }
            let output = plan.steps[*writer as usize].outputs.get_index_of(name);
            let slots = this.steps[*writer as usize];
            sources.extend(output.map(|at| slots.outputs + count(at)));
        }
        sources
    }

    /// The slots of a path into the outputs of a step.
    fn in_step(&self, call: u32, at: u32, path: &Path) -> Vec<Slot> {
        let step = self.calls[call as usize].step(at);
        let mut rest = path.rest();
        if path.has_sigil()
            && let [Segment::Key(word), ..] = rest
            && matches!(word.as_str(), "stdout" | "json")
        {
            return vec![self.calls[call as usize].answer(at)];
        }
        if let [Segment::Key(word), below @ ..] = rest
            && word == "outputs"
        {
            rest = below;
        }
        if step.for_each.is_some() {
            // An item of the list has the outputs of one instance.
            rest = match rest {
                [Segment::Key(word), Segment::Index(_), below @ ..] if word == "items" => below,
                _ => &[],
            };
        }
        match rest.first() {
            Some(Segment::Key(name)) => self.output(call, at, name),
            _ => vec![self.calls[call as usize].answer(at)],
        }
    }

    /// The slots of an output by name.
    pub(super) fn output(&self, call: u32, at: u32, name: &str) -> Vec<Slot> {
        let this = &self.calls[call as usize];
        let (step, slots) = (this.step(at), this.steps[at as usize]);
        if let Some(found) = step.outputs.get_index_of(name) {
            return vec![slots.outputs + count(found)];
        }
        if let Some(found) = contract_of(step).and_then(|schema| schema.get_index_of(name)) {
            return vec![slots.outputs + count(found)];
        }
        if matches!(step.work, Work::Approval) {
            if OF_APPROVALS.contains(&name) {
                return vec![slots.control];
            }
            if let Some(found) = step.inputs.get_index_of(name) {
                return vec![slots.passed + count(found)];
            }
        }
        let child = slots.child.map(|child| &self.calls[child as usize]);
        if let Some(result) = child.and_then(|child| child.results.get(name)) {
            return vec![*result];
        }
        vec![slots.answer]
    }

    /// The slots that a lens edge carries.
    pub(super) fn carried(&self, call: u32, edge: &Edge) -> Vec<Slot> {
        let this = &self.calls[call as usize];
        let Some(at) = this.plan().graph.position(&edge.source) else { return Vec::new() };
        let at = count(at);
        let key = OutputKey::parse(&edge.source_output_key);
        let answer = this.answer(at);
        let Some(first) = key.field() else { return vec![answer] };
        let mut slots = self.output(call, at, first);
        // A field that the answer lacks is replaced by the whole output.
        let step = this.step(at);
        let required = contract_of(step).and_then(|schema| schema.get(first));
        let present = required.is_some_and(|field| field.required)
            || step.outputs.get(first).is_some_and(|field| field.required);
        if !present && !slots.contains(&answer) && this.steps[at as usize].child.is_none() {
            slots.push(answer);
        }
        slots
    }
}

/// The steps that depend on each step, directly or not.
#[derive(Debug)]
pub(super) struct Descendants {
    words: usize,
    bits: Vec<u64>,
}

impl Descendants {
    fn new(graph: &Graph, steps: usize) -> Descendants {
        let words = steps.div_ceil(64);
        let mut bits = vec![0u64; words * steps];
        for at in graph.layers().iter().rev().flatten() {
            let at = *at as usize;
            for next in graph.dependents(at) {
                let next = *next as usize;
                bits[at * words + next / 64] |= 1 << (next % 64);
                for word in 0..words {
                    let below = bits[next * words + word];
                    bits[at * words + word] |= below;
                }
            }
        }
        Descendants { words, bits }
    }

    fn contains(&self, of: u32, step: u32) -> bool {
        let (of, step) = (of as usize, step as usize);
        self.bits[of * self.words + step / 64] & (1 << (step % 64)) != 0
    }
}
