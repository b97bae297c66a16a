//! Documents that somebody hands over, and what is found in them.

use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problem, Problems};
use sluice_core::span::Span;
use std::borrow::Cow;

/// One document, read.
#[derive(Debug, Clone)]
pub struct Input {
    /// As it was named.
    pub name: String,
    /// Its bytes; when it is longer than a document may be, one byte more than that.
    pub bytes: Vec<u8>,
}

impl Input {
    /// The text, as far as it is text: for drawing.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The text, or what is wrong with it. For files that are not documents;
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

/// What was found in one document, for people.
#[derive(Debug)]
pub struct Findings {
    /// The document.
    pub input: Input,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}
