//! The inputs of a lens node, and where each of them came from.
//!
//! A node sees all root inputs. What is wired to it overrides them, and its
//! own `param_overrides` override both. Labels meet in normal form.
//!
//! INVARIANT: the result depends only on the arguments and the order of the
//! wires, never on the order in which sources completed.

use crate::label::label;
use crate::merge::{Strategy, choose};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An edge that ends at the node.
#[derive(Debug, Clone)]
pub struct Wire<'a> {
    /// The input it feeds (`target_param_label`).
    pub label: &'a str,
    /// The label of the node it comes from, or its id where it has none.
    pub source_label: &'a str,
    /// What it carries; none where the source did not complete or the
    /// condition does not hold.
    pub value: Option<Cow<'a, Value>>,
    /// Its own `merge_strategy`.
    pub strategy: Option<Strategy>,
}

/// Everything a node's inputs are made from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The run's inputs.
    pub root: &'a Map<String, Value>,
    /// The node's incoming edges, in the order of the document.
    pub wires: &'a [Wire<'a>],
    /// The node's own `merge`.
    pub merge: Option<Strategy>,
    /// The node's `param_overrides`.
    pub overrides: &'a Map<String, Value>,
}

/// Where an input came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The run's inputs.
    Root,
    /// The wires with these positions in [`Sources::wires`] carried a value.
    Edges {
        /// Positions, in order.
        wires: Vec<usize>,
        /// How their values were merged; none where the label has one wire only.
        strategy: Option<Strategy>,
    },
    /// The node's `param_overrides`.
    Override,
}

/// One input of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// The inputs of a node by label, in normal form.
///
/// A label whose wires all carry nothing keeps its root input, if it has one.
pub fn bind(sources: &Sources<'_>) -> BTreeMap<String, Bound> {
    let mut inputs = BTreeMap::new();
    insert_all(&mut inputs, sources.root, &Origin::Root);
    for (label, wires) in by_label(sources.wires) {
        if let Some(bound) = meet(sources, &wires) {
            inputs.insert(label, bound);
        }
    }
    insert_all(&mut inputs, sources.overrides, &Origin::Override);
    inputs
}

fn insert_all(inputs: &mut BTreeMap<String, Bound>, from: &Map<String, Value>, origin: &Origin) {
    for (name, value) in from {
        let bound = Bound {
            value: value.clone(),
            origin: origin.clone(),
        };
        inputs.insert(label(name), bound);
    }
}

fn by_label(wires: &[Wire<'_>]) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, wire) in wires.iter().enumerate() {
        groups.entry(label(wire.label)).or_default().push(at);
    }
    groups
}

/// What the wires of one label bring together, if any brings something.
fn meet(sources: &Sources<'_>, group: &[usize]) -> Option<Bound> {
    let wire = |at: usize| &sources.wires[at];
    let live: Vec<usize> = group
        .iter()
        .copied()
        .filter(|at| wire(*at).value.is_some())
        .collect();
    let pair = |at: &usize| Some((wire(*at).source_label, wire(*at).value.as_deref()?));
    let values: Vec<(&str, &Value)> = live.iter().filter_map(pair).collect();
    // The number of edges decides whether there is merging, not how many of
    // their sources completed: an input must not change its shape when one
    // source is skipped.
    let strategy = match group {
        [first, _, ..] => Some(choose(wire(*first).strategy, sources.merge)),
        _ => None,
    };
    let value = strategy.unwrap_or_default().combine(&values)?;
    Some(Bound {
        value,
        origin: Origin::Edges {
            wires: live,
            strategy,
        },
    })
}
