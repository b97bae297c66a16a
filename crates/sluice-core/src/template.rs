//! Templates: text with references to values.
//!
//! `${path}` is replaced by the value at the path, `$${` is a literal `${`. Substitution is one
//! pass: inserted values are data and are not expanded again, so a value cannot refer to
//! another value.
//!
//! [`shell`] turns a template into a command that receives its values through the environment;
//! [`lens`] implements the `[[label]]` templates of lens workflows.

pub mod lens;
pub mod shell;
pub mod tree;

use crate::code::Code;
use crate::failure::Failure;
use crate::limits::{TEMPLATE_REFERENCES_MAX, TEMPLATE_TEXT_BYTES_MAX};
use crate::path::{Path, Reference, found_at, scan_braced};
use crate::scope::{Found, Located, Scope, locate, resolve};
use crate::span::{Fault, Span};
use crate::value::text;
use crate::wire;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A parsed template. Two templates are equal if their sources are.
#[derive(Debug, Clone)]
pub struct Template {
    source: String,
    parts: Vec<TemplatePart>,
}

/// A template alternates text and references.
#[derive(Debug, Clone)]
enum TemplatePart {
    /// Literal text, `$${` already turned into `${`.
    Text(String),
    Reference(Reference),
}

/// A reference that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {reason}")]
pub struct Unresolved {
    /// The path of the reference.
    pub path: Path,
    /// Why it cannot be rendered.
    pub reason: Reason,
}

impl From<Unresolved> for Failure {
    fn from(error: Unresolved) -> Failure {
        Failure::new(Code::UnresolvedVariable, error.to_string())
    }
}

/// Why a reference or a placeholder cannot be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It has no value.
    #[error("has no value")]
    Missing,
    /// The value contains a NUL byte, which an environment variable cannot.
    #[error("has a NUL byte in its value")]
    Nul,
    /// With this value, the text would exceed its bound.
    #[error("makes the text longer than {TEMPLATE_TEXT_BYTES_MAX} bytes")]
    TooLong,
}

impl Template {
    /// Parses a template, or returns all errors.
    pub fn parse(source: &str) -> Result<Template, Vec<Fault>> {
        let (parts, faults) = split(source);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Template { source: source.to_owned(), parts })
    }

    /// The source text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every path in the template, in source order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Reference(reference) => Some(reference),
            TemplatePart::Text(_) => None,
        })
    }

    /// Renders the template with the values of `scope`.
    pub fn render(&self, scope: &dyn Scope) -> Result<String, Unresolved> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Reference(reference) => {
                    let value = text_at(&reference.path, scope)?;
                    push(&mut out, &value).map_err(|reason| refuse(&reference.path, reason))?;
                }
            }
        }
        Ok(out)
    }

    /// Renders the template with the values that `is_known` accepts, and `gap` for each other
    /// reference.
    pub(crate) fn render_known(
        &self,
        scope: &dyn Scope,
        is_known: impl Fn(&Path) -> bool,
        gap: &str,
    ) -> String {
        let mut out = String::new();
        for part in &self.parts {
            let text = match part {
                TemplatePart::Text(text) => Some(Cow::Borrowed(text.as_str())),
                TemplatePart::Reference(reference) if is_known(&reference.path) => {
                    text_at(&reference.path, scope).ok()
                }
                TemplatePart::Reference(_) => None,
            };
            // A text that is too long is not known either.
            if text.is_none_or(|text| push(&mut out, &text).is_err()) {
                out.push_str(gap);
            }
        }
        out
    }

    /// The typed value if the template is a single reference; otherwise the rendered text.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, Unresolved> {
        let [TemplatePart::Reference(reference)] = self.parts.as_slice() else {
            return self.render(scope).map(Value::String);
        };
        match resolve(&reference.path, scope) {
            Found::Value(value) => Ok(value.into_owned()),
            Found::Skipped => Ok(Value::Null),
            Found::Missing => Err(refuse(&reference.path, Reason::Missing)),
        }
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.source == other.source
    }
}

impl Eq for Template {}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl serde::Serialize for Template {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> serde::Deserialize<'de> for Template {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
        wire::parsed(deserializer, "a template", |text| Template::parse(text).map_err(wire::first))
    }
}

/// The value at `path` as text; empty for a skipped step.
fn text_at<'a>(path: &Path, scope: &'a dyn Scope) -> Result<Cow<'a, str>, Unresolved> {
    match locate(path, scope) {
        Located::Value(value) => Ok(text(value)),
        Located::Text(text) => Ok(Cow::Borrowed(text)),
        Located::Length { count, .. } => Ok(Cow::Owned(count.to_string())),
        Located::Skipped => Ok(Cow::Borrowed("")),
        Located::Missing => Err(refuse(path, Reason::Missing)),
    }
}

/// Appends a value, unless the text would exceed its bound.
fn push(out: &mut String, value: &str) -> Result<(), Reason> {
    if out.len().saturating_add(value.len()) > TEMPLATE_TEXT_BYTES_MAX {
        return Err(Reason::TooLong);
    }
    out.push_str(value);
    Ok(())
}

fn refuse(path: &Path, reason: Reason) -> Unresolved {
    Unresolved { path: path.clone(), reason }
}

/// Splits `source` into parts, and collects the errors.
fn split(source: &str) -> (Vec<TemplatePart>, Vec<Fault>) {
    let mut parts = Vec::new();
    let mut faults = Vec::new();
    let mut text = String::new();
    let mut references = 0;
    let mut at = 0;
    while let Some(dollar) = source[at..].find('$').map(|found| at + found) {
        text.push_str(&source[at..dollar]);
        let rest = &source[dollar..];
        if rest.starts_with("$${") {
            text.push_str("${");
            at = dollar + 3;
            continue;
        }
        if !rest.starts_with("${") {
            text.push('$');
            at = dollar + 1;
            continue;
        }
        references += 1;
        if references > TEMPLATE_REFERENCES_MAX {
            let message = format!("template has over {TEMPLATE_REFERENCES_MAX} references");
            faults.push(Fault::new(dollar..dollar + 2, message));
            return (parts, faults);
        }
        match scan_braced(source, dollar) {
            Ok((path, range, end)) => {
                if !text.is_empty() {
                    parts.push(TemplatePart::Text(std::mem::take(&mut text)));
                }
                let span = Span::new(range.start, range.end);
                parts.push(TemplatePart::Reference(Reference { path, span }));
                at = end;
            }
            Err(fault) => {
                let (fault, end) = not_a_path(source, dollar, &fault);
                faults.push(fault);
                at = end;
            }
        }
    }
    text.push_str(&source[at..]);
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text));
    }
    (parts, faults)
}

/// The error for a `${` at byte `start` that is not a reference, and where to continue.
fn not_a_path(source: &str, start: usize, fault: &Fault) -> (Fault, usize) {
    let hint = "write `$${` for a literal `${`";
    let inner = start + 2;
    let Some(length) = source[inner..].find('}') else {
        let fault = Fault::new(start..source.len(), "unclosed `${`");
        return (fault.with_hint(hint), source.len());
    };
    let end = inner + length + 1;
    if source[inner..end - 1].trim().is_empty() {
        let message = format!("expected a path in `${{…}}`, found {}", found_at(source, end - 1));
        return (Fault::new(start..end, message).with_hint(hint), end);
    }
    let shown: String = source[start..end].chars().take(60).collect();
    let dots = if shown.len() < end - start { "…" } else { "" };
    let message = format!("`{shown}{dots}` is not a reference: {}", fault.message);
    (Fault::new(start..end, message).with_hint(hint), end)
}

#[cfg(test)]
mod tests;
