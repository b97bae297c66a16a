//! One step: reads its fields from the step, the library and the defaults, and checks them.

use super::written::{ForEachDoc, ForEachMap, ItemsDoc, StepDoc};
use super::{NO_DEFAULTS, library};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::{Table, WholeNumber};
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::registry::Registry;
use crate::doc::{names, shared};
use crate::limits::MAX_ITEMS_DEFAULT;
use crate::node::{Entry, Node};
use crate::path::Path;
use crate::span::{Span, Spanned};
use std::collections::BTreeSet;

/// A step as written, with what its checks need.
pub(super) struct StepDraft<'n> {
    pub(super) index: usize,
    pub(super) node: &'n Node<'n>,
    /// The fields of the library and the defaults, including those that the step overrides.
    pub(super) library: &'n [Entry<'n>],
    pub(super) defaults: &'n [Entry<'n>],
    /// Boxed: it is large and moves often.
    pub(super) doc: Box<StepDoc>,
    /// Paths read from text fields, in the order of the fields.
    pub(super) stdin: Option<Path>,
    pub(super) items: Option<Path>,
    /// Set if the library is not loaded, so that not all fields of the step are known.
    pub(super) unresolved: Option<String>,
}

impl<'n> StepDraft<'n> {
    /// The value of a field where this document writes it: in the step, else in the
    /// defaults.
    pub(super) fn field(&self, key: &str) -> Option<&'n Node<'n>> {
        let own = self.node.entries().unwrap_or_default();
        let from = if sets(own, key) {
            own
        } else if sets(self.library, key) {
            return None;
        } else {
            self.defaults
        };
        from.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The step's id; empty if it could not be read.
    pub(super) fn id(&self) -> &str {
        self.doc.id.as_ref().map_or("", |id| id.value.as_str())
    }

    /// The span of the step's id.
    pub(super) fn span(&self) -> Span {
        self.doc.id.as_ref().map_or(self.node.span, |id| id.span)
    }

    /// Whether the step needs an approval.
    pub(super) fn needs_approval(&self) -> bool {
        self.doc.approval.as_ref().is_some_and(|approval| approval.0.required.unwrap_or(true))
    }
}

/// Reads one step.
pub(super) fn read<'n>(
    index: usize,
    node: &'n Node<'n>,
    defaults: &'n [Entry<'n>],
    registry: &'n Registry,
    cx: &mut DocumentReader<'n, '_>,
) -> Option<StepDraft<'n>> {
    let own = cx.map(node)?;
    let mut doc = Box::<StepDoc>::default();
    for entry in own {
        doc.read_entry(entry, cx);
    }
    cx.require(node.span, own, &["id"]);
    let library = library::take_over(&mut doc, own, registry, cx);
    for entry in defaults {
        let is_set = sets(own, &entry.key) || sets(library.fields, &entry.key);
        let known = StepDoc::FIELDS.contains(&&*entry.key) && !NO_DEFAULTS.contains(&&*entry.key);
        if known && !is_set && cx.may_copy(entry) {
            doc.read_entry(entry, cx);
        }
    }
    drop_idle_bounds(&mut doc, own, library.fields);
    let mut draft = StepDraft {
        index,
        node,
        library: library.fields,
        defaults,
        doc,
        stdin: None,
        items: None,
        unresolved: library.unresolved,
    };
    check_fields(&mut draft, cx);
    Some(draft)
}

/// Drops default bounds of `for_each` from steps without it, and from steps with bounds inside
/// it.
fn drop_idle_bounds(doc: &mut StepDoc, own: &[Entry<'_>], library: &[Entry<'_>]) {
    let inside = doc.for_each.as_ref().map(|for_each| &for_each.value.0);
    let by_default = |key: &str| !sets(own, key) && !sets(library, key);
    if by_default("max_parallel") && inside.is_none_or(|map| map.max_parallel.is_some()) {
        doc.max_parallel = None;
    }
    if by_default("max_items") && inside.is_none_or(|map| map.max_items.is_some()) {
        doc.max_items = None;
    }
}

/// Whether a list of entries sets a field.
pub(super) fn sets(entries: &[Entry<'_>], key: &str) -> bool {
    entries.iter().any(|entry| entry.key == key && !entry.value.is_null())
}

/// Checks a step without looking at other steps.
fn check_fields<'n>(draft: &mut StepDraft<'n>, cx: &mut DocumentReader<'n, '_>) {
    if let Some(id) = &draft.doc.id {
        cx.within(PathPart::Key("id"), |cx| names::step_id(&id.value, id.span, cx));
    }
    check_command(draft, cx);
    check_exclusions(draft, cx);
    check_places(draft, cx);
    draft.stdin = draft
        .doc
        .stdin
        .as_ref()
        .and_then(|stdin| cx.within(PathPart::Key("stdin"), |cx| stdin_path(stdin, cx)));
    if let Some(Spanned { value, .. }) = &draft.doc.for_each
        && let Some(ItemsDoc::From(written)) = &value.0.items
    {
        draft.items = cx.within(PathPart::Key("for_each"), |cx| items_path(written, cx));
    }
    check_item_count(draft, cx);
    if draft.doc.inputs.is_none() {
        return;
    }
    let outputs: BTreeSet<&str> = draft.doc.outputs.iter().flat_map(Table::names).collect();
    for (name, _) in draft.doc.inputs.iter().flat_map(|inputs| &inputs.0) {
        if outputs.contains(name.value.as_str()) {
            let message = format!("`{}` is both an input and an output", name.value);
            let problem = Problem::new(Code::InputAlsoOutput, name.span, message).with_hint(
                "an agent that repeats an input may change it; remove it from `outputs` to pass it through",
            );
            let parts = [PathPart::Key("inputs"), PathPart::Name(name.value.as_str().into())];
            cx.deeper(&parts, |cx| cx.add(problem));
        }
    }
}

/// Checks that a literal list is not longer than the step allows.
fn check_item_count<'n>(draft: &StepDraft<'n>, cx: &mut DocumentReader<'n, '_>) {
    let Some(Spanned { value: ForEachDoc(map), span }) = &draft.doc.for_each else { return };
    let Some(ItemsDoc::List(items)) = &map.items else { return };
    let max = draft.doc.max_items.map(|max| max.value).or(map.max_items);
    let max = max.map_or(MAX_ITEMS_DEFAULT, WholeNumber::small);
    if items.len() > max as usize {
        let message = format!("there are {} items; `max_items` is {max}", items.len());
        let problem = Problem::new(Code::BadValue, *span, message);
        cx.within(PathPart::Key("for_each"), |cx| cx.add(problem));
    }
}

/// Checks that a step has a command where it needs one, and that a shell command is safe.
fn check_command<'n>(draft: &StepDraft<'n>, cx: &mut DocumentReader<'n, '_>) {
    let doc = &draft.doc;
    let needed =
        !draft.needs_approval() && doc.workflow_ref.is_none() && draft.unresolved.is_none();
    // A blank command is no command. One that could not be read is reported already, and so
    // is a field that would replace it.
    let blank =
        doc.command.as_ref().is_some_and(|command| command.value.source().trim().is_empty());
    let unread = || {
        let fields = [
            ("command", doc.command.is_none()),
            ("approval", doc.approval.is_none()),
            ("workflow_ref", doc.workflow_ref.is_none()),
            ("library_step", doc.library_step.is_none()),
        ];
        let mut absent = fields.into_iter().filter(|(_, absent)| *absent);
        absent.any(|(key, _)| draft.field(key).is_some_and(|node| !node.is_null()))
    };
    if blank || needed && doc.command.is_none() && !unread() {
        let message = format!("step `{}` has no command", draft.id());
        let problem = Problem::new(Code::MissingCommand, draft.span(), message)
            .with_hint("add `command`, or `approval`, `workflow_ref` or `library_step`");
        cx.add(problem);
    }
    let (Some(command), Some("shell")) = (&doc.command, doc.agent.as_deref()) else { return };
    let (code, faults) = match command.value.shell() {
        Err(faults) => (Code::UnsafeReference, faults),
        Ok(_) => (Code::DataAsCode, command.value.shell_code()),
    };
    cx.within(PathPart::Key("command"), |cx| {
        for fault in faults {
            let span = located(draft.field("command"), command.span, fault.span, cx);
            cx.add(Problem::from_fault(code, span, fault));
        }
    });
}

/// The span of a part of a field's text: exact if the step sets the field, else the whole
/// field.
pub(super) fn located(
    node: Option<&Node<'_>>,
    whole: Span,
    part: Span,
    cx: &DocumentReader<'_, '_>,
) -> Span {
    match node {
        Some(node) if node.span == whole => node.locate(cx.source, part),
        _ => whole,
    }
}

/// Checks fields that exclude each other, or that need another field.
fn check_exclusions<'n>(draft: &StepDraft<'n>, cx: &mut DocumentReader<'n, '_>) {
    let doc = &draft.doc;
    shared::check_retry(doc.on_failure.as_ref(), doc.retry.as_ref(), cx);
    let mut clash = |span: Span, key: &'static str, message: String| {
        cx.within(PathPart::Key(key), |cx| {
            cx.add(Problem::new(Code::ConflictingFields, span, message));
        });
    };
    if let (Some(reference), Some(_)) = (&doc.workflow_ref, &doc.command) {
        let message = "a step runs either a command or another workflow".to_owned();
        clash(reference.span, "workflow_ref", message);
    }
    if let (None, Some(args)) = (&doc.workflow_ref, &doc.args) {
        clash(
            args.span,
            "args",
            "`args` are for another workflow; there is no `workflow_ref`".to_owned(),
        );
    }
    let bounds = doc.for_each.as_ref().map(|for_each| &for_each.value.0);
    let inside = |has: fn(&ForEachMap) -> bool| bounds.map(has);
    for (key, span, inside) in [
        (
            "max_parallel",
            doc.max_parallel.map(|it| it.span),
            inside(|map| map.max_parallel.is_some()),
        ),
        ("max_items", doc.max_items.map(|it| it.span), inside(|map| map.max_items.is_some())),
    ] {
        match (span, inside) {
            (Some(span), None) => {
                clash(span, key, format!("`{key}` belongs to `for_each`, which is not set"));
            }
            (Some(span), Some(true)) => {
                clash(span, key, format!("`{key}` is also set inside `for_each`"));
            }
            _ => {}
        }
    }
}

/// Checks the working directory and the variables of shell steps.
fn check_places<'n>(draft: &StepDraft<'n>, cx: &mut DocumentReader<'n, '_>) {
    if let Some(cwd) = &draft.doc.cwd {
        let climbs = cwd.value.split('/').any(|part| part == "..");
        if climbs || cwd.value.starts_with('/') || cwd.value.contains('\0') {
            let message = "the working directory must lie inside the run's workspace";
            let problem = Problem::new(Code::BadValue, cwd.span, message)
                .with_hint("use a relative path without `..`");
            cx.within(PathPart::Key("cwd"), |cx| cx.add(problem));
        }
    }
    for (name, value) in draft.doc.env.iter().flat_map(|env| &env.0) {
        let mut letters = name.value.bytes();
        let fits = letters.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
            && letters.all(|b| b == b'_' || b.is_ascii_alphanumeric());
        let message = if !fits {
            format!("`{}` cannot be the name of a variable", crate::visible::shorten(&name.value))
        } else if name.value.starts_with("SLUICE_") {
            "names that begin with `SLUICE_` are reserved for the engine".to_owned()
        } else if value.0.contains('\0') {
            "a variable cannot hold a NUL character".to_owned()
        } else {
            continue;
        };
        let problem = Problem::new(Code::BadValue, name.span, message);
        let parts = [PathPart::Key("env"), PathPart::Name(name.value.as_str().into())];
        cx.deeper(&parts, |cx| cx.add(problem));
    }
}

/// `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`.
fn stdin_path(written: &Spanned<String>, cx: &mut DocumentReader<'_, '_>) -> Option<Path> {
    let path = Path::parse(&written.value).ok().filter(|path| {
        use crate::path::Segment::Key;
        path.has_sigil()
            && match path.rest() {
                [Key(word)] => matches!(word.as_str(), "stdout" | "json" | "approved" | "outputs"),
                [Key(word), ..] => word == "outputs",
                _ => false,
            }
    });
    if path.is_none() {
        let message =
            format!("`{}` does not name a step's value", crate::visible::shorten(&written.value));
        let problem = Problem::new(Code::BadReference, written.span, message)
            .with_hint("write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`");
        cx.add(problem);
    }
    path
}

/// A path, with or without `$` or `${…}`.
fn items_path(written: &Spanned<String>, cx: &mut DocumentReader<'_, '_>) -> Option<Path> {
    let text = written.value.trim();
    let inner = text.strip_prefix("${").and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    match Path::parse(inner.trim()) {
        Ok(path) => Some(path),
        Err(fault) => {
            let problem = Problem::from_fault(Code::BadReference, written.span, fault);
            cx.add(problem.with_hint("write `$id.outputs.list`, `$args.list` or a literal list"));
            None
        }
    }
}
