//! Problems of a document, for people and for programs.
//!
//! Checks add [`Problem`]s with byte ranges. At the end they become [`Diagnostic`]s with lines
//! and columns, in document order.

use crate::code::{Code, Severity};
use crate::limits::PROBLEMS_MAX;
use crate::span::{Fault, Span};
use crate::visible::shorten_to;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The longest path in a diagnostic, in characters.
const PATH_CHARS_MAX: usize = 1000;

/// One problem in the form that programs read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The kind of problem.
    pub code: Code,
    /// The message: lower case, no full stop.
    pub message: String,
    /// The path of the value it is about: `steps[2].depends_on[0]`; empty for the whole document.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The byte range, for drawing.
    #[serde(skip)]
    pub span: Span,
}

impl Diagnostic {
    /// Whether the document is rejected because of it.
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}

/// One problem with a byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    span: Span,
    path: String,
    message: String,
    hint: Option<String>,
    conclusive: bool,
}

impl Problem {
    /// A problem at `span`; it has no path yet.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Problem {
        Problem {
            code,
            span,
            path: String::new(),
            message: message.into(),
            hint: None,
            conclusive: false,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a "did you mean" hint, if there is a suggestion.
    #[must_use]
    pub fn with_suggestion(self, suggestion: Option<&str>) -> Problem {
        match suggestion {
            Some(name) => self.with_hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Moves the problem to another span.
    #[must_use]
    pub(crate) fn at_span(mut self, span: Span) -> Problem {
        self.span = span;
        self
    }

    /// Sets the path of the value.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<String>) -> Problem {
        let path = path.into();
        // A key may be as long as the document, and each of many problems has a path.
        self.path = match shorten_to(&path, PATH_CHARS_MAX) {
            Cow::Borrowed(_) => path,
            Cow::Owned(short) => short,
        };
        self
    }

    /// A fault in an expression or a template as a problem of the document.
    pub fn from_fault(code: Code, span: Span, fault: Fault) -> Problem {
        let problem = Problem::new(code, span, fault.message);
        Problem { hint: fault.hint, ..problem }
    }

    /// Suppresses later problems at the same place: a value that cannot be read is neither
    /// of the wrong type nor out of bounds.
    #[must_use]
    pub(crate) fn conclusive(mut self) -> Problem {
        self.conclusive = true;
        self
    }
}

/// All problems found so far, without duplicates.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    /// The problems in the list. A field from `defaults` is read for every step, and its
    /// problem must be reported and counted once.
    known: BTreeSet<(Span, Code, String)>,
    errors: usize,
    left_out: usize,
}

impl Problems {
    /// Adds a problem, unless it is a duplicate or the limit is reached.
    pub fn add(&mut self, problem: Problem) {
        let is_error = problem.code.severity() == Severity::Error;
        self.errors += usize::from(is_error);
        let key = (problem.span, problem.code, problem.message.clone());
        if self.known.contains(&key) {
            return;
        }
        if self.is_full() {
            self.left_out += 1;
            // A rejected document must show why, so errors displace warnings.
            let warning = |one: &Problem| one.code.severity() != Severity::Error;
            let Some(at) = self.list.iter().rposition(warning).filter(|_| is_error) else {
                return;
            };
            self.list.remove(at);
        }
        self.known.insert(key);
        self.list.push(problem);
    }

    /// Whether further problems would hardly be shown.
    pub fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    /// Whether the document is rejected.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All diagnostics in document order, with lines and columns of `text`.
    pub fn into_diagnostics(mut self, text: &str) -> Vec<Diagnostic> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let concluded: BTreeSet<Span> =
            self.list.iter().filter(|one| one.conclusive).map(|one| one.span).collect();
        self.list.retain(|one| one.conclusive || !concluded.contains(&one.span));
        if self.left_out > 0 {
            let end = Span::new(text.len(), text.len());
            let message = match self.left_out {
                1 => "1 more problem is not shown".to_owned(),
                count => format!("{count} more problems are not shown"),
            };
            self.list.push(Problem::new(Code::MoreProblems, end, message));
        }
        self.list.sort_by_key(|one| (one.span, one.code));
        let lines = LineIndex::new(text);
        self.list.into_iter().map(|problem| lines.place(problem)).collect()
    }
}

/// The start of each line of a text.
pub(crate) struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub(crate) fn new(text: &'t str) -> LineIndex<'t> {
        let after = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        // Editors do not show a byte order mark.
        let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        LineIndex { text, starts: std::iter::once(first).chain(after).collect() }
    }

    pub(crate) fn place(&self, problem: Problem) -> Diagnostic {
        let offset = (problem.span.start as usize).min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let before = self.text.get(self.starts[line]..offset).unwrap_or_default();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Diagnostic {
            code: problem.code,
            message: problem.message,
            path: problem.path,
            line: number(line + 1),
            column: number(before.chars().count() + 1),
            hint: problem.hint,
            span: problem.span,
        }
    }
}

#[cfg(test)]
mod tests;
