//! The one binary: arguments in, exit code out.

mod amount;
mod authenticate;
mod beside;
mod cli;
mod client;
mod cmd;
mod config;
mod desk;
mod draw;
mod environment;
mod handles;
mod hands;
mod input;
mod key;
mod keyring;
mod kit;
mod live;
mod local;
mod log;
mod moderation;
mod organisation;
mod out;
mod picture;
mod place;
mod policies;
mod problem;
mod reach;
mod refused;
mod registry;
mod seal_file;
mod stop;
mod table;
mod values;

use cli::{Command, Invocation, Reader};
use client::Problem;
use config::Sources;
use out::Out;
use problem::Reported;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended; the number is the process's exit code.
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
    let (ended, reader) = match cli::invocation() {
        Ok(Invocation { command, sources, reader }) => {
            (begin(&command, &sources, &mut out), reader)
        }
        Err(usage) => match cli::reader_of_usage() {
            Reader::Program if usage.use_stderr() => {
                (Err(refused::usage(&usage).into()), Reader::Program)
            }
            _ => usage.exit(),
        },
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = exit_code(&error);
            // Nobody is left to tell when even this cannot be written.
            let _ = match reader {
                Reader::Person => out.note(&draw::failure(&error)),
                Reader::Program => out.note_json(&Reported::new(&error)),
            };
            exit.into()
        }
    }
}

/// Settles the settings, then does what is asked.
fn begin(command: &Command, sources: &Sources, out: &mut Out) -> anyhow::Result<Exit> {
    let exit = match config::settle(sources) {
        Ok(()) => cmd::run(command, out)?,
        Err(refused) => cmd::without_settings(command, refused, out)?,
    };
    out.flush()?;
    Ok(exit)
}

/// The exit code of a command that an error has ended.
fn exit_code(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<Problem>() {
        Some(problem) if problem.is_failure() => Exit::Failed,
        Some(_) => Exit::Refused,
        None if refused::in_error(error).is_some() => Exit::Refused,
        None => Exit::Failed,
    }
}
