//! The only place that writes to the terminal.
//!
//! Results go to standard output, notes to standard error. A closed pipe (`| head -1`) is not
//! an error: the rest is dropped, and the exit code stays the same.

use anstream::AutoStream;
use anyhow::Context;
use serde::Serialize;
use sluice_core::visible;
use std::io::{self, BufWriter, Stderr, Stdout, Write};

/// Both streams. Colours are only written to a terminal, and not if `NO_COLOR` is set.
pub(crate) struct Out {
    stdout: BufWriter<Stdout>,
    stderr: AutoStream<Stderr>,
    reader_left: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Line,
    Pretty,
}

impl Out {
    pub(crate) fn new() -> Out {
        Out {
            stdout: BufWriter::new(io::stdout()),
            stderr: AutoStream::auto(io::stderr()),
            reader_left: false,
        }
    }

    /// Writes text to standard output.
    pub(crate) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        self.answer(|stdout| stdout.write_all(text.as_bytes()))
    }

    /// Writes a value as JSON and a line break.
    pub(crate) fn json(&mut self, layout: Layout, value: &impl Serialize) -> anyhow::Result<()> {
        let text = match layout {
            Layout::Line => serde_json::to_string(value),
            Layout::Pretty => serde_json::to_string_pretty(value),
        };
        let mut text = harmless(text.context("cannot write the answer as JSON")?);
        text.push('\n');
        self.print(&text)
    }

    /// Writes a line that is JSON already.
    pub(crate) fn json_text(&mut self, json: &str) -> anyhow::Result<()> {
        let mut text = harmless(json.to_owned());
        text.push('\n');
        self.print(&text)
    }

    /// Writes a prompt.
    pub(crate) fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.flush()?;
        let written = tolerate(write!(self.stderr, "{text}").and_then(|()| self.stderr.flush()));
        written.map(drop).context("cannot write to standard error")
    }

    /// Writes lines to standard error, after everything printed so far.
    pub(crate) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.flush()?;
        let written = tolerate(writeln!(self.stderr, "{text}"));
        written.map(drop).context("cannot write to standard error")
    }

    /// Writes an error as one line of JSON to standard error.
    pub(crate) fn note_json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(value).context("cannot write the error as JSON")?;
        self.note(&harmless(text))
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.answer(Write::flush)
    }

    fn answer(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        if !self.reader_left {
            let delivery = tolerate(write(&mut self.stdout));
            self.reader_left =
                delivery.context("cannot write to standard output")? == Delivery::ReaderLeft;
        }
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Delivery {
    Done,
    ReaderLeft,
}

fn tolerate(written: io::Result<()>) -> io::Result<Delivery> {
    match written {
        Ok(()) => Ok(Delivery::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Delivery::ReaderLeft),
        Err(error) => Err(error),
    }
}

/// Escapes the control characters in JSON that a terminal would execute.
pub(crate) fn harmless(json: String) -> String {
    visible::json(json)
}
