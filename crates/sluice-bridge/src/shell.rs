//! Adapter that runs local commands: `/bin/sh -c`, each in its own process group.
//!
//! A command starts behind a barrier: a shell that waits for a word on its standard input
//! before it executes the command. The word is sent only when the engine has journalled the
//! process group, so that after a crash every running command is on record: if the engine dies
//! earlier, the standard input closes and the shell exits without running anything.
//!
//! A command gets its arguments as environment variables, an allow-listed part of Sluice's own
//! environment, and a directory inside the workspace. When it ends, remaining processes of its
//! group are killed. A process that leaves the group (`setsid`) cannot be killed.
//!
//! INVARIANT: dropping the future kills the process group.

pub(crate) mod environment;
pub(crate) mod group;
mod outcome;
mod pipe;
mod survivor;
mod working_directory;

#[cfg(test)]
mod tests;

use crate::limits::{
    ARGUMENT_BYTES_MAX, GRACE_MS, SPAWN_RETRY_MS, SPAWN_RETRY_MS_MAX, SPAWN_WAIT_MS_MAX,
    STDERR_BYTES_MAX, STDOUT_BYTES_MAX,
};
use group::Group;
use outcome::{NotStarted, StopCause, refusal};
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
use std::sync::Arc;
use std::time::{Duration, Instant};
#[cfg(test)]
use survivor::Survivor;
use survivor::kill_survivor;
use tokio::process::Command;
use tokio::sync::{Semaphore, watch};

const SHELL: &str = "/bin/sh";

/// Waits for the word, then executes the command. A shell reads a pipe byte by byte, so what
/// follows the word is left for the command.
const BARRIER: &str = r#"IFS= read -r _sluice_word || exit 125
[ "$_sluice_word" = go ] || exit 125
exec /bin/sh -c -- "$1""#;

/// Configuration of the shell adapter.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directories of the commands.
    pub workspace: Workspace,
    /// Sluice's own environment, of which commands see an allow-listed part.
    pub environment: Vec<(OsString, OsString)>,
    /// Limit of standard output, in bytes.
    pub stdout_bytes_max: usize,
    /// Limit of standard error, in bytes.
    pub stderr_bytes_max: usize,
    /// Time that a cancelled command has to end by itself.
    pub grace_ms: u64,
    /// Commands that run at once; all adapters of a process share it. Further commands wait.
    pub running: Arc<Semaphore>,
}

/// Where commands run. Missing directories are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// All runs share this directory.
    Shared(PathBuf),
    /// Each run has a subdirectory, named by the run's id.
    PerRun(PathBuf),
}

impl Config {
    /// The default limits, and the environment of this process.
    pub fn new(workspace: Workspace) -> Config {
        Config {
            workspace,
            environment: std::env::vars_os().collect(),
            stdout_bytes_max: STDOUT_BYTES_MAX,
            stderr_bytes_max: STDERR_BYTES_MAX,
            grace_ms: GRACE_MS,
            running: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }
}

/// Runs commands.
#[derive(Debug, Clone)]
pub struct ShellAdapter {
    config: Config,
}

impl ShellAdapter {
    /// An adapter with this configuration.
    pub fn new(config: Config) -> ShellAdapter {
        ShellAdapter { config }
    }

    async fn run(&self, request: &Request, call: &dyn Call) -> Answer {
        let _running = tokio::select! {
            biased;
            () = call.cancelled() => {
                return Answer { error: Some(outcome::cancelled()), ..Answer::default() };
            }
            permit = self.config.running.acquire() => permit,
        };
        let mut group = match self.start_when_possible(request, call).await {
            Ok(group) => group,
            Err(error) => return Answer { error: Some(error), ..Answer::default() },
        };
        let mut pipes = group.pipes(self.config.stdout_bytes_max, self.config.stderr_bytes_max);
        let ended = tokio::select! {
            biased;
            () = call.cancelled() => Err(StopCause::Cancelled),
            ended = supervise(&mut group, &mut pipes, request, call) => ended,
        };
        match ended {
            Ok(status) => outcome::ended(status, pipes.stdout.into_text(), &pipes.stderr.tail()),
            Err(stop) => {
                // The pipes stay open: output during shutdown must not end the
                // command with SIGPIPE.
                match &stop {
                    StopCause::Cancelled => {
                        group.terminate(Duration::from_millis(self.config.grace_ms)).await;
                    }
                    StopCause::Closed | StopCause::TooLong { .. } | StopCause::Broken(_) => {
                        group.kill().await;
                    }
                }
                outcome::stopped(&stop, pipes.stdout.into_text())
            }
        }
    }

    /// Starts the command behind its barrier. If the machine has no file handle, process or
    /// memory left, waits until other steps release theirs.
    async fn start_when_possible(
        &self,
        request: &Request,
        call: &dyn Call,
    ) -> Result<Group, CallError> {
        let waiting = Instant::now();
        let mut pause = Duration::from_millis(SPAWN_RETRY_MS);
        loop {
            let error = match self.try_start(request) {
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

    /// Starts the command behind its barrier, once.
    fn try_start(&self, request: &Request) -> Result<Group, NotStarted> {
        let script = &request.message;
        if script.len() >= ARGUMENT_BYTES_MAX {
            let limit = ARGUMENT_BYTES_MAX / 1024;
            let message = format!("the command exceeds {limit} KiB, the limit of one argument");
            return Err(refusal(message).into());
        }
        if script.contains('\0') {
            return Err(refusal("the command contains a zero byte").into());
        }
        let environment = environment::command_environment(&self.config.environment, request)?;
        let directory =
            working_directory::resolve(&self.workspace(request), request.cwd.as_deref())?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", BARRIER, "sluice", script])
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

    /// Local commands cost nothing.
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
            // Blocking: it waits until the group has disappeared.
            let stopped = tokio::task::spawn_blocking(move || kill_survivor(&process)).await;
            debug_assert!(stopped.is_ok(), "kill_survivor does not panic");
        })
    }
}

/// Starts the command once its group is journalled, then moves input and output until it has
/// ended.
async fn supervise(
    group: &mut Group,
    pipes: &mut Pipes,
    request: &Request,
    call: &dyn Call,
) -> Result<ExitStatus, StopCause> {
    call.emit(Emission::Process(group.process())).await.map_err(|Closed| StopCause::Closed)?;
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
            status = group.wait() => break status.map_err(StopCause::Broken)?,
        }
    };
    ended.send_replace(true);
    if moving {
        moved.await?;
    }
    Ok(status)
}
