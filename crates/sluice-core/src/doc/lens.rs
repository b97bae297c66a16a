//! Lens documents: nodes apply lenses, edges carry values between them.
//!
//! `written` declares the format, `check` checks nodes and edges against each other, `build`
//! makes the plan.

mod bindings;
mod build;
mod check;
mod pin;
mod work;
pub(crate) mod written;

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::registry::Registry;
use crate::limits::{EDGES_MAX, NAME_CHARS_MAX, STEPS_MAX};
use crate::node::Node;
use crate::plan::Plan;
use crate::span::Span;
use written::LensDocument;

pub use pin::newest_version;

/// Reads a document and resolves it to a plan. Returns no plan if there is an error.
pub(crate) fn resolve<'n>(
    root: &'n Node<'n>,
    registry: &'n Registry,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<Plan> {
    let mut document = LensDocument::read(root, cx)?;
    if let Some(team) = &mut document.team {
        cx.within(PathPart::Key("team"), |cx| team.settle(registry, cx));
    }
    check_top(root, &document, cx)?;
    let found = check::check(&document, registry, cx);
    if cx.problems.has_errors() {
        return None;
    }
    let (graph, versions) = found.expect("nodes without errors have a graph");
    Some(build::plan(&document, &versions, graph))
}

fn check_top<'n>(
    root: &'n Node<'n>,
    document: &LensDocument,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<()> {
    if let Some(name) = &document.name {
        let problem = if name.value.trim().is_empty() {
            Some("the name is empty".to_owned())
        } else if name.value.chars().count() > NAME_CHARS_MAX {
            Some(format!("the name has over {NAME_CHARS_MAX} characters"))
        } else if name.value.chars().any(char::is_control) {
            Some("the name contains a control character".to_owned())
        } else {
            None
        };
        if let Some(message) = problem {
            let problem = Problem::new(Code::BadName, name.span, message);
            cx.within(PathPart::Key("name"), |cx| cx.add(problem));
        }
    }
    for (name, _) in document.args.iter().flat_map(|table| &table.0) {
        cx.within(PathPart::Key("args"), |cx| names::field(&name.value, name.span, cx));
    }
    let args = document.args.iter().flat_map(|table| &table.0).map(|(name, _)| name);
    cx.within(PathPart::Key("args"), |cx| check::unique_labels(args, cx));
    for (id, _) in document.lenses.iter().flat_map(|table| &table.0) {
        cx.within(PathPart::Key("lenses"), |cx| names::lens_id(&id.value, id.span, cx));
    }
    let span = |key: &str| root.get(key).map_or(root.span, |node| node.span);
    document.nodes.as_ref()?;
    let nodes = document.nodes();
    bounded("nodes", nodes.len(), STEPS_MAX, span("nodes"), cx)?;
    bounded("edges", document.edges().len(), EDGES_MAX, span("edges"), cx)?;
    if nodes.is_empty() {
        let problem = Problem::new(Code::NoSteps, span("nodes"), "there are no nodes");
        cx.within(PathPart::Key("nodes"), |cx| cx.add(problem));
        return None;
    }
    Some(())
}

fn bounded(
    what: &'static str,
    count: usize,
    max: usize,
    span: Span,
    cx: &mut DocumentReader<'_, '_>,
) -> Option<()> {
    if count <= max {
        return Some(());
    }
    let message = format!("there are {count} {what}; the limit is {max}");
    cx.within(PathPart::Key(what), |cx| cx.add(Problem::new(Code::TooManySteps, span, message)));
    None
}
