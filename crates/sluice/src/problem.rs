//! Problems as programs see them.

use crate::client::Problem;
use crate::refused;
use serde::Serialize;
use sluice_core::diagnostic::Diagnostic;
use sluice_server::refused::Refused;
use std::io;

/// A file that could not be read at all. The core reads no files, so the code is ours.
pub(crate) const DOCUMENT_UNREADABLE: &str = "document_unreadable";

/// A file that could not be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// As it was named.
    pub(crate) name: String,
    /// Why.
    pub(crate) cause: io::Error,
}

impl Unreadable {
    pub(crate) fn message(&self) -> String {
        match self.name.as_str() {
            "-" => "cannot read standard input".to_owned(),
            name => format!("cannot read `{name}`"),
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> String {
        match self.cause.kind() {
            io::ErrorKind::NotFound => "check the path".to_owned(),
            io::ErrorKind::PermissionDenied => "ask for the right to read it".to_owned(),
            io::ErrorKind::IsADirectory => "name the files in it".to_owned(),
            io::ErrorKind::InvalidInput => {
                format!("hand its content over on standard input: `- < {}`", self.name)
            }
            _ => "check the file and the disk it is on".to_owned(),
        }
    }
}

/// An error that has no code of its own: the disk, the network, the terminal.
pub(crate) const COMMAND_FAILED: &str = "command_failed";

/// What a program is told of the error that ended a command.
#[derive(Debug, Serialize)]
pub(crate) struct Reported<'a> {
    code: &'a str,
    message: String,
    /// Every single problem, or the causes of the error.
    notes: Vec<String>,
    /// What to do.
    hint: Option<&'a str>,
}

impl<'a> Reported<'a> {
    pub(crate) fn new(error: &'a anyhow::Error) -> Reported<'a> {
        let message = error.to_string();
        if let Some(Problem { code, notes, remedy, .. }) = error.downcast_ref() {
            return Reported { code, message, notes: notes.clone(), hint: Some(remedy) };
        }
        if let Some(Refused { code, notes, remedy, .. }) = refused::in_error(error) {
            return Reported { code, message, notes: notes.clone(), hint: Some(remedy) };
        }
        let causes = error.chain().skip(1).map(ToString::to_string).collect();
        Reported { code: COMMAND_FAILED, message, notes: causes, hint: None }
    }
}

/// What a program is told of one file.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    file: &'a str,
    ok: bool,
    errors: Vec<Line<'a>>,
    warnings: Vec<Line<'a>>,
}

/// One problem. Every field is always there.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    code: &'a str,
    message: String,
    path: &'a str,
    line: u32,
    column: u32,
    hint: Option<String>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a str, diagnostics: &'a [Diagnostic]) -> Report<'a> {
        let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics.iter().partition(|d| d.is_error());
        let lines = |list: Vec<&'a Diagnostic>| list.into_iter().map(Line::new).collect();
        Report { file, ok: errors.is_empty(), errors: lines(errors), warnings: lines(warnings) }
    }

    pub(crate) fn unreadable(file: &'a Unreadable) -> Report<'a> {
        Report {
            file: &file.name,
            ok: false,
            errors: vec![Line::unreadable(file)],
            warnings: vec![],
        }
    }
}

impl<'a> Line<'a> {
    pub(crate) fn new(diagnostic: &'a Diagnostic) -> Line<'a> {
        Line {
            code: diagnostic.code.as_str(),
            message: diagnostic.message.clone(),
            path: &diagnostic.path,
            line: diagnostic.line,
            column: diagnostic.column,
            hint: diagnostic.hint.clone(),
        }
    }

    /// The whole file is meant, which is written as its beginning.
    pub(crate) fn unreadable(file: &Unreadable) -> Line<'static> {
        Line {
            code: DOCUMENT_UNREADABLE,
            message: format!("{}: {}", file.message(), file.cause),
            path: "",
            line: 1,
            column: 1,
            hint: Some(file.remedy()),
        }
    }
}
