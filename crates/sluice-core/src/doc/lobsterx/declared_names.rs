//! The names that a document declares.

use super::step::StepDraft;
use super::written::Document;
use crate::doc::leaf::Table;
use crate::doc::read::DocumentReader;
use crate::path::Path;
use std::collections::{BTreeMap, BTreeSet};

/// Every name with a meaning in the document.
pub(super) struct DeclaredNames<'a> {
    pub(super) steps: BTreeMap<&'a str, u32>,
    /// Declared outputs of all steps: each sets the variable of its name.
    pub(super) variables: BTreeSet<&'a str>,
    pub(super) args: BTreeSet<&'a str>,
    pub(super) phases: BTreeSet<&'a str>,
    pub(super) roles: BTreeSet<&'a str>,
    /// The outputs that each step declares, by the step's position.
    outputs: BTreeSet<(u32, &'a str)>,
    /// Whether a step's library is not loaded, so that more names may exist.
    open: bool,
}

impl<'a> DeclaredNames<'a> {
    pub(super) fn new(document: &'a Document, drafts: &'a [StepDraft<'_>]) -> DeclaredNames<'a> {
        let outputs = drafts.iter().flat_map(|draft| &draft.doc.outputs);
        let mut steps = BTreeMap::new();
        for (draft, at) in drafts.iter().zip(0u32..) {
            // If two steps have one id, the first is used and the second is
            // reported.
            steps.entry(draft.id()).or_insert(at);
        }
        let declared = (0u32..).zip(drafts).flat_map(|(at, draft)| {
            let outputs = draft.doc.outputs.iter().flat_map(Table::names);
            // An input that is not an output passes through.
            let inputs = draft.doc.inputs.iter().flat_map(Table::names);
            outputs.chain(inputs).map(move |name| (at, name))
        });
        DeclaredNames {
            steps,
            phases: document.phases.iter().flatten().map(|phase| phase.id.value.as_str()).collect(),
            roles: document.roles.iter().flat_map(Table::names).collect(),
            outputs: declared.collect(),
            variables: outputs.flat_map(Table::names).collect(),
            args: document.args.iter().flat_map(Table::names).collect(),
            open: drafts.iter().any(|draft| draft.unresolved.is_some()),
        }
    }

    /// Whether a bare name is a variable or an argument.
    pub(super) fn is_value(&self, path: &Path) -> bool {
        let head = path.head();
        self.variables.contains(head)
            || self.args.contains(head)
            || path.dotted().is_some_and(|dotted| self.variables.contains(dotted))
    }

    /// The name that was probably meant.
    pub(super) fn suggestion(&self, name: &str, cx: &DocumentReader<'_, '_>) -> Option<&'a str> {
        let names = self.steps.keys().chain(&self.variables).chain(&self.args);
        cx.suggest(name, names.copied())
    }

    /// Whether there may be declared names that are not known.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether other steps can read an output of that name from a step.
    pub(super) fn may_have(&self, at: u32, step: &StepDraft<'_>, field: &str) -> bool {
        let doc = &step.doc;
        if doc.for_each.is_none() {
            return self.may_answer(at, step, field);
        }
        // A step with many instances has only `items` and, if those are texts, all of
        // them as one text.
        match field {
            "items" | "json" | "length" | "_skipped" => true,
            "stdout" if step.unresolved.is_some() => true,
            "stdout" => doc.outputs.is_none() && doc.workflow_ref.is_none(),
            _ => false,
        }
    }

    /// Whether a step, or each of its instances, may produce an output of that name.
    pub(super) fn may_answer(&self, at: u32, step: &StepDraft<'_>, field: &str) -> bool {
        let doc = &step.doc;
        // The outputs of a child run and of a library step that is not loaded are
        // unknown.
        if doc.workflow_ref.is_some() || step.unresolved.is_some() {
            return true;
        }
        match field {
            "stdout" | "json" | "length" | "_skipped" => true,
            "approved" | "by" | "at" | "comment" if step.needs_approval() => true,
            name => self.outputs.contains(&(at, name)),
        }
    }
}
