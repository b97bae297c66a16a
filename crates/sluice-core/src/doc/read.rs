//! Reads typed documents from a [`Node`] tree and reports all problems at once.
//!
//! A type that implements [`Read`] defines both how it is read and its JSON Schema, so the two
//! cannot disagree.

use crate::code::Code;
use crate::diagnostic::{Problem, Problems};
use crate::doc::flow_labels::UsedFlowLabels;
use crate::doc::foreign;
use crate::doc::schema::Defs;
use crate::limits::{COPIED_BYTES_MAX, SUGGESTIONS_COMPARED_MAX};
use crate::node::{Entry, Kind, Node};
use crate::span::{Fault, Span, Spanned};
use crate::suggest::suggest;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Write as _;

/// A type that can be read from a document.
pub(crate) trait Read: Sized {
    /// Reads a value, or reports why it cannot.
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Self>;

    /// The JSON Schema of what `read` accepts.
    fn schema(defs: &mut Defs) -> Value;
}

/// Which spellings of a field's name are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Only the spelling of the format.
    Strict,
    /// Also camelCase.
    Either,
}

/// One part of the path to the value being read.
#[derive(Debug, Clone)]
pub(crate) enum PathPart<'n> {
    Key(&'n str),
    /// A key that is not borrowed from the document's text.
    Name(Box<str>),
    Index(usize),
}

/// The position in the document, and the problems found so far.
pub(crate) struct DocumentReader<'n, 'p> {
    pub(crate) source: &'n str,
    pub(crate) problems: &'p mut Problems,
    pub(crate) spelling: Spelling,
    path: Vec<PathPart<'n>>,
    /// Set while reading fields that come from another file: their problems are reported at
    /// this place of the document.
    reported_at: Option<Span>,
    /// The number of field schemas that enclose the value being read.
    schema_depth: usize,
    /// Bytes of fields that steps copied from libraries and defaults.
    copied: usize,
    /// How many more names may be compared for suggestions.
    comparisons: Cell<usize>,
    flow_labels: UsedFlowLabels,
}

impl<'n, 'p> DocumentReader<'n, 'p> {
    pub(crate) fn new(source: &'n str, spelling: Spelling, problems: &'p mut Problems) -> Self {
        DocumentReader {
            source,
            problems,
            spelling,
            path: Vec::new(),
            reported_at: None,
            schema_depth: 0,
            copied: 0,
            comparisons: Cell::new(SUGGESTIONS_COMPARED_MAX),
            flow_labels: UsedFlowLabels::default(),
        }
    }

    /// Runs `read` one level down.
    pub(crate) fn within<T>(&mut self, part: PathPart<'n>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(part);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Runs `read` several levels down.
    pub(crate) fn deeper<T>(
        &mut self,
        parts: &[PathPart<'n>],
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let depth = self.path.len();
        self.path.extend_from_slice(parts);
        let result = read(self);
        self.path.truncate(depth);
        result
    }

    /// Runs `read` on nodes of another file and reports their problems at `span`.
    pub(crate) fn in_other_file<T>(&mut self, span: Span, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.reported_at.replace(span);
        let result = read(self);
        self.reported_at = outer;
        result
    }

    /// The path as people write it: `steps[2].retry`.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        for part in &self.path {
            match part {
                PathPart::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
                PathPart::Key(key) => push_key(&mut path, key),
                PathPart::Name(key) => push_key(&mut path, key),
            }
        }
        path
    }

    /// The place at which a problem of a value is reported.
    pub(crate) fn reported_span(&self, span: Span) -> Span {
        self.reported_at.unwrap_or(span)
    }

    /// The text between the ends of `span`, as the author wrote it.
    pub(crate) fn written(&self, span: Span) -> Option<&'n str> {
        if self.reported_at.is_some() { None } else { self.source.get(span.range()) }
    }

    /// Runs `read` one field schema deeper.
    pub(crate) fn nested_schema<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.schema_depth += 1;
        let result = read(self);
        self.schema_depth -= 1;
        result
    }

    pub(crate) fn schema_depth(&self) -> usize {
        self.schema_depth
    }

    /// Counts a use of a flow label.
    pub(crate) fn used_flow_label(&mut self, label: &Spanned<String>) {
        let mut used = std::mem::take(&mut self.flow_labels);
        used.add(label, || self.path());
        self.flow_labels = used;
    }

    pub(crate) fn take_flow_labels(&mut self) -> UsedFlowLabels {
        std::mem::take(&mut self.flow_labels)
    }

    /// The candidate that `name` probably means. Skips the search if its result would not
    /// be shown.
    pub(crate) fn suggest<'c>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        if self.problems.is_full() {
            return None;
        }
        let compared = Cell::new(0);
        let left = self.comparisons.get();
        let candidates =
            candidates.into_iter().take(left).inspect(|_| compared.set(compared.get() + 1));
        let likely = suggest(name, candidates);
        self.comparisons.set(left - compared.get());
        likely
    }

    /// Whether a step may copy one more field from a library or the defaults. Reports once
    /// if the copies get too large.
    pub(crate) fn may_copy(&mut self, entry: &Entry<'_>) -> bool {
        let before = self.copied;
        self.copied = before.saturating_add(entry.value.weight());
        let over = self.copied > COPIED_BYTES_MAX;
        if over && before <= COPIED_BYTES_MAX {
            let message = format!("the steps copy more than {COPIED_BYTES_MAX} bytes");
            self.add(Problem::new(Code::TooManyNodes, entry.key_span, message).with_hint(
                "each step contains a copy of the fields; shorten them or split the workflow",
            ));
        }
        !over
    }

    /// Reports a problem with the value being read.
    pub(crate) fn add(&mut self, problem: Problem) {
        let path = self.path();
        self.add_at(problem, path);
    }

    /// Reports a problem with the value at `path`.
    pub(crate) fn add_at(&mut self, mut problem: Problem, path: String) {
        if let Some(span) = self.reported_at {
            problem = problem.at_span(span);
        }
        self.problems.add(problem.at_path(path));
    }

    /// Reports a fault inside the text of `node`.
    pub(crate) fn fault(&mut self, code: Code, node: &Node<'_>, fault: Fault) {
        let span = node.locate(self.source, fault.span);
        self.add(Problem::from_fault(code, span, fault));
    }

    /// Reports a value of the wrong type.
    pub(crate) fn wrong_type(&mut self, node: &Node<'_>, wanted: &str) {
        let message = format!("expected {wanted}, found {}", node.describe());
        let mut problem = Problem::new(Code::WrongType, node.span, message);
        if matches!(node.kind, Kind::Bool(_) | Kind::Number(_)) && wanted.contains("string") {
            problem = problem.with_hint("quote it if it is meant as text");
        }
        self.add(problem);
    }

    /// The entries of a map.
    pub(crate) fn map(&mut self, node: &'n Node<'n>) -> Option<&'n [Entry<'n>]> {
        let entries = node.entries();
        if entries.is_none() {
            self.wrong_type(node, "a map");
        }
        entries
    }

    /// The items of a list.
    pub(crate) fn list(&mut self, node: &'n Node<'n>) -> Option<&'n [Node<'n>]> {
        match &node.kind {
            Kind::List(items) => Some(items),
            _ => {
                self.wrong_type(node, "a list");
                None
            }
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, node: &'n Node<'n>) -> Option<&'n str> {
        match &node.kind {
            Kind::Text(text) => Some(text),
            _ => {
                self.wrong_type(node, "a string");
                None
            }
        }
    }

    /// Reads one entry into its slot. A null value leaves the slot unset.
    pub(crate) fn field<T: Read>(&mut self, entry: &'n Entry<'n>, slot: &mut Option<T>) {
        if entry.value.is_null() {
            return;
        }
        if slot.is_some() {
            let message = format!("`{}` is set twice, in two spellings", entry.key);
            self.add(Problem::new(Code::DuplicateKey, entry.key_span, message));
            return;
        }
        *slot = self.within(PathPart::Key(&entry.key), |cx| T::read(&entry.value, cx));
    }

    /// Reports a field that the format does not have.
    pub(crate) fn unknown_field(&mut self, entry: &'n Entry<'n>, known: &[&str]) {
        let message = match &*entry.key {
            "<<" => "merge keys are not supported".to_owned(),
            key => format!("unknown field `{}`", crate::visible::shorten(key)),
        };
        let problem = Problem::new(Code::UnknownField, entry.key_span, message);
        let problem = match foreign::advice(&entry.key, known) {
            Some(advice) => problem.with_hint(advice),
            None => problem.with_suggestion(self.suggest(&entry.key, known.iter().copied())),
        };
        self.within(PathPart::Key(&entry.key), |cx| cx.add(problem));
    }

    /// Reports required fields that are absent.
    pub(crate) fn require(&mut self, span: Span, entries: &[Entry<'_>], required: &[&str]) {
        for name in required {
            let is_it = |e: &&Entry<'_>| self.canonical(&e.key, &[name]) == *name;
            if entries.iter().find(is_it).is_none_or(|entry| entry.value.is_null()) {
                self.add(Problem::new(Code::MissingField, span, format!("`{name}` is missing")));
            }
        }
    }

    /// The field's name as the format writes it.
    pub(crate) fn canonical<'k>(&self, key: &'k str, known: &[&str]) -> Cow<'k, str> {
        let camel = self.spelling == Spelling::Either
            && key.bytes().any(|b| b.is_ascii_uppercase())
            && !known.contains(&key);
        if camel { Cow::Owned(snake_case(key)) } else { Cow::Borrowed(key) }
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// `timeoutMs` as `timeout_ms`.
fn snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// `timeout_ms` as `timeoutMs`.
pub(crate) fn camel_case(snake: &str) -> String {
    let mut words = snake.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// Declares a map of the format: a struct with an optional slot for each field, its reader, and
/// its schema. Doc comments become descriptions in the schema.
macro_rules! document {
    ($(#[doc = $about:literal])* pub(crate) struct $name:ident {
        $($(#[doc = $doc:literal])* $need:ident $key:literal $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name { $($(#[doc = $doc])* pub(crate) $field: Option<$type>,)* }

        impl $name {
            pub(crate) const FIELDS: &'static [&'static str] = &[$($key),*];

            /// Reads one entry into the field it sets.
            pub(crate) fn read_entry<'n>(
                &mut self,
                entry: &'n $crate::node::Entry<'n>,
                cx: &mut $crate::doc::read::DocumentReader<'n, '_>,
            ) {
                match &*cx.canonical(&entry.key, Self::FIELDS) {
                    $($key => cx.field(entry, &mut self.$field),)*
                    _ => cx.unknown_field(entry, Self::FIELDS),
                }
            }
        }

        impl $crate::doc::read::Read for $name {
            fn read<'n>(
                node: &'n $crate::node::Node<'n>,
                cx: &mut $crate::doc::read::DocumentReader<'n, '_>,
            ) -> Option<Self> {
                let entries = cx.map(node)?;
                let mut this = Self::default();
                for entry in entries {
                    this.read_entry(entry, cx);
                }
                cx.require(node.span, entries, &[$($crate::doc::read::document!(@required $need $key),)*].concat());
                Some(this)
            }

            fn schema(defs: &mut $crate::doc::schema::Defs) -> serde_json::Value {
                defs.define(stringify!($name), |defs| $crate::doc::schema::object(
                    defs.spelling(),
                    concat!($($about),*),
                    vec![$($crate::doc::schema::Field {
                        key: $key,
                        about: concat!($($doc),*),
                        required: stringify!($need) == "required",
                        schema: <$type as $crate::doc::read::Read>::schema(defs),
                    },)*],
                ))
            }
        }
    };
    (@required required $key:literal) => { &[$key][..] };
    (@required optional $key:literal) => { &[][..] };
}
pub(crate) use document;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_spellings_translate_into_each_other() {
        for (snake, camel) in
            [("timeout_ms", "timeoutMs"), ("id", "id"), ("require_any_of", "requireAnyOf")]
        {
            assert_eq!(snake_case(camel), snake);
            assert_eq!(camel_case(snake), camel);
        }
    }
}
