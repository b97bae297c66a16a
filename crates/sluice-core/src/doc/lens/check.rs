//! What nodes and edges say of each other.

use super::bindings;
use super::written::{ConditionType, EdgeDoc, LensDocument, NodeDoc, VersionDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{Part, Reader};
use crate::doc::registry::Registry;
use crate::doc::{names, shared};
use crate::path::{Path, Segment};
use crate::plan::graph::Graph;
use crate::plan::policy::LensKind;
use crate::span::{Span, Spanned};
use crate::value::text;
use crate::yaml::shorten;
use std::collections::{BTreeMap, BTreeSet};

/// The lens version that a node applies, with the version's name; `None` when
/// it is not at hand.
pub(super) type Applied<'d> = Option<(&'d str, &'d VersionDoc)>;

/// Checks the graph and pins lens versions, one a node.
pub(super) fn check<'d>(
    document: &'d LensDocument,
    registry: &'d Registry,
    cx: &mut Reader<'_, '_>,
) -> Option<(Graph, Vec<Applied<'d>>)> {
    let nodes = document.nodes.as_deref().unwrap_or_default();
    let edges = document.edges.as_deref().unwrap_or_default();
    let positions = check_nodes(nodes, cx);
    let pinned = nodes.iter().enumerate().map(|(at, node)| {
        cx.deeper(&[Part::Key("nodes"), Part::Index(at)], |cx| pin(node, document, registry, cx))
    });
    let versions: Vec<Applied<'d>> = pinned.collect();
    let wires = check_edges(edges, &positions, cx);
    let lens =
        Lens { document, nodes, edges, versions: &versions, wires: &wires, positions: &positions };
    let wired = wires.iter().flatten();
    let mut pairs: Vec<(u32, u32)> = wired.map(|wire| (wire.target, wire.source)).collect();
    lens.check_conditions(&mut pairs, cx);
    lens.check_kinds(cx);
    bindings::check(&lens, cx);
    lens.check_outputs(cx);
    let ids: Vec<(&str, Span)> = nodes.iter().map(|node| (id(node), span(node))).collect();
    let names: Vec<&str> = ids.iter().map(|(id, _)| *id).collect();
    match Graph::new(&names, &pairs) {
        Ok(graph) => Some((graph, versions)),
        Err(cycles) => {
            let path = |at: usize| (Part::Key("nodes"), Part::Index(at));
            shared::report_cycles(&cycles, &ids, path, cx);
            None
        }
    }
}

pub(super) fn id(node: &NodeDoc) -> &str {
    node.id.as_ref().map_or("", |id| id.value.as_str())
}

pub(super) fn span(node: &NodeDoc) -> Span {
    node.id.as_ref().map_or(Span::default(), |id| id.span)
}

/// An edge whose ends exist.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    pub(super) source: u32,
    pub(super) target: u32,
}

fn check_nodes<'d>(nodes: &'d [NodeDoc], cx: &mut Reader<'_, '_>) -> BTreeMap<&'d str, u32> {
    let mut positions = BTreeMap::new();
    for (index, (node, at)) in nodes.iter().zip(0u32..).enumerate() {
        let Some(id) = &node.id else { continue };
        cx.deeper(&[Part::Key("nodes"), Part::Index(index), Part::Key("id")], |cx| {
            names::lens_id(&id.value, id.span, cx);
            if positions.contains_key(id.value.as_str()) {
                let message = format!("a node called `{}` exists already", id.value);
                cx.add(Problem::new(Code::DuplicateNodeId, id.span, message));
            }
        });
        positions.entry(id.value.as_str()).or_insert(at);
        if let Some(config) = &node.config {
            let parts = [Part::Key("nodes"), Part::Index(index), Part::Key("config")];
            cx.deeper(&parts, |cx| {
                shared::check_retry(config.on_failure.as_ref(), config.retry.as_ref(), cx);
            });
        }
    }
    positions
}

/// Finds the version a node applies: its own, or the lens's head.
fn pin<'d>(
    node: &NodeDoc,
    document: &'d LensDocument,
    registry: &'d Registry,
    cx: &mut Reader<'_, '_>,
) -> Applied<'d> {
    let wanted = node.lens_id.as_ref()?;
    let mut inline = document.lenses.iter().flat_map(|lenses| &lenses.0);
    let inline = inline.find(|(id, _)| id.value == wanted.value).map(|(_, lens)| lens);
    let elsewhere = || registry.lenses.as_ref().and_then(|lenses| lenses.get(&wanted.value));
    let Some(lens) = inline.or_else(elsewhere) else {
        report_lens(wanted, document, registry, cx);
        return None;
    };
    let versions = &lens.versions.as_ref()?.0;
    let found = match &node.version_id {
        Some(version) => versions.iter().find(|(name, _)| name.value == version.value.0),
        None => head(versions),
    };
    if found.is_none() {
        let (span, message) = match &node.version_id {
            Some(version) => {
                let name = shorten(&version.value.0);
                (version.span, format!("lens `{}` has no version `{name}`", wanted.value))
            }
            None => (wanted.span, format!("lens `{}` has no versions", wanted.value)),
        };
        let likely = node.version_id.as_ref().and_then(|version| {
            cx.suggest(&version.value.0, versions.iter().map(|(name, _)| name.value.as_str()))
        });
        cx.add(Problem::new(Code::UnknownLens, span, message).with_suggestion(likely));
    }
    found.map(|(name, version)| (name.value.as_str(), version))
}

fn report_lens(
    wanted: &Spanned<String>,
    document: &LensDocument,
    registry: &Registry,
    cx: &mut Reader<'_, '_>,
) {
    let shown = shorten(&wanted.value);
    let inline = document.lenses.iter().flat_map(Table::names);
    let problem = match &registry.lenses {
        Some(known) => {
            let names = inline.chain(known.keys().map(String::as_str));
            Problem::new(Code::UnknownLens, wanted.span, format!("there is no lens `{shown}`"))
                .with_suggestion(cx.suggest(&wanted.value, names))
        }
        None => {
            let message = format!("lens `{shown}` cannot be checked: no registry is at hand");
            Problem::new(Code::UnresolvedReference, wanted.span, message)
                .with_suggestion(cx.suggest(&wanted.value, inline))
        }
    };
    cx.within(Part::Key("lens_id"), |cx| cx.add(problem));
}

/// The head: the highest version where all are numbers, else the last written.
fn head(versions: &[(Spanned<String>, VersionDoc)]) -> Option<&(Spanned<String>, VersionDoc)> {
    let number = |(name, _): &(Spanned<String>, VersionDoc)| {
        name.value.strip_prefix('v').unwrap_or(&name.value).parse::<u64>().ok()
    };
    if versions.iter().all(|version| number(version).is_some()) {
        versions.iter().max_by_key(|version| number(version))
    } else {
        versions.last()
    }
}

/// Both ends of every edge; `None` for an edge that lacks one.
fn check_edges(
    edges: &[EdgeDoc],
    positions: &BTreeMap<&str, u32>,
    cx: &mut Reader<'_, '_>,
) -> Vec<Option<Wire>> {
    let mut seen = BTreeSet::new();
    let mut wires = Vec::with_capacity(edges.len());
    for (index, edge) in edges.iter().enumerate() {
        cx.deeper(&[Part::Key("edges"), Part::Index(index)], |cx| {
            if let Some(id) = &edge.id {
                names::lens_id(&id.value, id.span, cx);
                if !seen.insert(id.value.as_str()) {
                    let message = format!("an edge called `{}` exists already", id.value);
                    cx.add(Problem::new(Code::DuplicateEdgeId, id.span, message));
                }
            }
            let source = edge.source_node_id.as_ref();
            let source = end(source, "source_node_id", Code::OrphanSource, positions, cx);
            let target = edge.target_node_id.as_ref();
            let target = end(target, "target_node_id", Code::OrphanTarget, positions, cx);
            let wire = source.zip(target).map(|(source, target)| Wire { source, target });
            let loops = wire.is_some_and(|wire| wire.source == wire.target);
            if let (true, Some(end)) = (loops, &edge.target_node_id) {
                let message = format!("the edge leads from `{}` to itself", end.value);
                cx.add(Problem::new(Code::SelfEdge, end.span, message));
            }
            wires.push(wire.filter(|_| !loops));
        });
    }
    wires
}

/// The node at one end of an edge.
fn end(
    written: Option<&Spanned<String>>,
    key: &'static str,
    code: Code,
    positions: &BTreeMap<&str, u32>,
    cx: &mut Reader<'_, '_>,
) -> Option<u32> {
    let written = written?;
    let found = positions.get(written.value.as_str()).copied();
    if found.is_none() {
        let message = format!("there is no node `{}`", shorten(&written.value));
        let problem = Problem::new(code, written.span, message)
            .with_suggestion(cx.suggest(&written.value, positions.keys().copied()));
        cx.within(Part::Key(key), |cx| cx.add(problem));
    }
    found
}

/// Everything the checks of a lens graph look at.
pub(super) struct Lens<'d> {
    pub(super) document: &'d LensDocument,
    pub(super) nodes: &'d [NodeDoc],
    pub(super) edges: &'d [EdgeDoc],
    pub(super) versions: &'d [Applied<'d>],
    /// One an edge, in document order.
    pub(super) wires: &'d [Option<Wire>],
    pub(super) positions: &'d BTreeMap<&'d str, u32>,
}

impl<'d> Lens<'d> {
    /// Edges with both ends, with their position in the document.
    pub(super) fn wired(&self) -> impl Iterator<Item = (usize, &'d EdgeDoc, Wire)> {
        let edges = self.edges.iter().zip(self.wires).enumerate();
        edges.filter_map(|(index, (edge, wire))| Some((index, edge, (*wire)?)))
    }

    /// Where an edge is named, or else begins.
    pub(super) fn edge_span(&self, edge: &EdgeDoc) -> Span {
        let ends = edge.source_node_id.as_ref().or(edge.target_node_id.as_ref());
        edge.id.as_ref().or(ends).map_or(Span::default(), |written| written.span)
    }

    /// Conditions have what their type needs; expressions read what exists, and
    /// the target waits for every node they name.
    fn check_conditions(&self, pairs: &mut Vec<(u32, u32)>, cx: &mut Reader<'_, '_>) {
        for (index, edge) in self.edges.iter().enumerate() {
            let Some(condition) = &edge.condition else { continue };
            let Some(kind) = &condition.value.kind else { continue };
            let (value, expr) = (&condition.value.value, &condition.value.expr);
            let lacking = match kind.value {
                ConditionType::Equals | ConditionType::Contains => {
                    value.is_none().then_some("value")
                }
                ConditionType::Expression => expr.is_none().then_some("expr"),
                ConditionType::Present | ConditionType::Truthy => None,
            };
            let target = self.wires[index].map(|wire| wire.target);
            cx.deeper(&[Part::Key("edges"), Part::Index(index), Part::Key("condition")], |cx| {
                if let Some(field) = lacking {
                    let message = format!("a condition of type `{}` needs `{field}`", kind.value);
                    cx.add(Problem::new(Code::MissingField, kind.span, message));
                }
                for reference in expr.iter().flat_map(|expr| expr.value.references()) {
                    let head = reference.path.head();
                    if let Some(at) = self.positions.get(head) {
                        pairs.extend(target.map(|target| (target, *at)));
                    } else if !self.may_be_given(&reference.path) {
                        let message = format!("`{}` is no node or argument", shorten(head));
                        let likely = cx.suggest(head, self.positions.keys().copied());
                        let problem =
                            Problem::new(Code::UnknownIdentifier, condition.span, message);
                        cx.add(problem.with_suggestion(likely));
                    }
                }
            });
        }
    }

    /// Whether a name may be given when the run starts. Without declared
    /// arguments any name may.
    fn may_be_given(&self, path: &Path) -> bool {
        let Some(args) = &self.document.args else { return true };
        let name = match (path.head(), path.rest().first()) {
            ("value", _) => return true,
            ("args", Some(Segment::Key(name))) => name,
            (head, _) => head,
        };
        args.names().any(|arg| arg == name)
    }

    /// Routers route, validators say what failure means.
    fn check_kinds(&self, cx: &mut Reader<'_, '_>) {
        let mut outgoing: Vec<Vec<(usize, &EdgeDoc)>> = vec![Vec::new(); self.nodes.len()];
        for (index, edge, wire) in self.wired() {
            outgoing[wire.source as usize].push((index, edge));
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let kind = self.versions[at].and_then(|(_, version)| version.kind);
            match kind {
                Some(LensKind::Routing) => self.check_router(at, node, &outgoing[at], cx),
                Some(LensKind::Validation) => check_validator(at, node, &outgoing[at], cx),
                _ => {}
            }
        }
    }

    fn check_router(
        &self,
        at: usize,
        node: &NodeDoc,
        routes: &[(usize, &EdgeDoc)],
        cx: &mut Reader<'_, '_>,
    ) {
        if routes.len() < 2 {
            let message = format!(
                "routing node `{}` needs at least two outgoing edges; it has {}",
                id(node),
                routes.len(),
            );
            let problem = Problem::new(Code::RoutingInsufficientEdges, span(node), message);
            cx.deeper(&[Part::Key("nodes"), Part::Index(at)], |cx| cx.add(problem));
        }
        let mut values = BTreeSet::new();
        for (index, edge) in routes {
            let condition = edge.condition.as_ref().map(|condition| &condition.value);
            let equals = condition.filter(|condition| {
                condition.kind.is_some_and(|kind| kind.value == ConditionType::Equals)
            });
            let (code, message) = match equals.map(|condition| condition.value.as_ref()) {
                None => (
                    Code::RoutingMissingEquals,
                    format!(
                        "an edge that leaves routing node `{}` needs an `equals` condition",
                        id(node)
                    ),
                ),
                Some(Some(value)) if !values.insert(text(value).into_owned()) => (
                    Code::RoutingDuplicateRoute,
                    format!(
                        "two routes of `{}` have the value `{}`",
                        id(node),
                        shorten(&text(value))
                    ),
                ),
                Some(_) => continue,
            };
            let problem = Problem::new(code, self.edge_span(edge), message);
            cx.deeper(&[Part::Key("edges"), Part::Index(*index)], |cx| cx.add(problem));
        }
    }

    /// The run's own outputs read nodes and root inputs.
    fn check_outputs(&self, cx: &mut Reader<'_, '_>) {
        for (_, output) in self.document.outputs.iter().flat_map(|outputs| &outputs.0) {
            for reference in output.value.references() {
                let path = &reference.path;
                if !self.positions.contains_key(path.head()) && !self.may_be_given(path) {
                    let message = format!("nothing sets `{}`", shorten(path.head()));
                    let problem = Problem::new(Code::UnknownVariable, output.span, message)
                        .with_suggestion(cx.suggest(path.head(), self.positions.keys().copied()));
                    cx.within(Part::Key("outputs"), |cx| cx.add(problem));
                }
            }
        }
    }
}

fn check_validator(
    at: usize,
    node: &NodeDoc,
    outgoing: &[(usize, &EdgeDoc)],
    cx: &mut Reader<'_, '_>,
) {
    let policy = node.config.as_ref().is_some_and(|config| config.on_failure.is_some());
    if policy || outgoing.iter().any(|(_, edge)| edge.condition.is_some()) {
        return;
    }
    let message = format!("validation node `{}` says nothing of failure", id(node));
    let problem = Problem::new(Code::ValidationMissingPolicy, span(node), message)
        .with_hint("set `config.on_failure`, or put a condition on an edge that leaves it");
    cx.deeper(&[Part::Key("nodes"), Part::Index(at)], |cx| cx.add(problem));
}
