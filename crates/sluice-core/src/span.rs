//! Positions in a text.

use std::ops::Range;

/// A range of bytes in a document's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// First byte after the range.
    pub end: u32,
}

impl Span {
    /// The range `start..end`. Texts are far below 4 GiB, so a position that does not fit
    /// is clamped.
    pub fn new(start: usize, end: usize) -> Span {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The range, relative to `origin`.
    pub fn shifted(self, origin: u32) -> Span {
        Span { start: self.start.saturating_add(origin), end: self.end.saturating_add(origin) }
    }

    /// The range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value with its position in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spanned<T> {
    /// What was parsed from the span.
    pub value: T,
    /// Its position.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A value at `span`.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

/// An error inside a piece of text, with a position relative to that piece.
///
/// Parsers of expressions, templates and durations return faults; the reader of the document
/// turns them into diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The position within the piece.
    pub span: Span,
    /// The message: lower case, no full stop.
    pub message: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault at a range of bytes.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span: Span::new(range.start, range.end), message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}
