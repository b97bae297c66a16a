//! Translates the end of a command into an answer.

use crate::limits::ARGUMENT_BYTES_MAX;
use crate::normalise::object_of;
use rustix::io::Errno;
use sluice_core::port::adapter::{Answer, CallError, CallErrorCode};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Why a command was stopped.
#[derive(Debug)]
pub(super) enum StopCause {
    /// The engine cancelled it.
    Cancelled,
    /// The engine closed the call.
    Closed,
    /// It exceeded an output limit.
    TooLong { what: &'static str, bytes_max: usize },
    /// A pipe or waiting for the process failed.
    Broken(io::Error),
}

/// Answer of a command that ended. Its text is unchanged.
pub(super) fn ended(status: ExitStatus, stdout: String, stderr_tail: &str) -> Answer {
    let error = failure(status).map(|(code, what)| {
        let message = match stderr_tail {
            "" => what,
            tail => format!("{what}: {tail}"),
        };
        CallError { code, message, retry_after_ms: None }
    });
    let outputs = if error.is_none() { object_of(&stdout) } else { None };
    Answer { error, text: Some(stdout), outputs, ..Answer::default() }
}

fn failure(status: ExitStatus) -> Option<(CallErrorCode, String)> {
    if status.success() {
        return None;
    }
    Some(match (status.code(), status.signal()) {
        (Some(code), _) => (CallErrorCode::ProviderError, format!("exit status {code}")),
        (None, Some(signal)) => {
            (CallErrorCode::AdapterCrash, format!("killed by {}", signal_name(signal)))
        }
        (None, None) => (CallErrorCode::AdapterCrash, "ended without an exit status".to_owned()),
    })
}

/// Answer of a stopped command, with its output so far.
pub(super) fn stopped(stop: &StopCause, stdout: String) -> Answer {
    let answer = match stop {
        StopCause::Cancelled | StopCause::Closed => {
            Answer::failed(CallErrorCode::Cancelled, "cancelled")
        }
        StopCause::TooLong { what, bytes_max } => {
            let message = format!("{what} exceeds {}", size(*bytes_max));
            Answer::failed(CallErrorCode::ProviderError, message)
        }
        StopCause::Broken(error) => {
            Answer::failed(CallErrorCode::AdapterCrash, format!("lost the command: {error}"))
        }
    };
    Answer { text: Some(stdout).filter(|text| !text.is_empty()), ..answer }
}

/// Why a command could not be started.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// Permanent: a retry does not help.
    Refused(CallError),
    /// The machine has no file handle, process or memory left at the moment.
    Exhausted(CallError),
}

impl From<CallError> for NotStarted {
    fn from(error: CallError) -> NotStarted {
        NotStarted::Refused(error)
    }
}

/// Classifies a failed start. Exhausted resources are not the request's fault.
pub(super) fn not_started(error: &io::Error, environment: &[(OsString, OsString)]) -> NotStarted {
    let errno = Errno::from_io_error(error);
    if errno == Some(Errno::TOOBIG) {
        let largest = environment.iter().max_by_key(|(name, value)| name.len() + value.len());
        let name = largest.map(|(name, _)| name.to_string_lossy()).unwrap_or_default();
        return refusal(format!(
            "the command and its environment exceed the system's limit for a process; \
             the largest variable is {name}"
        ))
        .into();
    }
    let message = format!("cannot start the shell: {error}");
    match errno {
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
            NotStarted::Exhausted(crash(message))
        }
        _ => refusal(message).into(),
    }
}

pub(super) fn variable_too_long(name: &str) -> CallError {
    let limit = ARGUMENT_BYTES_MAX / 1024;
    refusal(format!(
        "the environment variable {name} exceeds {limit} KiB, the limit of one variable; \
         pass long values through stdin"
    ))
}

/// An error caused by the request.
pub(super) fn refusal(message: impl Into<String>) -> CallError {
    let code = CallErrorCode::InvalidRequest;
    CallError { code, message: message.into(), retry_after_ms: None }
}

/// The error of a command that was cancelled before it started.
pub(super) fn cancelled() -> CallError {
    let code = CallErrorCode::Cancelled;
    CallError { code, message: "cancelled".to_owned(), retry_after_ms: None }
}

/// An error caused by the machine.
pub(super) fn crash(message: impl Into<String>) -> CallError {
    let code = CallErrorCode::AdapterCrash;
    CallError { code, message: message.into(), retry_after_ms: None }
}

fn size(bytes: usize) -> String {
    const MIB: usize = 1024 * 1024;
    if bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

/// Names of common signals, by the numbers that all supported systems share.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
