//! Places in a text.

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
    /// The range `start..end`. Texts are bounded far below 4 GiB, so a place
    /// that does not fit is clamped rather than refused.
    pub fn new(start: usize, end: usize) -> Span {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The same range counted from `origin`.
    pub fn shifted(self, origin: u32) -> Span {
        Span { start: self.start.saturating_add(origin), end: self.end.saturating_add(origin) }
    }

    /// As a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value together with the place it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spanned<T> {
    /// What was read.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value` read at `span`.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

/// Something wrong inside a piece of text, placed relative to that piece.
///
/// Parsers of small languages (expressions, templates, durations) answer with
/// faults; whoever knows the document turns them into diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Where in the piece.
    pub span: Span,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it, if known.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault at a range of bytes.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span: Span::new(range.start, range.end), message: message.into(), hint: None }
    }

    /// The same fault with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }
}
