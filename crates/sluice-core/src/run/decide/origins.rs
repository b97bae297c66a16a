//! The origins of values: steps of this run or of another, or the caller.

use crate::edge::key::OutputKey;
use crate::id::RunId;
use crate::journal::event::Provenance;
use crate::origin::{Labels, SourceClass};
use crate::outputs::coerce::Coercion;
use crate::path::Path;
use crate::plan::step::{Edge, Step};
use crate::run::state::Run;
use crate::template::Template;
use std::collections::BTreeSet;

/// The transform of a value whose source failed.
const SUBSTITUTED: &str = "substitute_default";

/// The origins of the values of one step.
pub(crate) struct Origins<'t> {
    run: &'t Run,
    pub(crate) found: Vec<Provenance>,
    pub(crate) labels: Labels,
    /// Everything in `found`, so that nothing is noted twice.
    seen: BTreeSet<(Option<RunId>, String, String, String)>,
}

impl<'t> Origins<'t> {
    pub(crate) fn new(run: &'t Run) -> Origins<'t> {
        let (found, labels, seen) = (Vec::new(), Labels::default(), BTreeSet::new());
        Origins { run, found, labels, seen }
    }

    /// Notes everything that a template reads, except the inputs of the step: they are noted
    /// already.
    pub(crate) fn note_all(&mut self, template: &Template, step: &Step, target: &str) {
        for reference in template.references() {
            let path = &reference.path;
            if path.has_sigil() || !step.inputs.contains_key(path.head()) {
                self.note(path, target, None);
            }
        }
    }

    /// Notes everything that a template without a step reads.
    pub(crate) fn note_each(&mut self, template: &Template, target: &str) {
        for reference in template.references() {
            self.note(&reference.path, target, None);
        }
    }

    pub(crate) fn note(&mut self, path: &Path, target: &str, transform: Option<String>) {
        let text = path.to_string();
        self.note_text(path, text.strip_prefix('$').unwrap_or(&text), target, transform);
    }

    /// Notes the item of an instance of a `for_each` step.
    pub(crate) fn note_item(&mut self, path: &Path, item: Option<u32>) {
        let text = path.to_string();
        let text = text.strip_prefix('$').unwrap_or(&text);
        let text = item.map_or_else(|| text.to_owned(), |item| format!("{text}[{item}]"));
        self.note_text(path, &text, "item", None);
    }

    fn note_text(&mut self, path: &Path, text: &str, target: &str, transform: Option<String>) {
        let run = self.run;
        let writer = run.index.variables.get(path.head()).copied();
        let position = run.definition.plan.graph.position(path.head());
        let position = position.and_then(|at| u32::try_from(at).ok());
        let Some(source) = position.or(writer) else {
            if path.head() == "args" {
                self.note_caller(text, target);
            } else if run.started.args.contains_key(path.head()) {
                self.note_caller(&format!("args.{text}"), target);
            }
            return;
        };
        let below = match position {
            Some(_) => text.strip_prefix(path.head()).unwrap_or("").trim_start_matches('.'),
            None => text,
        };
        self.note_step(source, below, target, transform);
    }

    pub(crate) fn note_edge(&mut self, edge: &Edge, target: &str, transform: Option<String>) {
        let position = self.run.definition.plan.graph.position(&edge.source);
        let Some(source) = position.and_then(|at| u32::try_from(at).ok()) else { return };
        let key = OutputKey::parse(&edge.source_output_key).to_string();
        self.note_step(source, &key, target, transform);
    }

    /// Notes an argument of the run: it comes from a step if another run started this one.
    pub(crate) fn note_caller(&mut self, path: &str, target: &str) {
        let started = self.run.started_at_ms;
        self.labels = self.labels.with(Labels::of(SourceClass::Caller, started));
        if let Some(parent) = &self.run.started.parent {
            self.add(Some(parent.run), &parent.step, path, target, None);
        }
    }

    /// Notes an output of a step of this run.
    pub(crate) fn note_step(
        &mut self,
        source: u32,
        path: &str,
        target: &str,
        transform: Option<String>,
    ) {
        let run = self.run;
        let transform = match run.steps[source as usize].outcome() {
            Some(outcome) => {
                self.labels = self.labels.with(outcome.labels);
                transform
            }
            None if run.counts_as_failed(source) => Some(SUBSTITUTED.to_owned()),
            // A skipped step has no outputs.
            None => return,
        };
        let path = if path.is_empty() { "outputs" } else { path };
        let id = &run.definition.plan.steps[source as usize].id;
        self.add(None, id, path, target, transform);
    }

    fn add(
        &mut self,
        run: Option<RunId>,
        node: &str,
        path: &str,
        target: &str,
        transform: Option<String>,
    ) {
        let key = (run, node.to_owned(), path.to_owned(), target.to_owned());
        if self.seen.insert(key) {
            self.found.push(Provenance {
                source_run: run,
                source_node: node.to_owned(),
                source_output_path: path.to_owned(),
                target_input_path: target.to_owned(),
                transform,
            });
        }
    }
}

/// How a value was changed on its way into a field: merged, coerced, or both.
pub(crate) fn transform(
    merged: Option<String>,
    field: &str,
    coercions: &[Coercion],
) -> Option<String> {
    let own = |one: &&Coercion| {
        let below = one.field.strip_prefix(field);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let coerced = coercions.iter().find(own);
    let coerced = coerced.map(|one| format!("coerced {} to {}", one.from, one.to.as_str()));
    let parts: Vec<String> = merged.into_iter().chain(coerced).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
