//! What a node does: it applies a lens, runs another workflow, or requests an approval.

use super::bindings;
use super::check::{Lens, given_name, id, span};
use super::written::NodeDoc;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::registry::Registry;
use crate::doc::{names, shared};
use crate::span::{Span, Spanned};
use crate::template::Template;
use crate::visible::shorten;
use std::collections::BTreeSet;

/// Output names that every approval decision sets.
const OF_ANSWERS: [&str; 4] = ["approved", "at", "by", "comment"];

/// Checks that every node does exactly one thing and that what it names exists. Makes a node
/// depend on every node that the summary of its approval reads.
pub(super) fn check(
    lens: &Lens<'_>,
    registry: &Registry,
    pairs: &mut Vec<(u32, u32)>,
    cx: &mut DocumentReader<'_, '_>,
) {
    let bound = bindings::bound(lens);
    for ((at, node), bound) in (0u32..).zip(lens.nodes).zip(&bound) {
        cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(at as usize)], |cx| {
            check_exclusions(node, cx);
            if let Some(reference) = node.workflow() {
                cx.deeper(&[PathPart::Key("config"), PathPart::Key("workflow_ref")], |cx| {
                    shared::check_workflow_ref(reference, registry, cx);
                });
            }
            check_args(node, cx);
            check_schema(node, cx);
            let asked = node.human_input().and_then(|asked| asked.value.summary.as_ref());
            let approved = node.approval().and_then(|asked| asked.summary.as_ref());
            for (key, summary) in [("human_input", asked), ("approval", approved)] {
                let Some(summary) = summary else { continue };
                let parts = [PathPart::Key("config"), PathPart::Key(key), PathPart::Key("summary")];
                cx.deeper(&parts, |cx| check_summary(lens, at, summary, bound, pairs, cx));
            }
        });
    }
}

/// Checks that a node does one thing, without fields of other kinds of nodes.
fn check_exclusions(node: &NodeDoc, cx: &mut DocumentReader<'_, '_>) {
    // A node without an id could not be read, or that is reported already.
    if node.id.is_some() && !node.does_something() {
        let message = format!("node `{}` does nothing: `lens_id` is missing", shorten(id(node)));
        let hint = "name a lens, or set `workflow_ref`, `human_input` or `approval` in `config`";
        cx.add(Problem::new(Code::MissingField, span(node), message).with_hint(hint));
    }
    let mut clash = |key: &'static str, span: Span, message: &str| {
        cx.deeper(&[PathPart::Key("config"), PathPart::Key(key)], |cx| {
            cx.add(Problem::new(Code::ConflictingFields, span, message));
        });
    };
    let lens = node.lens();
    let (workflow, asks) = (node.workflow(), node.human_input());
    if let (Some(workflow), Some(_)) = (workflow, lens) {
        clash("workflow_ref", workflow.span, "a node applies a lens or runs another workflow");
    }
    if let Some(asks) = asks
        && (lens.is_some() || workflow.is_some())
    {
        clash("human_input", asks.span, "a node with `human_input` cannot do anything else");
    }
    if let (Some(asks), Some(_)) = (asks, node.approval()) {
        let message = "`human_input` is already an approval; set `approvers` in it";
        clash("human_input", asks.span, message);
    }
    let config = node.config.as_ref();
    let args = config.and_then(|config| config.args.as_ref());
    if let (Some(args), None) = (args, config.and_then(|config| config.workflow_ref.as_ref())) {
        let message = "`args` are for another workflow; there is no `workflow_ref`";
        clash("args", args.span, message);
    }
    let overrides = config.and_then(|config| config.param_overrides.as_ref());
    if let (Some((first, _)), None) =
        (overrides.and_then(|table| table.0.first()), node.lens_id.as_ref())
    {
        let message = "`param_overrides` bind the placeholders of a lens; there is no `lens_id`";
        clash("param_overrides", first.span, message);
    }
    if let (Some(version), None) = (&node.version_id, &node.lens_id) {
        let message = "`version_id` is of a lens; there is no `lens_id`";
        let problem = Problem::new(Code::ConflictingFields, version.span, message);
        cx.within(PathPart::Key("version_id"), |cx| cx.add(problem));
    }
}

/// Warns about `${…}` references, which are plain text in the arguments of a node.
fn check_args(node: &NodeDoc, cx: &mut DocumentReader<'_, '_>) {
    let args = node.config.as_ref().and_then(|config| config.args.as_ref());
    for (name, tree) in args.iter().flat_map(|args| &args.value.0) {
        if tree.templates().iter().any(|template| template.source().contains("${")) {
            let message = "`${…}` is plain text in the arguments of a node, which read its labels";
            let problem = Problem::new(Code::UnknownVariable, name.span, message)
                .with_hint("wire the value to a label of the node, and write `[[label]]`");
            let parts = [
                PathPart::Key("config"),
                PathPart::Key("args"),
                PathPart::Name(name.value.as_str().into()),
            ];
            cx.deeper(&parts, |cx| cx.add(problem));
        }
    }
}

/// Checks that the values requested from a person have names that are not reserved.
fn check_schema(node: &NodeDoc, cx: &mut DocumentReader<'_, '_>) {
    let Some(asked) = node.human_input() else { return };
    let Some(schema) = &asked.value.schema else { return };
    let parts = [PathPart::Key("config"), PathPart::Key("human_input"), PathPart::Key("schema")];
    cx.deeper(&parts, |cx| {
        if schema.names().next().is_none() {
            let message = "there are no values to request";
            let problem = Problem::new(Code::BadValue, asked.span, message);
            cx.add(problem.with_hint("use `approval` to request a decision without values"));
        }
        for (name, _) in &schema.0 {
            cx.within(PathPart::Name(name.value.as_str().into()), |cx| {
                names::field(&name.value, name.span, cx);
                if OF_ANSWERS.contains(&name.value.as_str()) {
                    let message = format!("`{}` is already part of every approval", name.value);
                    cx.add(Problem::new(Code::ReservedName, name.span, message));
                }
            });
        }
    });
}

/// Checks that a summary reads labels of the node, nodes and root inputs.
fn check_summary(
    lens: &Lens<'_>,
    at: u32,
    summary: &Spanned<Template>,
    bound: &BTreeSet<String>,
    pairs: &mut Vec<(u32, u32)>,
    cx: &mut DocumentReader<'_, '_>,
) {
    for reference in summary.value.references() {
        let path = &reference.path;
        if bound.contains(path.head()) && !path.has_sigil() {
            continue;
        }
        if let Some(on) = lens.positions.get(path.head()) {
            pairs.push((at, *on));
        } else if !lens.may_be_given(path) {
            let name = given_name(path);
            let message = format!("nothing sets `{}`", shorten(name));
            let likely = lens.known_names().chain(bound.iter().map(String::as_str));
            let problem = Problem::new(Code::UnknownVariable, summary.span, message);
            cx.add(problem.with_suggestion(cx.suggest(name, likely)));
        }
    }
}
