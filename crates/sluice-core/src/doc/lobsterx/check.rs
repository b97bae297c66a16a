//! Checks the steps against each other: references, names, order.

use super::advice;
use super::declared_names::DeclaredNames;
use super::step::{StepDraft, located};
use super::unexpanded;
use super::written::{Document, ItemsDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::registry::Registry;
use crate::doc::{names, shared};
use crate::node::{Kind, Node};
use crate::path::{Path, Reference, Segment};
use crate::plan::graph::Graph;
use crate::span::{Span, Spanned};
use crate::template::tree::TemplateTree;
use std::collections::BTreeSet;

/// Checks the steps against each other and sorts them. Returns no graph if ids or references
/// are broken.
pub(super) fn check<'n>(
    root: &'n Node<'n>,
    document: &Document,
    drafts: &[StepDraft<'n>],
    registry: &Registry,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<Graph> {
    let known = DeclaredNames::new(document, drafts);
    report_duplicates(drafts, &known, cx);
    let mut edges = Vec::new();
    for (at, draft) in (0u32..).zip(drafts) {
        cx.deeper(&[PathPart::Key("steps"), PathPart::Index(draft.index)], |cx| {
            let mut check = StepCheck { at, draft, drafts, known: &known, edges: &mut edges, cx };
            check.references();
            check.unexpanded();
            check.names(registry);
        });
    }
    advice::unused_roles(document, drafts, cx);
    check_outputs(root, document, drafts, &known, cx);
    let ids: Vec<(&str, Span)> = drafts.iter().map(|draft| (draft.id(), draft.span())).collect();
    let names: Vec<&str> = ids.iter().map(|(id, _)| *id).collect();
    match Graph::new(&names, &edges) {
        Ok(graph) => {
            advice::unprotected_steps(drafts, &graph, cx);
            advice::rejected_branches(drafts, &known, &graph, cx);
            Some(graph)
        }
        Err(cycles) => {
            let path = |at: usize| (PathPart::Key("steps"), PathPart::Index(drafts[at].index));
            shared::report_cycles(&cycles, &ids, path, cx);
            None
        }
    }
}

fn report_duplicates<'n>(
    drafts: &[StepDraft<'n>],
    known: &DeclaredNames<'_>,
    cx: &mut DocumentReader<'n, '_>,
) {
    for (at, draft) in (0u32..).zip(drafts) {
        let (Some(id), Some(first)) = (&draft.doc.id, known.steps.get(draft.id())) else {
            continue;
        };
        if *first != at {
            let message = format!("a step called `{}` exists already", id.value);
            let problem = Problem::new(Code::DuplicateStepId, id.span, message);
            cx.within(PathPart::Key("steps"), |cx| {
                cx.within(PathPart::Index(draft.index), |cx| {
                    cx.within(PathPart::Key("id"), |cx| cx.add(problem));
                });
            });
        }
    }
}

/// Where a path is used, which decides the names that it may contain.
#[derive(Clone, Copy, PartialEq)]
enum PathUse {
    Condition,
    Criterion,
    Template,
}

struct StepCheck<'a, 'n, 'p> {
    at: u32,
    draft: &'a StepDraft<'n>,
    drafts: &'a [StepDraft<'n>],
    known: &'a DeclaredNames<'a>,
    /// Pairs `(step, dependency)` found so far.
    edges: &'a mut Vec<(u32, u32)>,
    cx: &'a mut DocumentReader<'n, 'p>,
}

impl<'n> StepCheck<'_, 'n, '_> {
    /// Checks every reference to another step.
    fn references(&mut self) {
        let (draft, doc) = (self.draft, &self.draft.doc);
        for (index, id) in doc.depends_on.iter().flatten().enumerate() {
            if let Some(on) = self.known.steps.get(id.value.as_str()) {
                self.depend(*on);
                continue;
            }
            let index = self.index_of("depends_on", id.span, index);
            self.at(&[PathPart::Key("depends_on"), PathPart::Index(index)], |check| {
                check.step(&id.value, id.span);
            });
        }
        if let (Some(path), Some(written)) = (&draft.stdin, &doc.stdin) {
            self.at(&[PathPart::Key("stdin")], |check| check.step(path.head(), written.span));
        }
        for (name, input) in doc.inputs.iter().flat_map(|inputs| &inputs.0) {
            let parts = [PathPart::Key("inputs"), PathPart::Name(name.value.as_str().into())];
            for source in input.0.from.iter().flat_map(|from| &from.0) {
                self.at(&parts, |check| check.source(&name.value, source));
            }
        }
        if let (Some(path), Some(written)) = (&draft.items, &doc.for_each)
            && let Some(ItemsDoc::From(items)) = &written.value.0.items
        {
            self.at(&[PathPart::Key("for_each")], |check| check.items(path, items.span));
        }
        if let Some(condition) = &doc.condition {
            let references = condition.value.references();
            self.paths(
                &[PathPart::Key("condition")],
                PathUse::Condition,
                condition.span,
                references,
            );
        }
        for (index, criterion) in doc.success_criteria.iter().flatten().enumerate() {
            let index = self.index_of("success_criteria", criterion.span, index);
            let parts = [PathPart::Key("success_criteria"), PathPart::Index(index)];
            let references = criterion.value.references();
            self.paths(&parts, PathUse::Criterion, criterion.span, references);
        }
        if let Some(command) = &doc.command {
            let references = command.value.references();
            self.paths(&[PathPart::Key("command")], PathUse::Template, command.span, references);
        }
        let summary = doc.approval.as_ref().and_then(|approval| approval.0.summary.as_ref());
        if let Some(summary) = summary {
            let parts = [PathPart::Key("approval"), PathPart::Key("summary")];
            self.paths(&parts, PathUse::Template, summary.span, summary.value.references());
        }
        if let Some(args) = &doc.args {
            let node = draft.field("args");
            for (name, tree) in &args.value.0 {
                let mut parts =
                    vec![PathPart::Key("args"), PathPart::Name(name.value.as_str().into())];
                let node = node.and_then(|node| node.get(&name.value));
                self.tree(&mut parts, tree, args.span, node);
            }
        }
    }

    /// Checks every template of an argument at its own place.
    fn tree(
        &mut self,
        parts: &mut Vec<PathPart<'n>>,
        tree: &TemplateTree,
        whole: Span,
        node: Option<&Node<'n>>,
    ) {
        let whole = node.map_or(whole, |node| node.span);
        match tree {
            TemplateTree::Template(template) => self.at(parts, |check| {
                for reference in template.references() {
                    check.path(reference, PathUse::Template, whole, node);
                }
            }),
            TemplateTree::List(trees) => {
                for (index, tree) in trees.iter().enumerate() {
                    parts.push(PathPart::Index(index));
                    self.tree(parts, tree, whole, node.and_then(|node| node.item(index)));
                    parts.pop();
                }
            }
            TemplateTree::Map(trees) => {
                for (key, tree) in trees {
                    parts.push(PathPart::Name(key.as_str().into()));
                    self.tree(parts, tree, whole, node.and_then(|node| node.get(key)));
                    parts.pop();
                }
            }
            TemplateTree::Literal(_) => {}
        }
    }

    /// The position of an item in the written list, which also has items that could not be
    /// read.
    fn index_of(&self, list: &str, span: Span, read: usize) -> usize {
        let written = self.draft.field(list).map(|node| &node.kind);
        let Some(Kind::List(items)) = written else { return read };
        items.iter().position(|item| item.span == span).unwrap_or(read)
    }

    /// Runs `check` with these parts added to the path.
    fn at(&mut self, parts: &[PathPart<'n>], check: impl FnOnce(&mut StepCheck<'_, 'n, '_>)) {
        let StepCheck { at, draft, drafts, known, edges, cx } = self;
        let at = *at;
        cx.deeper(parts, |cx| check(&mut StepCheck { at, draft, drafts, known, edges, cx }));
    }

    /// Checks that a step exists, and adds the dependency on it.
    fn step(&mut self, id: &str, span: Span) {
        match self.known.steps.get(id) {
            Some(at) => self.depend(*at),
            None => {
                let message = format!("there is no step `{}`", crate::visible::shorten(id));
                let likely = self.cx.suggest(id, self.known.steps.keys().copied());
                self.cx.add(Problem::new(Code::UnknownStep, span, message).with_suggestion(likely));
            }
        }
    }

    fn depend(&mut self, on: u32) {
        self.edges.push((self.at, on));
    }

    /// Checks one `from` of an input: `id.field` or `args.name`.
    fn source(&mut self, input: &str, written: &Spanned<String>) {
        let path = match Path::parse(&written.value) {
            Ok(path) if !path.rest().is_empty() => path,
            _ => {
                let shown = crate::visible::shorten(&written.value);
                let message = format!("`{shown}` does not name a step's value");
                let hint = format!("write `{input}: id.field`");
                let problem = Problem::new(Code::BadReference, written.span, message);
                return self.cx.add(problem.with_hint(hint));
            }
        };
        match path.head() {
            "args" => self.argument(&path, written.span, Code::UnknownIdentifier),
            head => self.step(head, written.span),
        }
    }

    /// Checks the source of a `for_each`: a step's list, an argument or a variable.
    fn items(&mut self, path: &Path, span: Span) {
        match path.head() {
            "args" => self.argument(path, span, Code::UnknownIdentifier),
            _ if self.known.is_value(path) && !self.known.steps.contains_key(path.head()) => {}
            head => self.step(head, span),
        }
    }

    fn argument(&mut self, path: &Path, span: Span, code: Code) {
        let Some(Segment::Key(name)) = path.rest().first() else { return };
        if !self.known.args.contains(name.as_str()) {
            let message = format!("there is no argument `{name}`");
            let likely = self.cx.suggest(name, self.known.args.iter().copied());
            self.cx.add(Problem::new(code, span, message).with_suggestion(likely));
        }
    }

    /// Checks the paths of an expression or a template.
    fn paths<'e>(
        &mut self,
        parts: &[PathPart<'n>],
        place: PathUse,
        whole: Span,
        references: impl Iterator<Item = &'e Reference>,
    ) {
        let mut references = references.peekable();
        if references.peek().is_none() {
            return;
        }
        let node = parts.iter().fold(None, |node: Option<&Node<'n>>, part| match part {
            PathPart::Key(key) => node.map_or_else(|| self.draft.field(key), |node| node.get(key)),
            PathPart::Name(key) => node?.get(key),
            PathPart::Index(index) => node?.item(*index),
        });
        self.at(parts, |check| {
            for reference in references {
                check.path(reference, place, whole, node);
            }
        });
    }

    fn path(
        &mut self,
        reference: &Reference,
        place: PathUse,
        whole: Span,
        node: Option<&Node<'_>>,
    ) {
        let path = &reference.path;
        let head = path.head();
        let local = self.draft.doc.inputs.iter().any(|inputs| inputs.names().any(|n| n == head));
        let for_each = self.draft.doc.for_each.is_some();
        let own = head == self.draft.id();
        match head {
            "outputs" if place == PathUse::Criterion => {
                self.declared(self.at, path.rest().first(), reference.span, whole, node);
            }
            "item" | "index" if for_each => {}
            _ if local && place == PathUse::Template => {}
            "args" => {
                let span = located(node, whole, reference.span, self.cx);
                let code = match place {
                    PathUse::Template => Code::UnknownVariable,
                    PathUse::Condition | PathUse::Criterion => Code::UnknownIdentifier,
                };
                self.argument(path, span, code);
            }
            _ if own && place == PathUse::Criterion => {
                self.declared(self.at, output_of(path), reference.span, whole, node);
            }
            _ => match self.known.steps.get(head).copied() {
                Some(at) => {
                    self.depend(at);
                    self.declared(at, output_of(path), reference.span, whole, node);
                }
                None if self.known.is_value(path) => {}
                None => {
                    let span = located(node, whole, reference.span, self.cx);
                    self.unknown(path, place, span, local);
                }
            },
        }
    }

    /// Reports an undefined name: an expression with it never does what the author wants,
    /// and a template with it fails the step.
    fn unknown(&mut self, path: &Path, place: PathUse, span: Span, local: bool) {
        if self.known.is_open() {
            return;
        }
        let head = path.head();
        let shown = crate::visible::shorten(head);
        let hint = match head {
            "item" | "index" => Some(format!("`{head}` exists only in a step with `for_each`")),
            "outputs" => Some("name the step: `id.outputs.field`".to_owned()),
            _ if local => Some("an input is not bound yet; name the step it comes from".to_owned()),
            _ => self.known.suggestion(head, self.cx).map(|name| format!("did you mean `{name}`?")),
        };
        let (code, message) = match place {
            PathUse::Template => (Code::UnknownVariable, format!("nothing sets `{shown}`")),
            PathUse::Condition | PathUse::Criterion => {
                (Code::UnknownIdentifier, format!("`{shown}` is not a step, variable or argument"))
            }
        };
        let problem = Problem::new(code, span, message);
        self.cx.add(match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        });
    }

    /// Warns about an output that its step does not declare.
    fn declared(
        &mut self,
        at: u32,
        field: Option<&Segment>,
        part: Span,
        whole: Span,
        node: Option<&Node<'_>>,
    ) {
        let Some(Segment::Key(field)) = field else { return };
        let step = &self.drafts[at as usize];
        let span = || located(node, whole, part, self.cx);
        // The success criteria of a step are about the outputs of one instance.
        let problem = if at == self.at {
            let missing = !self.known.may_answer(at, step, field);
            missing.then(|| unanswered(step, field, span(), self.cx))
        } else {
            let missing = !self.known.may_have(at, step, field);
            missing.then(|| undeclared(step, field, span(), self.cx))
        };
        if let Some(problem) = problem {
            self.cx.add(problem);
        }
    }

    /// Warns about text in a command that looks like a reference but is not replaced.
    fn unexpanded(&mut self) {
        let Some(command) = &self.draft.doc.command else { return };
        let node = self.draft.field("command");
        for one in unexpanded::find(command.value.source(), self.draft, self.known) {
            let written = crate::visible::shorten(&command.value.source()[one.range.clone()]);
            let message = format!("`{written}` is not replaced by a value");
            let part = Span::new(one.range.start, one.range.end);
            let span = located(node, command.span, part, self.cx);
            let problem = Problem::new(Code::UnexpandedReference, span, message)
                .with_hint(format!("write `{}`", one.reference));
            self.at(&[PathPart::Key("command")], |check| check.cx.add(problem));
        }
    }

    /// Checks names of things other than steps.
    fn names(&mut self, registry: &Registry) {
        let doc = &self.draft.doc;
        if let Some(phase) = &doc.phase {
            self.declared_name("phase", phase, &self.known.phases, Code::UnknownPhase);
        }
        if let Some(role) = &doc.role {
            self.declared_name("role", role, &self.known.roles, Code::UnknownRole);
        }
        let outputs = doc.outputs.iter().flat_map(|outputs| &outputs.0);
        let outputs = outputs.map(|(name, _)| ("outputs", name));
        let inputs = doc.inputs.iter().flat_map(|inputs| &inputs.0);
        for (key, name) in outputs.chain(inputs.map(|(name, _)| ("inputs", name))) {
            if !names::is_field(&name.value) {
                let parts = [PathPart::Key(key), PathPart::Name(name.value.as_str().into())];
                self.at(&parts, |check| names::field(&name.value, name.span, check.cx));
            }
        }
        if let Some(reference) = &doc.workflow_ref {
            self.at(&[PathPart::Key("workflow_ref")], |check| {
                shared::check_workflow_ref(reference, registry, check.cx);
            });
        }
    }

    fn declared_name(
        &mut self,
        what: &'static str,
        name: &Spanned<String>,
        declared: &BTreeSet<&str>,
        code: Code,
    ) {
        if declared.contains(name.value.as_str()) {
            return;
        }
        let shown = crate::visible::shorten(&name.value);
        let problem =
            Problem::new(code, name.span, format!("the {what} `{shown}` is not declared"));
        let problem = match self.cx.suggest(&name.value, declared.iter().copied()) {
            Some(likely) => problem.with_suggestion(Some(likely)),
            None => problem.with_hint(format!("declare it under `{what}s`")),
        };
        self.at(&[PathPart::Key(what)], |check| check.cx.add(problem));
    }
}

/// The problem that a step has no such output, with a suggestion.
fn undeclared(
    step: &StepDraft<'_>,
    field: &str,
    span: Span,
    cx: &DocumentReader<'_, '_>,
) -> Problem {
    let problem = unanswered(step, field, span, cx);
    let (id, outputs) = (step.id(), &step.doc.outputs);
    if step.doc.for_each.is_some() {
        let declared = outputs.iter().flat_map(Table::names).any(|name| name == field);
        let below = if declared { format!(".{field}") } else { String::new() };
        return problem.with_hint(format!("write `{id}.items`, or `{id}.items[0]{below}`"));
    }
    if step.doc.command.is_some() && outputs.is_none() {
        let hint = format!("declare it under `outputs`; the text of `{id}` is `{id}.stdout`");
        return problem.with_hint(hint);
    }
    problem
}

/// The problem that one instance of a step has no such output.
fn unanswered(
    step: &StepDraft<'_>,
    field: &str,
    span: Span,
    cx: &DocumentReader<'_, '_>,
) -> Problem {
    let shown = crate::visible::shorten(field);
    let message = format!("step `{}` declares no output `{shown}`", step.id());
    let likely = cx.suggest(field, step.doc.outputs.iter().flat_map(Table::names));
    Problem::new(Code::UndeclaredOutput, span, message).with_suggestion(likely)
}

/// The output that a path below a step names: `id.field` or `id.outputs.field`.
fn output_of(path: &Path) -> Option<&Segment> {
    match path.rest() {
        [Segment::Key(word), rest @ ..] if word == "outputs" => rest.first(),
        rest => rest.first(),
    }
}

/// Checks the run's outputs like any template.
fn check_outputs<'n>(
    root: &'n Node<'n>,
    document: &Document,
    drafts: &[StepDraft<'_>],
    known: &DeclaredNames<'_>,
    cx: &mut DocumentReader<'n, '_>,
) {
    let nodes = root.get("outputs");
    for (name, output) in document.outputs.iter().flat_map(|outputs| &outputs.0) {
        let node = nodes.and_then(|nodes| nodes.get(&name.value));
        for reference in output.value.references() {
            let path = &reference.path;
            let head = path.head();
            let span = located(node, output.span, reference.span, cx);
            let unknown = |message, likely| {
                Problem::new(Code::UnknownVariable, span, message).with_suggestion(likely)
            };
            let problem = match (path.rest().first(), known.steps.get(head)) {
                (Some(Segment::Key(arg)), _) if head == "args" => {
                    if known.args.contains(arg.as_str()) {
                        continue;
                    }
                    let likely = cx.suggest(arg, known.args.iter().copied());
                    unknown(
                        format!("there is no argument `{}`", crate::visible::shorten(arg)),
                        likely,
                    )
                }
                (_, Some(at)) => {
                    let Some(Segment::Key(field)) = output_of(path) else { continue };
                    let step = &drafts[*at as usize];
                    if known.may_have(*at, step, field) {
                        continue;
                    }
                    undeclared(step, field, span, cx)
                }
                _ if known.is_value(path) => continue,
                _ => {
                    let message = format!("nothing sets `{}`", crate::visible::shorten(head));
                    unknown(message, known.suggestion(head, cx))
                }
            };
            let parts = [PathPart::Key("outputs"), PathPart::Name(name.value.as_str().into())];
            cx.deeper(&parts, |cx| cx.add(problem));
        }
    }
}
