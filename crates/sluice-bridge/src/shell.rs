//! Runs commands of the machine: `/bin/sh -c`, in a process group of their own.
//!
//! A command is started behind a gate: a shell that waits for a word on its
//! standard input before it becomes the command. The word is sent only when the
//! engine has journalled the process group, so that after a crash nothing runs
//! that is not on record: an engine that dies before closes the gate's input,
//! and the gate ends without having run anything.
//!
//! A command sees its arguments as environment variables, an allow-list of our
//! own environment, and a directory inside the workspace. What it leaves behind
//! in its group is killed when it ends. A process that leaves the group by
//! itself (`setsid`) is out of reach.
//!
//! INVARIANT: dropping the future kills the group.

pub(crate) mod environment;
pub(crate) mod group;
mod outcome;
mod pipe;
mod place;
mod survivor;

#[cfg(test)]
mod tests;

pub use survivor::{Survivor, kill_survivor};

use crate::limits::{
    ARGUMENT_BYTES_MAX, GRACE_MS, SPAWN_RETRY_MS, SPAWN_RETRY_MS_MAX, SPAWN_WAIT_MS_MAX,
    STDERR_BYTES_MAX, STDOUT_BYTES_MAX,
};
use group::Group;
use outcome::{NotStarted, Stop, refusal};
use pipe::Pipes;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallError, Capabilities, Closed, Emission, Execution, Health, Process,
    Quote, Request,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::watch;

const SHELL: &str = "/bin/sh";

/// Waits for the word, then becomes the command. A shell reads a pipe byte by
/// byte, so what follows the word is left for the command.
const GATE: &str = r#"IFS= read -r _sluice_word || exit 125
[ "$_sluice_word" = go ] || exit 125
exec /bin/sh -c -- "$1""#;

/// How commands are run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where they work.
    pub workspace: Workspace,
    /// Our own environment, of which they see an allow-list.
    pub environment: Vec<(OsString, OsString)>,
    /// Longest standard output, in bytes.
    pub stdout_bytes_max: usize,
    /// Longest standard error, in bytes.
    pub stderr_bytes_max: usize,
    /// How long a cancelled command may take to end by itself.
    pub grace_ms: u64,
}

/// Where commands work. Directories are made when they are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// All runs in this directory.
    Shared(PathBuf),
    /// Each run in a directory of this one, called by the run's id.
    PerRun(PathBuf),
}

impl Config {
    /// The usual bounds, and the environment of this process.
    pub fn new(workspace: Workspace) -> Config {
        Config {
            workspace,
            environment: std::env::vars_os().collect(),
            stdout_bytes_max: STDOUT_BYTES_MAX,
            stderr_bytes_max: STDERR_BYTES_MAX,
            grace_ms: GRACE_MS,
        }
    }
}

/// Runs commands.
#[derive(Debug, Clone)]
pub struct ShellAdapter {
    config: Config,
}

impl ShellAdapter {
    /// An adapter that runs commands as `config` says.
    pub fn new(config: Config) -> ShellAdapter {
        ShellAdapter { config }
    }

    async fn run(&self, request: &Request, call: &dyn Call) -> Answer {
        let mut group = match self.started(request, call).await {
            Ok(group) => group,
            Err(error) => return Answer { error: Some(error), ..Answer::default() },
        };
        let mut pipes = group.pipes(self.config.stdout_bytes_max, self.config.stderr_bytes_max);
        let ended = tokio::select! {
            biased;
            () = call.cancelled() => Err(Stop::Cancelled),
            ended = attend(&mut group, &mut pipes, request, call) => ended,
        };
        match ended {
            Ok(status) => outcome::ended(status, pipes.stdout.into_text(), &pipes.stderr.tail()),
            Err(stop) => {
                // The pipes stay open, so that a last word does not kill who says it.
                match &stop {
                    Stop::Cancelled => {
                        group.terminate(Duration::from_millis(self.config.grace_ms)).await;
                    }
                    Stop::Closed | Stop::TooLong { .. } | Stop::Broken(_) => group.kill().await,
                }
                outcome::stopped(&stop, pipes.stdout.into_text())
            }
        }
    }

    /// Starts the gate. Where the machine has no file handle, process or memory left,
    /// the command waits for them: other steps that end release theirs.
    async fn started(&self, request: &Request, call: &dyn Call) -> Result<Group, CallError> {
        let waiting = Instant::now();
        let mut pause = Duration::from_millis(SPAWN_RETRY_MS);
        loop {
            let error = match self.start(request) {
                Ok(group) => return Ok(group),
                Err(NotStarted::Refused(error)) => return Err(error),
                Err(NotStarted::Exhausted(error)) => error,
            };
            if waiting.elapsed() > Duration::from_millis(SPAWN_WAIT_MS_MAX) {
                return Err(error);
            }
            tokio::select! {
                biased;
                () = call.cancelled() => return Err(outcome::cancelled()),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(Duration::from_millis(SPAWN_RETRY_MS_MAX));
        }
    }

    /// Starts the gate, if the machine lets it.
    fn start(&self, request: &Request) -> Result<Group, NotStarted> {
        let script = &request.message;
        if script.len() >= ARGUMENT_BYTES_MAX {
            let limit = ARGUMENT_BYTES_MAX / 1024;
            let message = format!("the command is over {limit} KiB, the most a process takes");
            return Err(refusal(message).into());
        }
        if script.contains('\0') {
            return Err(refusal("the command holds a zero byte").into());
        }
        let environment = environment::of(&self.config.environment, request)?;
        let directory = place::directory(&self.workspace(request), request.cwd.as_deref())?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", GATE, "sluice", script])
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        Group::spawn(&mut command).map_err(|error| outcome::not_started(&error, &environment))
    }

    fn workspace(&self, request: &Request) -> PathBuf {
        match &self.config.workspace {
            Workspace::Shared(directory) => directory.clone(),
            Workspace::PerRun(directory) => directory.join(request.run.to_string()),
        }
    }
}

impl Adapter for ShellAdapter {
    fn provider(&self) -> &'static str {
        "shell"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, tools: false, structured_output: false, cancel: true }
    }

    /// Our own machine sends no bills.
    fn quote(&self, _step: &str) -> Quote {
        Quote::Free
    }

    fn health(&self) -> Later<'_, Health> {
        let health = if Path::new(SHELL).exists() { Health::Healthy } else { Health::Offline };
        Box::pin(std::future::ready(health))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move { Execution::Done(Box::new(self.run(request, call).await)) })
    }

    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        let process = process.clone();
        Box::pin(async move {
            // It waits for the group to be gone, so it may not hold up a worker.
            let stopped = tokio::task::spawn_blocking(move || kill_survivor(&process)).await;
            debug_assert!(stopped.is_ok(), "looking for a survivor does not panic");
        })
    }
}

/// Opens the gate once the group is on record, then moves what goes in and
/// comes out until the command has ended.
async fn attend(
    group: &mut Group,
    pipes: &mut Pipes,
    request: &Request,
    call: &dyn Call,
) -> Result<ExitStatus, Stop> {
    call.emit(Emission::Process(group.process())).await.map_err(|Closed| Stop::Closed)?;
    let (ended, end) = watch::channel(false);
    let stdin = request.stdin.as_deref().unwrap_or_default();
    let mut moved = pin!(async {
        tokio::try_join!(
            pipe::feed(pipes.stdin.take(), stdin, end.clone()),
            pipes.stdout.read(call, end.clone()),
            pipes.stderr.read(call, end.clone()),
        )
    });
    let mut moving = true;
    let status = loop {
        tokio::select! {
            biased;
            result = &mut moved, if moving => {
                result?;
                moving = false;
            }
            status = group.wait() => break status.map_err(Stop::Broken)?,
        }
    };
    ended.send_replace(true);
    if moving {
        moved.await?;
    }
    Ok(status)
}
