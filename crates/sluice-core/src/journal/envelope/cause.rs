//! What caused an event, as far as its append says.
//!
//! Everything that one turn of a run brings about is one append: an answer, the
//! steps that become ready by it, their decisions, their dispatches. So the cause
//! of an event is the earlier event of its append that it follows from. An event
//! whose cause came with an earlier append has no parent: an answer names its
//! dispatch by `nodeId` and `dispatchNo`.
//!
//! INVARIANT: a parent is read from the frame and the plan alone, so that every
//! reader is told the same, wherever it begins to read.

use crate::plan::graph::Graph;
use std::collections::BTreeMap;

/// The events of one append so far that can be causes.
pub(super) struct Causes<'g> {
    graph: Option<&'g Graph>,
    /// The newest event of each step and instance, by name.
    own: BTreeMap<String, u64>,
    /// The newest event that settled each step or one of its instances.
    settled: BTreeMap<usize, u64>,
    /// The newest event that settled any step.
    settled_any: Option<u64>,
    /// The newest event of any step.
    step_any: Option<u64>,
    /// The newest event of the run itself.
    run: Option<u64>,
}

impl<'g> Causes<'g> {
    pub(super) fn new(graph: Option<&'g Graph>) -> Causes<'g> {
        let (own, settled) = (BTreeMap::new(), BTreeMap::new());
        Causes { graph, own, settled, settled_any: None, step_any: None, run: None }
    }

    /// The cause of an event, which then is one itself. `node` is the step or
    /// instance that it is about.
    pub(super) fn next(&mut self, id: u64, kind: &str, node: Option<&str>) -> Option<u64> {
        let parent = match node {
            Some(node) => self.of_step(kind, node),
            None if is_end(kind) => self.settled_any.max(self.run),
            None => self.step_any.max(self.run),
        };
        if is_cause(kind) {
            self.keep(id, kind, node);
        }
        parent
    }

    fn of_step(&self, kind: &str, node: &str) -> Option<u64> {
        if let Some(own) = self.own.get(node) {
            return Some(*own);
        }
        let whole = whole(node);
        if whole != node {
            return self.own.get(whole).copied().or(self.run);
        }
        let position = self.graph.and_then(|graph| graph.position(node));
        let near = position.and_then(|position| {
            // The step's own instances, and the steps that it depends on.
            let instances = self.settled.get(&position).copied();
            let graph = self.graph?;
            let on = graph.dependencies(position).iter();
            let on = on.filter_map(|on| self.settled.get(&(*on as usize)).copied());
            on.chain(instances).max()
        });
        // What is cancelled is so by the run, or by the step that failed.
        let any = if kind == "node.cancelled" { self.settled_any } else { None };
        near.or(self.run).or(any)
    }

    fn keep(&mut self, id: u64, kind: &str, node: Option<&str>) {
        let Some(node) = node else {
            self.run = Some(id);
            return;
        };
        self.own.insert(node.to_owned(), id);
        self.step_any = Some(id);
        if is_settling(kind) {
            self.settled_any = Some(id);
            if let Some(position) = self.graph.and_then(|graph| graph.position(whole(node))) {
                self.settled.insert(position, id);
            }
        }
    }
}

/// The step of an instance.
pub(super) fn whole(node: &str) -> &str {
    node.split_once('[').map_or(node, |(step, _)| step)
}

fn is_settling(kind: &str) -> bool {
    matches!(
        kind,
        "node.completed"
            | "node.failed"
            | "node.timed_out"
            | "node.cancelled"
            | "node.skipped"
            | "node.blocked"
    )
}

fn is_end(kind: &str) -> bool {
    matches!(kind, "run.completed" | "run.failed" | "run.cancelled" | "run.timed_out")
}

/// What is only noted down causes nothing.
fn is_cause(kind: &str) -> bool {
    !matches!(kind, "node.provenance" | "node.log" | "node.stream.delta" | "budget.alert")
}
