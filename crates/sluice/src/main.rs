//! The `sluice` binary.

mod adapters;
mod amount;
mod authenticate;
mod backend;
mod cli;
mod client;
mod cmd;
mod config;
mod data_location;
mod draw;
mod environment;
mod handles;
mod input;
mod key;
mod keyring;
mod live;
mod local;
mod log;
mod moderation;
mod organisation;
mod out;
mod picture;
mod policies;
mod problem;
mod providers;
mod reach;
mod referenced_documents;
mod refused;
mod registry;
mod seal_file;
mod stop;
mod table;
mod values;

use cli::{Command, Invocation, OutputFormat};
use client::ApiProblem;
use config::Sources;
use out::Out;
use problem::Reported;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended; the value is the exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Done = 0,
    Failed = 1,
    Refused = 2,
    Cancelled = 3,
    Waiting = 4,
    TimedOut = 5,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

fn main() -> ExitCode {
    let mut out = Out::new();
    let (ended, output) = match cli::invocation() {
        Ok(Invocation { command, sources, output }) => {
            (begin(&command, &sources, &mut out), output)
        }
        Err(usage) => match cli::output_of_usage() {
            OutputFormat::Json if usage.use_stderr() => {
                (Err(refused::usage(&usage).into()), OutputFormat::Json)
            }
            _ => usage.exit(),
        },
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = exit_code(&error);
            // Standard error may be closed.
            let _ = match output {
                OutputFormat::Text => out.note(&draw::failure(&error)),
                OutputFormat::Json => out.note_json(&Reported::new(&error)),
            };
            exit.into()
        }
    }
}

/// Resolves the settings, then runs the command.
fn begin(command: &Command, sources: &Sources, out: &mut Out) -> anyhow::Result<Exit> {
    let exit = match config::resolve(sources) {
        Ok(()) => cmd::run(command, out)?,
        Err(refused) => cmd::without_settings(command, refused, out)?,
    };
    out.flush()?;
    Ok(exit)
}

/// The exit code of a command that ended with an error.
fn exit_code(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<ApiProblem>() {
        Some(problem) if problem.is_failure() => Exit::Failed,
        Some(_) => Exit::Refused,
        None if refused::in_error(error).is_some() => Exit::Refused,
        None => Exit::Failed,
    }
}
