//! What is wrong with a document, in a form for people and for programs.
//!
//! Checks add [`Problem`]s, placed by byte range; when all are in, they become
//! [`Diagnostic`]s, placed by line and column, in document order.

use crate::code::{Code, Severity};
use crate::limits::PROBLEMS_MAX;
use crate::span::{Fault, Span};
use serde::Serialize;

/// One problem, as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Which kind of problem.
    pub code: Code,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// The path of the value it is about: `steps[2].depends_on[0]`; empty for the whole document.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The range of bytes it is about, for drawing.
    #[serde(skip)]
    pub span: Span,
}

impl Diagnostic {
    /// Whether the document is refused because of it.
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}

/// One problem, placed by bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    span: Span,
    path: String,
    message: String,
    hint: Option<String>,
}

impl Problem {
    /// A problem at a place, of the document as a whole until a path is given.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Problem {
        Problem { code, span, path: String::new(), message: message.into(), hint: None }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// The same problem with "did you mean" advice, where there is a likely meaning.
    #[must_use]
    pub fn with_suggestion(self, suggestion: Option<&str>) -> Problem {
        match suggestion {
            Some(name) => self.with_hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// The same problem at another place.
    #[must_use]
    pub fn at_span(mut self, span: Span) -> Problem {
        self.span = span;
        self
    }

    /// The same problem, about the value at `path`.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<String>) -> Problem {
        self.path = path.into();
        self
    }

    /// A fault of a small language as a problem of the document.
    pub fn from_fault(code: Code, span: Span, fault: Fault) -> Problem {
        Problem { code, span, path: String::new(), message: fault.message, hint: fault.hint }
    }
}

/// All problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    errors: usize,
    left_out: usize,
}

impl Problems {
    /// Adds a problem, unless so many are known that more would help nobody.
    pub fn add(&mut self, problem: Problem) {
        if problem.code.severity() == Severity::Error {
            self.errors += 1;
        }
        if self.is_full() {
            self.left_out += 1;
        } else {
            self.list.push(problem);
        }
    }

    /// Whether further problems would only be counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    /// Whether the document is refused.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All of them, in document order, each once, placed by line and column of `text`.
    pub fn into_diagnostics(mut self, text: &str) -> Vec<Diagnostic> {
        if self.list.is_empty() {
            return Vec::new();
        }
        if self.left_out > 0 {
            let end = Span::new(text.len(), text.len());
            let message = format!("{} more problems are not shown", self.left_out);
            self.list.push(Problem::new(Code::MoreProblems, end, message));
        }
        self.list.sort_by_key(|a| (a.span, a.code));
        // A field from `defaults` is read for every step; its problem is told once.
        self.list.dedup_by(|a, b| (a.span, a.code, &a.message) == (b.span, b.code, &b.message));
        let lines = LineIndex::new(text);
        self.list.into_iter().map(|problem| lines.place(problem)).collect()
    }
}

/// Where each line of a text begins.
struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    fn new(text: &'t str) -> LineIndex<'t> {
        let after = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        LineIndex { text, starts: std::iter::once(0).chain(after).collect() }
    }

    fn place(&self, problem: Problem) -> Diagnostic {
        let offset = (problem.span.start as usize).min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
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
