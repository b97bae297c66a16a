//! The graph of data flow and its least fixpoint.
//!
//! A slot is a place that data can be in: an argument, what a step reads, one of its outputs.
//! Edges carry labels from slot to slot. Labels only grow, so the work is bounded by the number
//! of edges times the number of labels; in practice each edge is followed once or twice.

use super::label::{LabelSet, Labels};
use std::collections::VecDeque;

/// Number of a slot.
pub(super) type Slot = u32;

/// What an edge carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// All labels.
    Data,
    /// Control, if the data is untrusted.
    Decision,
}

/// What a slot does with the labels that reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Rule {
    /// It has all labels of its sources.
    #[default]
    Join,
    /// It has all labels of its sources but untrusted origins: a person has seen the value.
    Approved,
    /// It has control if all its sources have it.
    All,
}

/// A place that data can be in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<P> {
    /// What and where it is.
    pub(super) place: P,
    /// Labels that begin here.
    pub(super) own: LabelSet,
    /// Labels that end here.
    pub(super) cut: LabelSet,
    pub(super) rule: Rule,
    /// Labels that data here can have.
    pub(super) value: LabelSet,
}

/// A way from one slot to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<V> {
    pub(super) from: Slot,
    pub(super) to: Slot,
    pub(super) carries: Carries,
    /// The part of the document that makes the edge.
    pub(super) via: V,
}

#[derive(Debug)]
pub(super) struct Graph<P, V> {
    pub(super) nodes: Vec<Node<P>>,
    pub(super) edges: Vec<Edge<V>>,
    /// The edges out of each slot: positions in `outgoing`, once the graph is solved.
    starts: Vec<u32>,
    outgoing: Vec<u32>,
}

impl<P, V> Default for Graph<P, V> {
    fn default() -> Graph<P, V> {
        Graph { nodes: Vec::new(), edges: Vec::new(), starts: Vec::new(), outgoing: Vec::new() }
    }
}

impl<P: Copy, V: Copy> Graph<P, V> {
    pub(super) fn add(&mut self, place: P) -> Slot {
        let none = LabelSet::default();
        self.nodes.push(Node { place, own: none, cut: none, rule: Rule::Join, value: none });
        Slot::try_from(self.nodes.len() - 1).expect("the number of steps is bounded")
    }

    pub(super) fn node(&mut self, slot: Slot) -> &mut Node<P> {
        &mut self.nodes[slot as usize]
    }

    pub(super) fn value(&self, slot: Slot) -> LabelSet {
        self.nodes[slot as usize].value
    }

    pub(super) fn link(&mut self, from: Slot, to: Slot, via: V) {
        self.edges.push(Edge { from, to, carries: Carries::Data, via });
    }

    pub(super) fn decide(&mut self, from: Slot, to: Slot, via: V) {
        self.edges.push(Edge { from, to, carries: Carries::Decision, via });
    }

    /// The numbers of the edges out of a slot.
    pub(super) fn edges_out_of(&self, slot: Slot) -> &[u32] {
        let range = self.starts[slot as usize] as usize..self.starts[slot as usize + 1] as usize;
        &self.outgoing[range]
    }

    /// The labels that an edge carries.
    pub(super) fn carried(&self, edge: &Edge<V>, labels: &Labels) -> LabelSet {
        let value = self.value(edge.from);
        match edge.carries {
            Carries::Data => value,
            Carries::Decision if value.both(labels.untrusted).is_empty() => LabelSet::default(),
            Carries::Decision => LabelSet::CONTROL,
        }
    }

    /// Computes the labels of every slot.
    pub(super) fn solve(&mut self, labels: &Labels) {
        (self.starts, self.outgoing) = self.index(|edge| edge.from);
        // How many sources of each slot have not brought control yet.
        let mut missing = vec![0u32; self.nodes.len()];
        for edge in &self.edges {
            missing[edge.to as usize] += 1;
        }
        let mut queue = VecDeque::new();
        let mut queued = vec![false; self.nodes.len()];
        for (slot, node) in (0..).zip(&mut self.nodes) {
            node.value = node.own.without(node.cut);
            if !node.value.is_empty() {
                queued[slot as usize] = true;
                queue.push_back(slot);
            }
        }
        // Whether an edge into a slot that needs all its sources has carried control.
        let mut met = vec![false; self.edges.len()];
        while let Some(slot) = queue.pop_front() {
            queued[slot as usize] = false;
            let range = self.starts[slot as usize]..self.starts[slot as usize + 1];
            for at in range {
                let at = self.outgoing[at as usize] as usize;
                let edge = self.edges[at];
                let mut carried = self.carried(&edge, labels);
                let to = edge.to as usize;
                let node = &mut self.nodes[to];
                match node.rule {
                    Rule::Join => {}
                    Rule::Approved => {
                        carried = carried.without(labels.origins.both(labels.untrusted));
                    }
                    Rule::All => {
                        carried = carried.both(LabelSet::CONTROL);
                        let first = !carried.is_empty() && !std::mem::replace(&mut met[at], true);
                        missing[to] -= u32::from(first);
                        if missing[to] > 0 {
                            continue;
                        }
                    }
                }
                let value = node.value.with(carried.without(node.cut));
                if value != node.value {
                    node.value = value;
                    if !std::mem::replace(&mut queued[to], true) {
                        queue.push_back(edge.to);
                    }
                }
            }
        }
    }

    /// The edges of each slot by one of their ends, in the order of the edges.
    fn index(&self, end: impl Fn(&Edge<V>) -> Slot) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for edge in &self.edges {
            starts[end(edge) as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; self.edges.len()];
        for (number, edge) in (0..).zip(&self.edges) {
            let at = &mut next[end(edge) as usize];
            order[*at as usize] = number;
            *at += 1;
        }
        (starts, order)
    }
}
