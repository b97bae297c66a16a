//! Problems as JSON.

use crate::client::ApiProblem;
use crate::refused;
use serde::Serialize;
use sluice_core::diagnostic::Diagnostic;
use sluice_core::flow::FlowFinding;
use sluice_server::refused::Refused;
use std::io;

/// The core reads no files, so this code is defined by the command line.
pub(crate) const DOCUMENT_UNREADABLE: &str = "document_unreadable";

#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) name: String,
    pub(crate) cause: io::Error,
}

impl Unreadable {
    pub(crate) fn message(&self) -> String {
        match self.name.as_str() {
            "-" => "cannot read standard input".to_owned(),
            name => format!("cannot read `{name}`"),
        }
    }

    pub(crate) fn remedy(&self) -> String {
        match self.cause.kind() {
            io::ErrorKind::NotFound => "check the path".to_owned(),
            io::ErrorKind::PermissionDenied => "ask for the right to read it".to_owned(),
            io::ErrorKind::IsADirectory => "name the files in it".to_owned(),
            io::ErrorKind::InvalidInput => {
                format!("pass its content on standard input: `- < {}`", self.name)
            }
            _ => "check the file and the disk it is on".to_owned(),
        }
    }
}

/// An error without a code: of the disk, the network or the terminal.
pub(crate) const COMMAND_FAILED: &str = "command_failed";

/// The error that ended a command, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Reported<'a> {
    code: &'a str,
    message: String,
    /// All problems, or the causes of the error.
    notes: Vec<String>,
    hint: Option<&'a str>,
}

impl<'a> Reported<'a> {
    pub(crate) fn new(error: &'a anyhow::Error) -> Reported<'a> {
        let message = error.to_string();
        if let Some(ApiProblem { code, notes, remedy, .. }) = error.downcast_ref() {
            return Reported { code, message, notes: notes.clone(), hint: Some(remedy) };
        }
        if let Some(Refused { code, notes, remedy, .. }) = refused::in_error(error) {
            return Reported { code, message, notes: notes.clone(), hint: Some(remedy) };
        }
        let causes = error.chain().skip(1).map(ToString::to_string).collect();
        Reported { code: COMMAND_FAILED, message, notes: causes, hint: None }
    }
}

/// The problems of one file, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    file: &'a str,
    ok: bool,
    errors: Vec<ReportedProblem<'a>>,
    warnings: Vec<ReportedProblem<'a>>,
    /// Where data can flow although a policy stops it.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a [FlowFinding]>,
}

/// One problem. Every field is always present.
#[derive(Debug, Serialize)]
pub(crate) struct ReportedProblem<'a> {
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
        let lines =
            |list: Vec<&'a Diagnostic>| list.into_iter().map(ReportedProblem::new).collect();
        let (ok, errors, warnings) = (errors.is_empty(), lines(errors), lines(warnings));
        Report { file, ok, errors, warnings, flow: None }
    }

    /// Adds the findings of a flow analysis.
    pub(crate) fn with_flow(self, found: &'a [FlowFinding]) -> Report<'a> {
        let ok = self.ok && !found.iter().any(|one| one.diagnostic.is_error());
        Report { ok, flow: Some(found), ..self }
    }

    pub(crate) fn unreadable(file: &'a Unreadable) -> Report<'a> {
        Report {
            file: &file.name,
            ok: false,
            errors: vec![ReportedProblem::unreadable(file)],
            warnings: vec![],
            flow: None,
        }
    }
}

impl<'a> ReportedProblem<'a> {
    pub(crate) fn new(diagnostic: &'a Diagnostic) -> ReportedProblem<'a> {
        ReportedProblem {
            code: diagnostic.code.as_str(),
            message: diagnostic.message.clone(),
            path: &diagnostic.path,
            line: diagnostic.line,
            column: diagnostic.column,
            hint: diagnostic.hint.clone(),
        }
    }

    /// A problem of the whole file has the position of its beginning.
    pub(crate) fn unreadable(file: &Unreadable) -> ReportedProblem<'static> {
        ReportedProblem {
            code: DOCUMENT_UNREADABLE,
            message: format!("{}: {}", file.message(), file.cause),
            path: "",
            line: 1,
            column: 1,
            hint: Some(file.remedy()),
        }
    }
}
