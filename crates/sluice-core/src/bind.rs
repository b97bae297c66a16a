//! Binds the inputs of a lens node and records the origin of each.
//!
//! A node sees all root inputs. Wired values override them, and the node's own
//! `param_overrides` override both. Labels are compared in normal form.
//!
//! INVARIANT: the result depends only on the arguments and the order of the wires, never on the
//! order in which sources completed.

use crate::label::label;
use crate::merge::{Strategy, choose, merge};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An edge that ends at the node.
#[derive(Debug, Clone)]
pub struct Wire<'a> {
    /// The input that it binds (`target_param_label`).
    pub label: &'a str,
    /// The label of the source node, or its id without one.
    pub source_label: &'a str,
    /// The carried value; `None` if the source did not complete or the condition is false.
    pub value: Option<Cow<'a, Value>>,
    /// Its own `merge_strategy`.
    pub strategy: Option<Strategy>,
}

/// Everything that a node's inputs come from.
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

/// The origin of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The run's inputs.
    Root,
    /// The wires with these positions in [`Sources::wires`] carried a value.
    Edges {
        /// Positions, in order.
        wires: Vec<usize>,
        /// How their values were merged; `None` if the label has only one wire.
        strategy: Option<Strategy>,
    },
    /// The node's `param_overrides`.
    Override,
}

/// One input of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value after merging and conversion.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// Binds the inputs of a node by label, in normal form.
///
/// If no wire of a label carries a value, the label keeps its root input.
pub fn bind(sources: &Sources<'_>) -> BTreeMap<String, Bound> {
    let mut inputs = BTreeMap::new();
    insert_all(&mut inputs, sources.root, &Origin::Root);
    for (label, wires) in by_label(sources.wires) {
        if let Some(bound) = merge_wires(sources, &wires) {
            inputs.insert(label, bound);
        }
    }
    insert_all(&mut inputs, sources.overrides, &Origin::Override);
    inputs
}

fn insert_all(inputs: &mut BTreeMap<String, Bound>, from: &Map<String, Value>, origin: &Origin) {
    for (name, value) in from {
        let bound = Bound { value: value.clone(), origin: origin.clone() };
        inputs.insert(label(name), bound);
    }
}

fn by_label(wires: &[Wire<'_>]) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    // An edge without a label only orders nodes and carries nothing.
    let labelled = wires.iter().enumerate().filter(|(_, wire)| !wire.label.trim().is_empty());
    for (at, wire) in labelled {
        groups.entry(label(wire.label)).or_default().push(at);
    }
    groups
}

/// Merges the values of the wires of one label; `None` if there is no value.
fn merge_wires(sources: &Sources<'_>, group: &[usize]) -> Option<Bound> {
    let wire = |at: usize| &sources.wires[at];
    let live: Vec<usize> = group.iter().copied().filter(|at| wire(*at).value.is_some()).collect();
    let pair = |at: &usize| Some((wire(*at).source_label, wire(*at).value.as_deref()?));
    let values: Vec<(&str, &Value)> = live.iter().filter_map(pair).collect();
    // The number of edges decides whether values are merged, not the number of completed
    // sources: an input must not change its shape when a source is skipped.
    let strategy = match group {
        [first, _, ..] => Some(choose(wire(*first).strategy, sources.merge)),
        _ => None,
    };
    let value = merge(strategy.unwrap_or_default(), group.len(), &values)?;
    Some(Bound { value, origin: Origin::Edges { wires: live, strategy } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wire<'a>(label: &'a str, source: &'a str, value: Option<Value>) -> Wire<'a> {
        Wire { label, source_label: source, value: value.map(Cow::Owned), strategy: None }
    }

    #[test]
    fn an_edge_without_a_label_carries_nothing() {
        let (root, overrides) = (Map::new(), Map::new());
        let wires = [wire("", "a", Some(json!(1))), wire(" ", "b", Some(json!(2)))];
        let sources = Sources { root: &root, wires: &wires, merge: None, overrides: &overrides };
        assert_eq!(bind(&sources), BTreeMap::new());
    }

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is not an object"),
        }
    }

    fn bound(root: Value, wires: &[Wire<'_>], merge: Option<Strategy>) -> BTreeMap<String, Bound> {
        bind(&Sources { root: &map(root), wires, merge, overrides: &Map::new() })
    }

    #[test]
    fn wires_override_root_inputs_and_overrides_override_both() {
        let wires =
            [wire("Wired", "a", Some(json!("wire"))), wire("both", "a", Some(json!("wire")))];
        let inputs = bind(&Sources {
            root: &map(json!({"Root Only": 1, "wired": 2, "both": 3, "over": 4})),
            wires: &wires,
            merge: None,
            overrides: &map(json!({"BOTH": "override", " Over ": "override", "new": "override"})),
        });
        let shown: Vec<_> =
            inputs.into_iter().map(|(label, bound)| (label, bound.value, bound.origin)).collect();
        let edges = |at: usize| Origin::Edges { wires: vec![at], strategy: None };
        assert_eq!(
            shown,
            [
                ("both".to_owned(), json!("override"), Origin::Override),
                ("new".to_owned(), json!("override"), Origin::Override),
                ("over".to_owned(), json!("override"), Origin::Override),
                ("root_only".to_owned(), json!(1), Origin::Root),
                ("wired".to_owned(), json!("wire"), edges(0)),
            ]
        );
    }

    #[test]
    fn wires_of_one_label_are_merged_in_order_and_their_places_kept() {
        let wires = [
            wire("text", "a", Some(json!("one"))),
            wire("other", "b", Some(json!("x"))),
            wire(" Text", "c", None),
            wire("TEXT", "d", Some(json!(2))),
        ];
        for (merge, expected, strategy) in [
            (None, json!(2), Strategy::LastWriteWins),
            (Some(Strategy::Concat), json!("one\n\n2"), Strategy::Concat),
            (Some(Strategy::Array), json!(["one", 2]), Strategy::Array),
            (Some(Strategy::JsonObject), json!({"a": "one", "d": 2}), Strategy::JsonObject),
        ] {
            let inputs = bound(json!({}), &wires, merge);
            let origin = Origin::Edges { wires: vec![0, 3], strategy: Some(strategy) };
            assert_eq!(inputs["text"], Bound { value: expected, origin });
            assert_eq!(inputs["other"].value, json!("x"));
            assert_eq!(inputs.len(), 2);
        }
    }

    #[test]
    fn the_first_wire_of_a_label_chooses_even_if_it_carries_nothing() {
        let mut wires =
            [wire("x", "a", None), wire("x", "b", Some(json!(1))), wire("x", "c", Some(json!(2)))];
        wires[0].strategy = Some(Strategy::Array);
        wires[1].strategy = Some(Strategy::Concat);
        let inputs = bound(json!({}), &wires, Some(Strategy::JsonObject));
        assert_eq!(inputs["x"].value, json!([1, 2]));
    }

    #[test]
    fn an_input_keeps_its_shape_when_only_one_of_its_sources_completed() {
        let wires = [wire("x", "a", None), wire("x", "b", Some(json!(1)))];
        let inputs = bound(json!({}), &wires, Some(Strategy::Array));
        assert_eq!(inputs["x"].value, json!([1]));
    }

    #[test]
    fn one_edge_is_not_merged() {
        let mut alone = [wire("x", "a", Some(json!({"k": 1})))];
        alone[0].strategy = Some(Strategy::Array);
        let inputs = bound(json!({}), &alone, Some(Strategy::Concat));
        assert_eq!(inputs["x"].value, json!({"k": 1}));
    }

    #[test]
    fn a_label_whose_wires_carry_nothing_keeps_its_root_input() {
        let wires = [wire("x", "a", None), wire("y", "a", None)];
        let inputs = bound(json!({"x": 1}), &wires, None);
        assert_eq!(inputs["x"].origin, Origin::Root);
        assert!(!inputs.contains_key("y"));
    }

    #[test]
    fn a_null_that_is_carried_overrides() {
        let wires = [wire("x", "a", Some(json!(null)))];
        let inputs = bound(json!({"x": 1}), &wires, None);
        assert_eq!(inputs["x"].value, json!(null));
    }
}
