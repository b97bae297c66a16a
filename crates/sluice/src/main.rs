//! The one binary: arguments in, exit code out.

mod amount;
mod beside;
mod cli;
mod client;
mod cmd;
mod config;
mod desk;
mod draw;
mod environment;
mod hands;
mod input;
mod key;
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
mod table;
mod values;

use cli::Command;
use client::Problem;
use config::Sources;
use out::Out;
use sluice_server::refused::{Failure, Refused};
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
    let (command, sources) = cli::command();
    let mut out = Out::new();
    let ended = begin(&command, &sources, &mut out);
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let (drawn, exit) = tell(&error);
            // Nobody is left to tell when even this cannot be written.
            let _ = out.note(&drawn);
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

/// What ended the command, drawn, and the exit code it means.
fn tell(error: &anyhow::Error) -> (String, Exit) {
    if let Some(problem) = error.downcast_ref::<Problem>() {
        let exit = if problem.is_failure() { Exit::Failed } else { Exit::Refused };
        return (draw::problem(problem), exit);
    }
    match refusal(error) {
        Some(refused) => (draw::refused(refused), Exit::Refused),
        None => (draw::error(error), Exit::Failed),
    }
}

/// What was refused, if that is what the error says.
fn refusal(error: &anyhow::Error) -> Option<&Refused> {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Refused(refused)) => Some(refused),
        _ => error.downcast_ref::<Refused>(),
    }
}
