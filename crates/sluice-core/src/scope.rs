//! Resolves the names in paths.
//!
//! The head of the path alone decides, in this order:
//! 1. a local: the step's own inputs, `item`, `index`, `outputs`, `value` (not for `$id…` if
//!    `id` is a step: the `$` selects the step);
//! 2. a step with that id: its outputs (see [`resolve`]);
//! 3. `args`: all arguments;
//! 4. a variable: the full dotted key, then the rest of the path within the variable of the
//!    first name;
//! 5. an argument with that name.
//!
//! A name found at one level is never looked up at the next, so the meaning of a path does not
//! depend on the shape of a value.

pub mod names;
pub mod with;

use crate::path::{Path, Segment};
use serde_json::Value;
use std::borrow::Cow;

/// The values of names in expressions and templates at one point of a run.
pub trait Scope {
    /// The step with this id; `None` if the workflow has no such step.
    fn step(&self, id: &str) -> Option<StepView<'_>>;
    /// A local name of this step: its inputs, `item`, `index`, `outputs`, `value`.
    fn local(&self, name: &str) -> Option<&Value>;
    /// The variable of exactly this name, which may contain dots.
    fn variable(&self, name: &str) -> Option<&Value>;
    /// The run's arguments, an object.
    fn args(&self) -> Option<&Value>;
}

/// What can be read from a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepView<'a> {
    /// It has not ended, or ended without a result: every path is missing.
    Pending,
    /// It was skipped: every path is null.
    Skipped,
    /// It is completed.
    Done {
        /// Its outputs: an object (a list of objects for a fan-out).
        outputs: &'a Value,
        /// Its standard output, for steps that have one.
        stdout: Option<&'a str>,
    },
}

/// The result of resolving a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// A value, possibly null.
    Value(Cow<'a, Value>),
    /// A value of a skipped step: null in an expression, empty in a template.
    Skipped,
    /// No value: null in an expression, an error in a template.
    Missing,
}

/// Resolves `path` in `scope`.
///
/// For a step, `id.outputs.x` and `id.x` are the field `x` of its outputs; `id`, `id.outputs`
/// and `$id.json` are all outputs; `$id.stdout` is the raw text. `id.stdout` and `id.json` are
/// the outputs of those names if they exist, else the same as with `$`.
pub fn resolve<'a>(path: &Path, scope: &'a dyn Scope) -> Found<'a> {
    match locate(path, scope) {
        Located::Value(value) => Found::Value(Cow::Borrowed(value)),
        Located::Text(text) => Found::Value(Cow::Owned(text.into())),
        Located::Length { count, .. } => Found::Value(Cow::Owned(count.into())),
        Located::Skipped => Found::Skipped,
        Located::Missing => Found::Missing,
    }
}

/// [`Found`] without copies, for the evaluator and the renderer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Located<'a> {
    Value(&'a Value),
    Text(&'a str),
    /// A length, and the number of bytes read to count it.
    Length {
        count: usize,
        bytes: usize,
    },
    Skipped,
    Missing,
}

pub(crate) fn locate<'a>(path: &Path, scope: &'a dyn Scope) -> Located<'a> {
    let (head, rest) = (path.head(), path.rest());
    if path.has_sigil()
        && let Some(step) = scope.step(head)
    {
        return in_step(step, path);
    }
    if let Some(local) = scope.local(head) {
        return walk(local, rest);
    }
    if !path.has_sigil()
        && let Some(step) = scope.step(head)
    {
        return in_step(step, path);
    }
    if head == "args" {
        return scope.args().map_or(Located::Missing, |args| walk(args, rest));
    }
    if let Some(key) = path.dotted()
        && let Some(variable) = scope.variable(key)
    {
        return Located::Value(variable);
    }
    if let Some(variable) = scope.variable(head) {
        return walk(variable, rest);
    }
    match scope.args().and_then(|args| args.get(head)) {
        Some(arg) => walk(arg, rest),
        None => Located::Missing,
    }
}

fn in_step<'a>(step: StepView<'a>, path: &Path) -> Located<'a> {
    let (outputs, stdout) = match step {
        StepView::Pending => return Located::Missing,
        StepView::Skipped => return Located::Skipped,
        StepView::Done { outputs, stdout } => (outputs, stdout),
    };
    let Some((Segment::Key(first), below)) = path.rest().split_first() else {
        return walk(outputs, path.rest());
    };
    let shadowed = !path.has_sigil() && outputs.get(first).is_some();
    match first.as_str() {
        "outputs" => walk(outputs, below),
        "stdout" if !shadowed => stdout.map_or(Located::Missing, |text| in_text(text, below)),
        "json" if !shadowed => walk(outputs, below),
        _ => walk(outputs, path.rest()),
    }
}

fn walk<'a>(start: &'a Value, segments: &[Segment]) -> Located<'a> {
    let mut value = start;
    for (depth, segment) in segments.iter().enumerate() {
        let below = match (segment, value) {
            (Segment::Index(index), Value::Array(list)) => list.get(*index),
            (Segment::Index(index), Value::Object(map)) => map.get(&index.to_string()),
            (Segment::Key(key), Value::Object(map)) => map.get(key),
            _ => None,
        };
        match below {
            Some(below) => value = below,
            // Only the last segment can be a length: a number has no parts.
            None if depth + 1 == segments.len() && is_length(segment) => return length(value),
            None => return Located::Missing,
        }
    }
    Located::Value(value)
}

fn in_text<'a>(text: &'a str, segments: &[Segment]) -> Located<'a> {
    match segments {
        [] => Located::Text(text),
        [segment] if is_length(segment) => text_length(text),
        _ => Located::Missing,
    }
}

fn is_length(segment: &Segment) -> bool {
    matches!(segment, Segment::Key(key) if key == "length")
}

fn length(value: &Value) -> Located<'static> {
    let count = match value {
        Value::String(text) => return text_length(text),
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return Located::Missing,
    };
    Located::Length { count, bytes: 0 }
}

/// The length of a text is its number of characters.
fn text_length(text: &str) -> Located<'static> {
    Located::Length { count: text.chars().count(), bytes: text.len() }
}

#[cfg(test)]
mod tests;
