//! The one binary: arguments in, exit code out.

mod cli;
mod cmd;
mod draw;
mod input;
mod out;
mod problem;
mod visible;

use out::Out;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Done = 0,
    Failed = 1,
    Refused = 2,
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
            // Nobody is left to tell when even this cannot be written.
            let _ = out.note(&draw::error(&error));
            Exit::Failed.into()
        }
    }
}
