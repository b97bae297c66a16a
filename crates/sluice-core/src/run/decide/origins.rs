//! The origins of values: steps of this run or of another, or the caller.

use crate::edge::key::OutputKey;
use crate::id::RunId;
use crate::journal::event::Provenance;
use crate::origin::{FieldLabels, FlowLabels, Labels, PassedLabels};
use crate::outputs::coerce::Coercion;
use crate::path::Path;
use crate::plan::step::{Edge, Step};
use crate::run::label::ValueSource;
use crate::run::state::Run;
use crate::template::Template;
use std::collections::{BTreeMap, BTreeSet};

/// The transform of a value whose source failed.
const SUBSTITUTED: &str = "substitute_default";

/// The origins of the values of one step.
pub(crate) struct Origins<'t> {
    run: &'t Run,
    pub(crate) found: Vec<Provenance>,
    pub(crate) labels: Labels,
    /// Named labels by target.
    fields: BTreeMap<String, FlowLabels>,
    /// Whether an untrusted value decides that the step runs.
    is_guarded: bool,
    /// Everything in `found`, so that nothing is noted twice.
    seen: BTreeSet<(Option<RunId>, String, String, String)>,
}

impl<'t> Origins<'t> {
    /// The origins of the result of the run.
    pub(crate) fn of_result(run: &'t Run) -> Origins<'t> {
        let (found, fields, seen) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Origins { run, found, labels: Labels::default(), fields, is_guarded: false, seen }
    }

    /// The origins of the values of one step, and of the decision that it runs.
    pub(crate) fn of_step(run: &'t Run, step: u32) -> Origins<'t> {
        let mut origins = Origins::of_result(run);
        origins.is_guarded = run.is_guarded(step);
        if origins.is_guarded {
            origins.labels.flow.join(&FlowLabels::controlled());
        }
        origins
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
        match self.run.source_of(path) {
            None => {}
            Some(source @ ValueSource::Argument(_)) => {
                self.read(self.run.labels_of(&source), target);
                match path.head() {
                    "args" => self.note_argument(text, target),
                    _ => self.note_argument(&format!("args.{text}"), target),
                }
            }
            Some(source @ ValueSource::Step(step, _)) => {
                self.read(self.run.labels_of(&source), target);
                // A variable is an output of its step.
                let id = &self.run.definition.plan.steps[step as usize].id;
                let below = text.strip_prefix(path.head()).filter(|_| id == path.head());
                let below = below.map_or(text, |below| below.trim_start_matches('.'));
                self.note_output(step, below, target, transform);
            }
        }
    }

    pub(crate) fn note_edge(&mut self, edge: &Edge, target: &str, transform: Option<String>) {
        let Some(source) = self.run.position(&edge.source) else { return };
        self.read(self.run.edge_labels(edge), target);
        let key = OutputKey::parse(&edge.source_output_key).to_string();
        self.note_output(source, &key, target, transform);
    }

    /// Notes an argument of the run.
    pub(crate) fn note_caller(&mut self, name: &str, target: &str) {
        self.read(self.run.argument_labels(Some(name)), target);
        self.note_argument(&format!("args.{name}"), target);
    }

    /// Notes an output of a step of this run.
    pub(crate) fn note_step(&mut self, source: u32, output: &str, target: &str) {
        self.read(self.run.output_labels(source, Some(output)), target);
        self.note_output(source, output, target, None);
    }

    /// Adds the labels of a value that is read into a field.
    fn read(&mut self, labels: Labels, target: &str) {
        self.labels.join(&labels);
        match self.fields.get_mut(target) {
            Some(own) => own.join(&labels.flow),
            None => drop(self.fields.insert(target.to_owned(), labels.flow)),
        }
    }

    /// The named labels of the fields below `prefix` that differ from `whole`.
    pub(crate) fn field_labels(&self, prefix: &str, whole: &FlowLabels) -> FieldLabels {
        let own = |(field, labels): (&String, &FlowLabels)| {
            let mut labels = labels.clone();
            if self.is_guarded {
                labels.join(&FlowLabels::controlled());
            }
            Some((field.strip_prefix(prefix)?.to_owned(), labels))
        };
        FieldLabels::new(self.fields.iter().filter_map(own), whole)
    }

    /// The labels of the result of the run, with those of its parts.
    pub(crate) fn result_labels(&self) -> PassedLabels {
        let labels = self.labels.clone();
        let field_labels = self.field_labels("outputs.", &labels.flow);
        PassedLabels { labels, field_labels }
    }

    /// An argument comes from a step if another run started this one.
    fn note_argument(&mut self, path: &str, target: &str) {
        if let Some(parent) = &self.run.started.parent {
            self.add(Some(parent.run), &parent.step, path, target, None);
        }
    }

    fn note_output(&mut self, source: u32, path: &str, target: &str, transform: Option<String>) {
        let run = self.run;
        let transform = match run.steps[source as usize].outcome() {
            Some(_) => transform,
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
