//! The path of a value within outputs.

use std::fmt::Write;

#[derive(Debug, Clone, Copy)]
pub(crate) enum PathSegment<'a> {
    Name(&'a str),
    Index(usize),
}

/// The path from the outputs to the current value; rendered only when needed.
#[derive(Debug, Default)]
pub(crate) struct OutputPath<'a>(Vec<PathSegment<'a>>);

impl<'a> OutputPath<'a> {
    pub(crate) fn enter(&mut self, part: PathSegment<'a>) {
        self.0.push(part);
    }

    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    /// The number of segments.
    pub(crate) fn depth(&self) -> usize {
        self.0.len()
    }

    /// The path as text: `a.b[0]`.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                PathSegment::Name(name) if text.is_empty() => text.push_str(name),
                PathSegment::Name(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                PathSegment::Index(index) => {
                    write!(text, "[{index}]").expect("writing to a string cannot fail");
                }
            }
        }
        text
    }
}
