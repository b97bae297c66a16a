//! Lens templates: prompts with labelled placeholders.
//!
//! `[[label]]` and `{{label}}` are placeholders; `[[label!]]` is optional, `[[label:type]]` has
//! a type, and both marks may be combined in any order. `[ label ]`, with a blank inside each
//! bracket and on one line, is a placeholder only if the label is declared; a Markdown link `[
//! text ](address)` never is.
//!
//! Prompts are full of brackets, so everything else is plain text and not an error: an unclosed
//! `[[`, an empty label, JSON such as `[[1, 2], [3]]`. A label has at least one letter, at most
//! [`NAME_CHARS_MAX`] characters, and none of `[ ] { } " ,` or a line break. A placeholder with
//! an unknown type is an error.

use super::{Reason, push};
use crate::choice::{Choice as _, find};
use crate::code::Code;
use crate::contract::field::ContractType;
use crate::failure::Failure;
use crate::label::label;
use crate::limits::{NAME_CHARS_MAX, TEMPLATE_REFERENCES_MAX};
use crate::span::{Fault, Span};
use crate::value::text;
use crate::wire;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A parsed lens template. Two templates are equal if their sources are.
#[derive(Debug, Clone)]
pub struct LensTemplate {
    source: String,
    placeholders: Vec<Placeholder>,
}

/// A placeholder for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The label in normal form.
    pub label: String,
    /// The label as written, without marks and outer blanks.
    pub written: String,
    /// Whether the author marked it optional with `!`.
    pub optional: bool,
    /// The type in the placeholder, if any.
    pub kind: Option<ContractType>,
    /// Whether it is a placeholder even without a declaration.
    pub(crate) certainty: Certainty,
    /// Its position, including the brackets.
    pub span: Span,
}

/// Whether a text is certainly a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// `[[label]]` or `{{label}}`: always.
    Certain,
    /// `[ label ]`: only if a contract, a root input or an edge has the label.
    OnlyIfDeclared,
}

/// A placeholder that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{label}` {reason}")]
pub struct Unbound {
    /// The label in normal form.
    pub label: String,
    /// Why it cannot be rendered.
    pub reason: Reason,
}

impl From<Unbound> for Failure {
    fn from(error: Unbound) -> Failure {
        Failure::new(Code::PlaceholderUnbound, error.to_string())
    }
}

impl LensTemplate {
    /// Parses a template, or returns all errors.
    pub fn parse(source: &str) -> Result<LensTemplate, Vec<Fault>> {
        let mut placeholders = Vec::new();
        let mut faults = Vec::new();
        let mut at = 0;
        while let Some(open) = source[at..].find(['[', '{']).map(|found| at + found) {
            let Some(found) = candidate(source, open) else {
                at = open + 1;
                continue;
            };
            at = found.end;
            if placeholders.len() == TEMPLATE_REFERENCES_MAX {
                let message = format!("template has over {TEMPLATE_REFERENCES_MAX} placeholders");
                faults.push(Fault::new(open..at, message));
                break;
            }
            match found.read(open) {
                Ok(placeholder) => placeholders.push(placeholder),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(LensTemplate { source: source.to_owned(), placeholders })
    }

    /// The source text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every placeholder, in source order.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.placeholders.iter()
    }

    /// The text around the placeholders, with `gap` for each of them.
    pub(crate) fn literals(&self, gap: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for placeholder in &self.placeholders {
            let range = placeholder.span.range();
            out.push_str(&self.source[at..range.start]);
            out.push_str(gap);
            at = range.end;
        }
        out.push_str(&self.source[at..]);
        out
    }

    /// Renders the template with the bound values. All labels are in normal form.
    ///
    /// `declared` says whether a label without a value is declared, which makes `[ label ]`
    /// a placeholder; `optional` whether the contract allows it to be absent, in which case
    /// nothing is inserted.
    pub fn render(
        &self,
        bindings: &BTreeMap<String, Value>,
        declared: impl Fn(&str) -> bool,
        optional: impl Fn(&str) -> bool,
    ) -> Result<String, Unbound> {
        let mut out = String::new();
        let mut at = 0;
        for placeholder in &self.placeholders {
            let range = placeholder.span.range();
            let label = placeholder.label.as_str();
            out.push_str(&self.source[at..range.start]);
            at = range.end;
            let refuse = |reason| Unbound { label: label.to_owned(), reason };
            if let Some(value) = bindings.get(label) {
                push(&mut out, &text(value)).map_err(refuse)?;
            } else if placeholder.certainty == Certainty::OnlyIfDeclared && !declared(label) {
                out.push_str(&self.source[range]);
            } else if !placeholder.optional && !optional(label) {
                return Err(refuse(Reason::Missing));
            }
        }
        out.push_str(&self.source[at..]);
        Ok(out)
    }

    /// The typed value if the template is a single placeholder, otherwise the rendered
    /// text. `None` if that placeholder is optional and absent.
    pub fn value(
        &self,
        bindings: &BTreeMap<String, Value>,
        declared: impl Fn(&str) -> bool,
        optional: impl Fn(&str) -> bool,
    ) -> Result<Option<Value>, Unbound> {
        if let [one] = self.placeholders.as_slice()
            && one.span.range() == (0..self.source.len())
        {
            let open = one.certainty == Certainty::OnlyIfDeclared && !declared(&one.label);
            match bindings.get(&one.label) {
                Some(value) => return Ok(Some(value.clone())),
                None if !open && (one.optional || optional(&one.label)) => return Ok(None),
                None => {}
            }
        }
        self.render(bindings, declared, optional).map(|text| Some(Value::String(text)))
    }
}

impl PartialEq for LensTemplate {
    fn eq(&self, other: &LensTemplate) -> bool {
        self.source == other.source
    }
}

impl Eq for LensTemplate {}

impl fmt::Display for LensTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl serde::Serialize for LensTemplate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> serde::Deserialize<'de> for LensTemplate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<LensTemplate, D::Error> {
        wire::parsed(deserializer, "a lens template", |text| {
            LensTemplate::parse(text).map_err(wire::first)
        })
    }
}

/// Text with the syntax of a placeholder; its type is not checked yet.
struct Candidate<'a> {
    inner: &'a str,
    certainty: Certainty,
    end: usize,
}

/// The candidate that opens at byte `open`, if there is one.
fn candidate(source: &str, open: usize) -> Option<Candidate<'_>> {
    let rest = &source[open..];
    for (opening, closing) in [("[[", "]]"), ("{{", "}}")] {
        if let Some(after) = rest.strip_prefix(opening) {
            let inner = inside(after, closing)?;
            let (name, _, _) = marks(inner);
            let end = open + inner.len() + 4;
            let certainty = Certainty::Certain;
            return is_label(name).then_some(Candidate { inner, certainty, end });
        }
    }
    let inner = inside(rest.strip_prefix('[')?, "]")?;
    let end = open + inner.len() + 2;
    let blank = |c: char| c.is_whitespace();
    let spaced = inner.starts_with(blank) && inner.ends_with(blank);
    let link = source[end..].starts_with('(');
    let certainty = Certainty::OnlyIfDeclared;
    (spaced && !link && is_label(inner)).then_some(Candidate { inner, certainty, end })
}

/// The text up to `closing`. It ends at the first character that no label has, so a text of
/// opening brackets only is still read in linear time.
fn inside<'a>(after: &'a str, closing: &str) -> Option<&'a str> {
    let end = after.find(['[', ']', '{', '}', '"', ',', '\n', '\r'])?;
    after[end..].starts_with(closing).then_some(&after[..end])
}

impl Candidate<'_> {
    fn read(&self, open: usize) -> Result<Placeholder, Fault> {
        let (name, optional, kind) = match self.certainty {
            Certainty::Certain => marks(self.inner),
            Certainty::OnlyIfDeclared => (self.inner, false, None),
        };
        let kind = match kind {
            None => None,
            Some(word) => Some(kind_of(word, open..self.end)?),
        };
        Ok(Placeholder {
            label: label(name),
            written: name.trim().to_owned(),
            optional,
            kind,
            certainty: self.certainty,
            span: Span::new(open, self.end),
        })
    }
}

/// Splits `label:type!` or `label!:type` into the label, whether there is a `!`, and the type.
fn marks(inner: &str) -> (&str, bool, Option<&str>) {
    let inner = inner.trim();
    let (inner, last) = strip_mark(inner);
    match inner.rsplit_once(':') {
        None => (inner, last, None),
        Some((name, kind)) => {
            let (name, middle) = strip_mark(name.trim());
            (name, last || middle, Some(kind.trim()))
        }
    }
}

fn strip_mark(text: &str) -> (&str, bool) {
    match text.strip_suffix('!') {
        Some(rest) => (rest.trim(), true),
        None => (text, false),
    }
}

fn kind_of(word: &str, range: std::ops::Range<usize>) -> Result<ContractType, Fault> {
    find(word).ok_or_else(|| {
        let known = ContractType::NAMES.join(", ");
        Fault::new(range, format!("unknown placeholder type `{word}`"))
            .with_hint(format!("the types are {known}"))
    })
}

fn is_label(text: &str) -> bool {
    text.chars().any(char::is_alphabetic) && text.trim().chars().count() <= NAME_CHARS_MAX
}

#[cfg(test)]
mod tests;
