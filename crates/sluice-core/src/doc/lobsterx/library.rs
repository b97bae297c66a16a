//! Library steps: fields that a step copies, some of them locked.

use super::written::StepDoc;
use crate::code::Code;
use crate::diagnostic::{Problem, Problems};
use crate::doc::leaf::Millis;
use crate::doc::read::{DocumentReader, PathPart, Read, Spelling};
use crate::doc::registry::Registry;
use crate::money::Money;
use crate::node::{Entry, Node};
use crate::plan::policy::{Moderation, OnFailure};
use crate::value::same;
use serde_json::Value;

/// The result of resolving a step's `library_step`.
#[derive(Default)]
pub(super) struct LibraryFields<'n> {
    /// The library's fields, including those that the step overrides.
    pub(super) fields: &'n [Entry<'n>],
    /// The name, if no library is loaded.
    pub(super) unresolved: Option<String>,
}

/// Copies the library's fields that the step does not set. Reports a step that loosens a locked
/// field.
pub(super) fn take_over<'n>(
    doc: &mut StepDoc,
    own: &'n [Entry<'n>],
    registry: &'n Registry,
    cx: &mut DocumentReader<'n, '_>,
) -> LibraryFields<'n> {
    let Some(name) = doc.library_step.clone() else { return LibraryFields::default() };
    let Some(library) = &registry.library else {
        let message =
            format!("library step `{}` cannot be checked: no library is loaded", name.value);
        let problem = Problem::new(Code::UnresolvedReference, name.span, message);
        cx.within(PathPart::Key("library_step"), |cx| cx.add(problem));
        return LibraryFields { fields: &[], unresolved: Some(name.value) };
    };
    let Some(step) = library.get(&name.value) else {
        let message = format!("the library has no step `{}`", name.value);
        let problem = Problem::new(Code::UnknownLibraryStep, name.span, message)
            .with_suggestion(cx.suggest(&name.value, library.keys().map(String::as_str)));
        cx.within(PathPart::Key("library_step"), |cx| cx.add(problem));
        return LibraryFields { fields: &[], unresolved: Some(name.value) };
    };
    for entry in &step.fields {
        let set = own.iter().find(|own| own.key == entry.key && !own.value.is_null());
        match set {
            Some(own) if step.locked.iter().any(|locked| *locked == entry.key) => {
                if readable(own) && !is_as_strict(&entry.key, &entry.value, &own.value) {
                    let message = format!("library step `{}` locks `{}`", name.value, entry.key);
                    let problem = Problem::new(Code::LockedField, own.value.span, message)
                        .with_hint("leave it out, or set it to something stricter");
                    cx.within(PathPart::Key(&own.key), |cx| cx.add(problem));
                }
            }
            Some(_) => {}
            None => cx.in_other_file(name.span, |cx| {
                if cx.may_copy(entry) {
                    doc.read_entry(entry, cx);
                }
            }),
        }
    }
    LibraryFields { fields: &step.fields, unresolved: None }
}

/// Whether a step's own value of a locked field is as strict as the library's.
fn is_as_strict(field: &str, locked: &Node<'_>, own: &Node<'_>) -> bool {
    if same(&locked.to_value(), &own.to_value()) {
        return true;
    }
    match field {
        "timeout" => lower(locked, own, |ms: Millis| ms.0),
        "max_cost_cents" => lower(locked, own, |money: Money| money.micro_cents()),
        "max_output_tokens" | "max_items" => {
            let number = |node: &Node<'_>| node.to_value().as_u64();
            matches!((number(locked), number(own)), (Some(locked), Some(own)) if own <= locked)
        }
        // An empty list would not restrict tools at all.
        "tools" => {
            let own = own.to_value();
            subset(&locked.to_value(), &own) && own.as_array().is_some_and(|own| !own.is_empty())
        }
        // Requiring more of the gateway is stricter.
        "capabilities" => subset(&own.to_value(), &locked.to_value()),
        // An old word and its new spelling are the same policy.
        "on_failure" => quietly::<OnFailure>(locked) == quietly(own),
        "moderation" => match (quietly::<Moderation>(locked), quietly(own)) {
            (Some(locked), Some(own)) => {
                locked == own || own == Moderation::Both || locked == Moderation::Off
            }
            _ => false,
        },
        _ => false,
    }
}

fn lower<T: Read>(locked: &Node<'_>, own: &Node<'_>, measure: impl Fn(T) -> u64) -> bool {
    match (quietly(locked), quietly(own)) {
        (Some(locked), Some(own)) => measure(own) <= measure(locked),
        _ => false,
    }
}

/// Reads a value without reporting its problems, which another reader reports.
fn quietly<T: Read>(node: &Node<'_>) -> Option<T> {
    let mut problems = Problems::default();
    T::read(node, &mut DocumentReader::new("", Spelling::Strict, &mut problems))
}

/// Whether a field's value can be read; if not, that is reported already.
fn readable(entry: &Entry<'_>) -> bool {
    let mut problems = Problems::default();
    let mut cx = DocumentReader::new("", Spelling::Strict, &mut problems);
    StepDoc::default().read_entry(entry, &mut cx);
    !problems.has_errors()
}

/// Whether everything in the list `some` is in the list `all`.
fn subset(all: &Value, some: &Value) -> bool {
    match (all, some) {
        (Value::Array(all), Value::Array(some)) => some.iter().all(|item| all.contains(item)),
        _ => false,
    }
}
