//! Reading what is named on the command line, and no more of it than counts.

use crate::problem::Unreadable;
use sluice_core::code::Code;
use sluice_core::diagnostic::{Diagnostic, Problem, Problems};
use sluice_core::limits::DOCUMENT_BYTES_MAX;
use sluice_core::span::Span;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// One file, read.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// As it was named.
    pub(crate) name: String,
    /// Its bytes; when it is longer than a document may be, one byte more than that.
    pub(crate) bytes: Vec<u8>,
}

impl Input {
    /// Reads the file called `name`; `-` is standard input.
    pub(crate) fn read(name: &OsStr) -> Result<Input, Unreadable> {
        let read = if name == "-" { bounded(io::stdin().lock()) } else { file(Path::new(name)) };
        let name = name.to_string_lossy().into_owned();
        match read {
            Ok(bytes) => Ok(Input { name, bytes }),
            Err(cause) => Err(Unreadable { name, cause }),
        }
    }

    /// The text, as far as it is text: for drawing.
    pub(crate) fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The text, or what is wrong with it. For files that are not documents;
    /// documents are checked in the core.
    pub(crate) fn text(&self) -> Result<&str, Vec<Diagnostic>> {
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

fn file(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Opening a named pipe waits for a writer that may never come. What the
    // shell's `<(…)` hands over is open already.
    let open_already = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    if !kind.is_file() && !open_already {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    bounded(File::open(path)?)
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
