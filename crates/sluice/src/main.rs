//! The one binary: arguments in, exit code out.

mod amount;
mod beside;
mod cli;
mod cmd;
mod draw;
mod environment;
mod hands;
mod input;
mod key;
mod live;
mod local;
mod moderation;
mod organisation;
mod out;
mod policies;
mod problem;
mod refused;
mod registry;
mod table;

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
    let command = cli::command();
    let mut out = Out::new();
    let ended = cmd::run(&command, &mut out).and_then(|exit| out.flush().map(|()| exit));
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let (drawn, exit) = match refusal(&error) {
                Some(refused) => (draw::refused(refused), Exit::Refused),
                None => (draw::error(&error), Exit::Failed),
            };
            // Nobody is left to tell when even this cannot be written.
            let _ = out.note(&drawn);
            exit.into()
        }
    }
}

/// What was refused, if that is what the error says.
fn refusal(error: &anyhow::Error) -> Option<&Refused> {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Refused(refused)) => Some(refused),
        _ => error.downcast_ref::<Refused>(),
    }
}
