//! The parent of an event: the earlier event of the same append that caused it.
//!
//! All events of one turn are in one append: an answer, the steps that become ready by it,
//! their decisions and their dispatches. An event whose cause is in an earlier append has no
//! parent; an answer names its dispatch by `nodeId` and `dispatchNo`.
//!
//! INVARIANT: a parent depends on the frame and the plan alone, so that every reader sees the
//! same one, wherever it starts to read.

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

    /// Returns the parent of the next event, and records the event as a possible parent of
    /// later ones. `node` is its step or instance.
    pub(super) fn next(&mut self, id: u64, kind: &str, node: Option<&str>) -> Option<u64> {
        let parent = match node {
            Some(node) => self.of_step(kind, node),
            None if is_end(kind) => self.settled_any.max(self.run),
            None => self.step_any.max(self.run),
        };
        if is_cause(kind) {
            self.record(id, kind, node);
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
            // The instances of the step, and the steps that it depends on.
            let instances = self.settled.get(&position).copied();
            let graph = self.graph?;
            let on = graph.dependencies(position).iter();
            let on = on.filter_map(|on| self.settled.get(&(*on as usize)).copied());
            on.chain(instances).max()
        });
        // A step is cancelled because of the run or of a step that failed.
        let any = if kind == "node.cancelled" { self.settled_any } else { None };
        near.or(self.run).or(any)
    }

    fn record(&mut self, id: u64, kind: &str, node: Option<&str>) {
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

/// Records and reports do not cause other events.
fn is_cause(kind: &str) -> bool {
    !matches!(kind, "node.provenance" | "node.log" | "node.stream.delta" | "budget.alert")
}
