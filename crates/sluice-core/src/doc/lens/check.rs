//! Checks nodes and edges against each other.

use super::pin::{Applied, pin_all};
use super::written::{ConditionDoc, ConditionType, EdgeDoc, LensDocument, NodeDoc};
use super::{bindings, work};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::registry::Registry;
use crate::doc::{names, shared};
use crate::expr::Expr;
use crate::label::label;
use crate::path::{Path, Segment};
use crate::plan::graph::Graph;
use crate::span::{Span, Spanned};
use crate::value::text;
use crate::visible::shorten;
use sluice_govern::registry::LensKind;
use std::collections::{BTreeMap, BTreeSet};

/// Checks the graph and pins a lens version for each node.
pub(super) fn check<'d>(
    document: &'d LensDocument,
    registry: &'d Registry,
    cx: &mut DocumentReader<'_, '_>,
) -> Option<(Graph, Vec<Applied<'d>>)> {
    let nodes = document.nodes();
    let edges = document.edges();
    let positions = check_nodes(nodes, cx);
    let versions = pin_all(document, registry, cx);
    let wires = check_edges(edges, &positions, cx);
    let versions = versions?;
    let lens =
        Lens { document, nodes, edges, versions: &versions, wires: &wires, positions: &positions };
    let wired = wires.iter().flatten();
    let mut pairs: Vec<(u32, u32)> = wired.map(|wire| (wire.target, wire.source)).collect();
    lens.check_conditions(&mut pairs, cx);
    lens.check_kinds(cx);
    work::check(&lens, registry, &mut pairs, cx);
    bindings::check(&lens, cx);
    lens.check_outputs(cx);
    let ids: Vec<(&str, Span)> = nodes.iter().map(|node| (id(node), span(node))).collect();
    let names: Vec<&str> = ids.iter().map(|(id, _)| *id).collect();
    match Graph::new(&names, &pairs) {
        Ok(graph) => Some((graph, versions)),
        Err(cycles) => {
            let path = |at: usize| (PathPart::Key("nodes"), PathPart::Index(at));
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

fn check_nodes<'d>(
    nodes: &'d [NodeDoc],
    cx: &mut DocumentReader<'_, '_>,
) -> BTreeMap<&'d str, u32> {
    let mut positions = BTreeMap::new();
    for (index, (node, at)) in nodes.iter().zip(0u32..).enumerate() {
        let Some(id) = &node.id else { continue };
        cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(index), PathPart::Key("id")], |cx| {
            names::lens_id(&id.value, id.span, cx);
            if positions.contains_key(id.value.as_str()) {
                let message = format!("a node called `{}` exists already", shorten(&id.value));
                cx.add(Problem::new(Code::DuplicateNodeId, id.span, message));
            }
        });
        positions.entry(id.value.as_str()).or_insert(at);
        if let Some(config) = &node.config {
            let parts = [PathPart::Key("nodes"), PathPart::Index(index), PathPart::Key("config")];
            cx.deeper(&parts, |cx| {
                shared::check_retry(config.on_failure.as_ref(), config.retry.as_ref(), cx);
                let overrides = config.param_overrides.iter().flat_map(|table| &table.0);
                cx.within(PathPart::Key("param_overrides"), |cx| {
                    unique_labels(overrides.map(|(name, _)| name), cx);
                });
            });
        }
    }
    positions
}

/// Rejects names with the same normal form: the result would depend on their order, and the
/// plan's hash does not.
pub(super) fn unique_labels<'a>(
    names: impl Iterator<Item = &'a Spanned<String>>,
    cx: &mut DocumentReader<'_, '_>,
) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in names {
        if let Some(first) = seen.insert(label(&name.value), &name.value) {
            let (first, second) = (shorten(first), shorten(&name.value));
            let message = format!("`{second}` and `{first}` are one label");
            let problem = Problem::new(Code::DuplicateName, name.span, message);
            cx.add(problem.with_hint("labels ignore case and blanks; keep one of them"));
        }
    }
}

/// Finds both ends of every edge; `None` for an edge that lacks one.
fn check_edges(
    edges: &[EdgeDoc],
    positions: &BTreeMap<&str, u32>,
    cx: &mut DocumentReader<'_, '_>,
) -> Vec<Option<Wire>> {
    let mut seen = BTreeSet::new();
    let mut wires = Vec::with_capacity(edges.len());
    for (index, edge) in edges.iter().enumerate() {
        cx.deeper(&[PathPart::Key("edges"), PathPart::Index(index)], |cx| {
            if let Some(id) = &edge.id {
                cx.within(PathPart::Key("id"), |cx| names::edge_id(&id.value, id.span, cx));
                if !seen.insert(id.value.as_str()) {
                    let message = format!("an edge called `{}` exists already", shorten(&id.value));
                    let problem = Problem::new(Code::DuplicateEdgeId, id.span, message);
                    cx.within(PathPart::Key("id"), |cx| cx.add(problem));
                }
            }
            let source = edge.source_node_id.as_ref();
            let source = edge_end(source, "source_node_id", Code::OrphanSource, positions, cx);
            let target = edge.target_node_id.as_ref();
            let target = edge_end(target, "target_node_id", Code::OrphanTarget, positions, cx);
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

/// Finds the node at one end of an edge.
fn edge_end(
    written: Option<&Spanned<String>>,
    key: &'static str,
    code: Code,
    positions: &BTreeMap<&str, u32>,
    cx: &mut DocumentReader<'_, '_>,
) -> Option<u32> {
    let written = written?;
    let found = positions.get(written.value.as_str()).copied();
    if found.is_none() {
        let message = format!("there is no node `{}`", shorten(&written.value));
        let problem = Problem::new(code, written.span, message)
            .with_suggestion(cx.suggest(&written.value, positions.keys().copied()));
        cx.within(PathPart::Key(key), |cx| cx.add(problem));
    }
    found
}

/// Everything that the checks of a lens graph use.
pub(super) struct Lens<'d> {
    pub(super) document: &'d LensDocument,
    pub(super) nodes: &'d [NodeDoc],
    pub(super) edges: &'d [EdgeDoc],
    pub(super) versions: &'d [Applied<'d>],
    /// One for each edge, in document order.
    pub(super) wires: &'d [Option<Wire>],
    pub(super) positions: &'d BTreeMap<&'d str, u32>,
}

impl<'d> Lens<'d> {
    /// Edges with both ends, with their position in the document.
    pub(super) fn wired(&self) -> impl Iterator<Item = (usize, &'d EdgeDoc, Wire)> {
        let edges = self.edges.iter().zip(self.wires).enumerate();
        edges.filter_map(|(index, (edge, wire))| Some((index, edge, (*wire)?)))
    }

    /// The span of an edge's id, else of its source.
    pub(super) fn edge_span(&self, edge: &EdgeDoc) -> Span {
        let ends = edge.source_node_id.as_ref().or(edge.target_node_id.as_ref());
        edge.id.as_ref().or(ends).map_or(Span::default(), |written| written.span)
    }

    /// Checks that conditions have the fields of their type. Checks the names in their
    /// expressions, and makes the target depend on every node that they name.
    fn check_conditions(&self, pairs: &mut Vec<(u32, u32)>, cx: &mut DocumentReader<'_, '_>) {
        for (index, edge) in self.edges.iter().enumerate() {
            let Some(condition) = &edge.condition else { continue };
            let Some(kind) = &condition.value.kind else { continue };
            let target = self.wires[index].map(|wire| wire.target);
            cx.deeper(
                &[PathPart::Key("edges"), PathPart::Index(index), PathPart::Key("condition")],
                |cx| {
                    check_condition(kind, &condition.value, cx);
                    let expr = condition.value.expr.iter().flat_map(|expr| &expr.value.0);
                    for reference in expr.flat_map(Expr::references) {
                        self.check_reference(&reference.path, target, condition.span, pairs, cx);
                    }
                },
            );
        }
    }

    /// Checks a path in an edge's expression: the carried value, a node or a root input.
    fn check_reference(
        &self,
        path: &Path,
        target: Option<u32>,
        span: Span,
        pairs: &mut Vec<(u32, u32)>,
        cx: &mut DocumentReader<'_, '_>,
    ) {
        // The carried value takes precedence over a node named `value`.
        if path.head() == "value" && !path.has_sigil() {
            return;
        }
        if let Some(at) = self.positions.get(path.head()) {
            pairs.extend(target.map(|target| (target, *at)));
        } else if !self.may_be_given(path) {
            let name = given_name(path);
            let message = format!("`{}` is not a node or argument", shorten(name));
            let problem = Problem::new(Code::UnknownIdentifier, span, message);
            cx.add(problem.with_suggestion(cx.suggest(name, self.known_names())));
        }
    }

    pub(super) fn known_names(&self) -> impl Iterator<Item = &'d str> {
        let args = self.document.args.iter().flat_map(Table::names);
        self.positions.keys().copied().chain(args)
    }

    /// Whether the caller may set a name when the run starts. Without declared arguments,
    /// any name is allowed.
    pub(super) fn may_be_given(&self, path: &Path) -> bool {
        let Some(args) = &self.document.args else { return true };
        let all = path.head() == "args" && path.rest().is_empty();
        all || args.names().any(|arg| arg == given_name(path))
    }

    /// Checks that routers have routes and that validators define what a failure does.
    fn check_kinds(&self, cx: &mut DocumentReader<'_, '_>) {
        let mut outgoing: Vec<Vec<(usize, &EdgeDoc)>> = vec![Vec::new(); self.nodes.len()];
        // An edge with a misspelt target is still a route.
        for (index, edge) in self.edges.iter().enumerate() {
            let source = edge.source_node_id.as_ref();
            if let Some(at) = source.and_then(|id| self.positions.get(id.value.as_str())) {
                outgoing[*at as usize].push((index, edge));
            }
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
        cx: &mut DocumentReader<'_, '_>,
    ) {
        if routes.len() < 2 {
            let message = format!(
                "routing node `{}` needs at least two outgoing edges; it has {}",
                id(node),
                routes.len(),
            );
            let problem = Problem::new(Code::RoutingInsufficientEdges, span(node), message);
            cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(at)], |cx| cx.add(problem));
        }
        let mut values = BTreeSet::new();
        for (index, edge) in routes {
            let condition = edge.condition.as_ref().map(|condition| &condition.value);
            // A type that could not be read is reported already.
            if condition.is_some_and(|condition| condition.kind.is_none()) {
                continue;
            }
            let equals = condition.filter(|condition| {
                condition.kind.is_some_and(|kind| kind.value == ConditionType::Equals)
            });
            let (code, message) = match equals.map(|one| one.value.as_ref().map(|v| &v.value)) {
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
            cx.deeper(&[PathPart::Key("edges"), PathPart::Index(*index)], |cx| cx.add(problem));
        }
    }

    /// Checks that the run's outputs read nodes and root inputs.
    fn check_outputs(&self, cx: &mut DocumentReader<'_, '_>) {
        for (name, output) in self.document.outputs.iter().flat_map(|outputs| &outputs.0) {
            for reference in output.value.references() {
                let path = &reference.path;
                if !self.positions.contains_key(path.head()) && !self.may_be_given(path) {
                    let wanted = given_name(path);
                    let message = format!("nothing sets `{}`", shorten(wanted));
                    let problem = Problem::new(Code::UnknownVariable, output.span, message)
                        .with_suggestion(cx.suggest(wanted, self.known_names()));
                    let path = format!("outputs.{}", shorten(&name.value));
                    cx.add_at(problem, path);
                }
            }
        }
    }
}

/// The name of a root input in a path: `x` in `args.x` and in `x`.
pub(super) fn given_name(path: &Path) -> &str {
    match (path.head(), path.rest().first()) {
        ("args", Some(Segment::Key(name))) => name,
        (head, _) => head,
    }
}

/// Checks that a condition has the fields of its type. A type that tests the value alone
/// ignores `value`; an expression must be the only field.
fn check_condition(
    kind: &Spanned<ConditionType>,
    written: &ConditionDoc,
    cx: &mut DocumentReader<'_, '_>,
) {
    use ConditionType::{Contains, Equals, Expression, Present, Truthy};
    let needs = match kind.value {
        Equals | Contains => Some("value"),
        Expression => Some("expr"),
        Present | Truthy => None,
    };
    let value = ("value", written.value.as_ref().map(|value| value.span));
    let expr = ("expr", written.expr.as_ref().map(|expr| expr.span));
    for (field, span) in [value, expr] {
        let (code, span, verb) = match (span, needs) {
            (None, Some(needed)) if needed == field => (Code::MissingField, kind.span, "needs"),
            (Some(span), Some(needed)) if needed != field => {
                (Code::ConflictingFields, span, "does not use")
            }
            (Some(span), None) if field == "expr" => {
                (Code::ConflictingFields, span, "does not use")
            }
            _ => continue,
        };
        let message = format!("a condition of type `{}` {verb} `{field}`", kind.value);
        cx.add(Problem::new(code, span, message));
    }
}

fn check_validator(
    at: usize,
    node: &NodeDoc,
    outgoing: &[(usize, &EdgeDoc)],
    cx: &mut DocumentReader<'_, '_>,
) {
    let policy = node.config.as_ref().is_some_and(|config| config.on_failure.is_some());
    if policy || outgoing.iter().any(|(_, edge)| edge.condition.is_some()) {
        return;
    }
    let message = format!("validation node `{}` has no failure policy", id(node));
    let problem = Problem::new(Code::ValidationMissingPolicy, span(node), message)
        .with_hint("set `config.on_failure`, or put a condition on an edge that leaves it");
    cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(at)], |cx| cx.add(problem));
}
