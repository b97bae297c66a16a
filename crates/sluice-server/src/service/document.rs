//! Documents that a caller passes in, and the diagnostics found in them.

use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problem, Problems};
use sluice_core::span::Span;
use std::borrow::Cow;

/// A document, read into memory.
#[derive(Debug, Clone)]
pub struct Input {
    /// File name, as the caller gave it.
    pub name: String,
    /// Content. If it is longer than a document may be, it is cut one byte above the limit.
    pub bytes: Vec<u8>,
}

impl Input {
    /// The text with invalid bytes replaced, for showing it.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The text, or a diagnostic if it is not UTF-8. For files that are not documents;
    /// documents are checked in the core.
    pub fn text(&self) -> Result<&str, Vec<Diagnostic>> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let at = error.valid_up_to();
            let message = format!("byte {at} is not UTF-8");
            let problem = Problem::new(Code::InvalidEncoding, Span::new(at, at + 1), message);
            let mut problems = Problems::default();
            problems.add(problem.with_hint("save the file as UTF-8"));
            problems.into_diagnostics(&self.lossy())
        })
    }
}

/// The diagnostics of one document.
#[derive(Debug)]
pub struct Findings {
    /// The document they refer to.
    pub input: Input,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}
