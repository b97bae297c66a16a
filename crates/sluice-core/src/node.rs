//! A document as a tree with the position of every part.
//!
//! Readers use this tree instead of serde, because serde stops at the first problem and loses
//! positions.

use crate::span::Span;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;

/// One value of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'t> {
    /// Its position; for a block list or map, where it begins.
    pub span: Span,
    /// The value.
    pub kind: Kind<'t>,
}

/// The value of a node: one of the JSON types.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<'t> {
    /// `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that fits 64 bits.
    Number(Number),
    /// Text with its escapes resolved.
    Text(Cow<'t, str>),
    /// A sequence of nodes.
    List(Vec<Node<'t>>),
    /// A map in document order, with unique keys.
    Map(Vec<Entry<'t>>),
}

/// One key of a map and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'t> {
    /// The key's text.
    pub key: Cow<'t, str>,
    /// The position of the key.
    pub key_span: Span,
    /// The value of the key.
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// The entries, if this is a map.
    pub fn entries(&self) -> Option<&[Entry<'t>]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The item at `index`, if this is a list that has it.
    pub fn item(&self, index: usize) -> Option<&Node<'t>> {
        match &self.kind {
            Kind::List(items) => items.get(index),
            _ => None,
        }
    }

    /// Whether the value is null or empty.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// The type with an article, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// About how many bytes a copy takes.
    pub(crate) fn weight(&self) -> usize {
        let inside = match &self.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => 0,
            Kind::Text(text) => text.len(),
            Kind::List(items) => items.iter().map(Node::weight).sum(),
            Kind::Map(entries) => entries.iter().map(|e| e.key.len() + e.value.weight()).sum(),
        };
        size_of::<Node<'_>>() + inside
    }

    /// A copy that does not borrow from the text.
    pub fn into_owned(self) -> Node<'static> {
        let kind = match self.kind {
            Kind::Null => Kind::Null,
            Kind::Bool(flag) => Kind::Bool(flag),
            Kind::Number(number) => Kind::Number(number),
            Kind::Text(text) => Kind::Text(Cow::Owned(text.into_owned())),
            Kind::List(items) => Kind::List(items.into_iter().map(Node::into_owned).collect()),
            Kind::Map(entries) => Kind::Map(entries.into_iter().map(Entry::into_owned).collect()),
        };
        Node { span: self.span, kind }
    }

    /// The value without positions.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone().into_owned()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Kind::Map(entries) => {
                let pairs =
                    entries.iter().map(|e| (e.key.clone().into_owned(), e.value.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// The position in `source` of a part of this node's text.
    ///
    /// Parts of a text with escapes or folded lines have no simple position; the span of
    /// the whole node is returned for them.
    pub(crate) fn locate(&self, source: &str, part: Span) -> Span {
        let (Kind::Text(text), Some(raw)) = (&self.kind, source.get(self.span.range())) else {
            return self.span;
        };
        if text.get(part.range()).is_none() {
            return self.span;
        }
        if raw == text {
            return part.shifted(self.span.start);
        }
        if raw.starts_with(['"', '\'']) {
            let inner = raw.get(1..raw.len().saturating_sub(1));
            let same = inner == Some(text);
            return if same { part.shifted(self.span.start + 1) } else { self.span };
        }
        self.locate_in_block(source, text, part).unwrap_or(self.span)
    }

    /// Finds a part of a literal block. Every line up to the part must be a line of the
    /// source after the block's indentation; otherwise lines were folded.
    fn locate_in_block(&self, source: &str, text: &str, part: Span) -> Option<Span> {
        let block = self.span.start as usize;
        let begin = source[..block].rfind('\n').map_or(0, |at| at + 1);
        let indent = block - begin;
        // The block begins at its first line that is not empty.
        let shown = text.trim_start_matches('\n');
        let mut left = (part.start as usize).checked_sub(text.len() - shown.len())?;
        let mut at = begin;
        for (line, written) in shown.split('\n').zip(source[begin..].split_inclusive('\n')) {
            let written_line = written.trim_end_matches(['\n', '\r']);
            let found = written_line.get(indent..).unwrap_or_default();
            if left <= line.len() {
                let end = line.len().min(left + (part.end - part.start) as usize);
                // An empty line may be written without the indentation.
                let first = at + indent.min(written_line.len());
                let place = Span::new(first + left, first + end);
                return found.starts_with(&line[..end]).then_some(place);
            }
            if found != line {
                return None;
            }
            left -= line.len() + 1;
            at += written.len();
        }
        None
    }
}

impl Entry<'_> {
    /// A copy that does not borrow from the text.
    pub fn into_owned(self) -> Entry<'static> {
        Entry {
            key: Cow::Owned(self.key.into_owned()),
            key_span: self.key_span,
            value: self.value.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
