//! Connection to a tool server that is a local process: one JSON message per line.
//!
//! One task owns the process, writes the queued messages and routes answers to the callers.
//! When the connection is dropped, the task ends the process group in order: it closes the
//! standard input, then sends SIGTERM, then SIGKILL.
//!
//! INVARIANT: dropping the task kills the process group, and every waiting caller gets an
//! error.

use super::bounded_lines::BoundedLines;
use super::error::McpError;
use super::message::{self, Message};
use crate::limits::{
    GRACE_MS, LOG_LINE_BYTES_MAX, MCP_CALLS_MAX, MCP_MESSAGE_BYTES_MAX, MCP_QUEUE_MAX,
    MCP_STDERR_BYTES_MAX, SILENCE_MS,
};
use crate::secret::Secret;
use crate::secret::known;
use crate::shell::environment;
use crate::shell::group::Group;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Command line of a tool server, as the operator configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Names of environment variables that the process inherits in addition to the default
    /// ones.
    pub env: Vec<String>,
}

type RpcAnswer = Result<Value, McpError>;

/// Handle to the process and its task.
#[derive(Debug)]
pub(super) struct ProcessConnection {
    outgoing: mpsc::Sender<String>,
    pending: Arc<PendingRequests>,
}

/// Requests that wait for an answer, shared by callers and the task.
#[derive(Debug, Default)]
struct PendingRequests {
    state: Mutex<PendingState>,
}

#[derive(Debug, Default)]
struct PendingState {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<RpcAnswer>>,
    /// Why the connection has ended.
    ended: Option<String>,
    /// Whether the server announced a changed tool list.
    changed: bool,
    /// Last line of standard error.
    last_error_line: Option<String>,
}

impl ProcessConnection {
    pub(super) fn start(name: &str, command: &Command) -> Result<ProcessConnection, McpError> {
        let (program, arguments) =
            command.argv.split_first().expect("a command names a program: the list is checked");
        let environment = environment::process_environment(std::env::vars_os(), &command.env);
        for (name, value) in environment.iter().filter(|(name, _)| {
            name.to_str().is_some_and(|name| command.env.iter().any(|one| one == name))
        }) {
            // A variable that is inherited by name is most likely a key: redact it.
            let source = format!("env:{}", name.to_string_lossy());
            let secret = Secret::new(value.to_string_lossy());
            let noted = known::process().note(&source, &secret);
            noted.map_err(|error| McpError::Lost(format!("cannot be started: {error}")))?;
        }
        let mut process = tokio::process::Command::new(program);
        process
            .args(arguments)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let group = Group::spawn(&mut process)
            .map_err(|error| McpError::Lost(format!("cannot be started: {}", error.kind())))?;
        let (outgoing, queue) = mpsc::channel(MCP_QUEUE_MAX);
        let pending = Arc::new(PendingRequests::default());
        let task = ProcessTask {
            name: name.to_owned(),
            group,
            pending: Arc::clone(&pending),
            replies: outgoing.downgrade(),
        };
        tokio::spawn(task.run(queue));
        Ok(ProcessConnection { outgoing, pending })
    }

    /// Whether the connection is open.
    pub(super) fn is_alive(&self) -> bool {
        self.pending.state().ended.is_none()
    }

    /// Whether the tool list has changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.pending.state().changed)
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> RpcAnswer {
        let (id, answer) = self.pending.register()?;
        // The protocol does not allow cancelling `initialize`.
        let outgoing = (method != "initialize").then_some(&self.outgoing);
        let _leave = StdioCancelGuard { pending: &self.pending, id, outgoing };
        let answered = async {
            // If the task has ended, `answer` carries the reason.
            let _ = self.outgoing.send(message::request(id, method, params)).await;
            answer.await.unwrap_or_else(|_| Err(McpError::Lost("ended".to_owned())))
        };
        let late = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        timeout(patience, answered).await.unwrap_or(Err(McpError::Late(late)))
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: &Value) {
        // If the task has ended, the next request gets the error.
        let _ = self.outgoing.send(message::notification(method, params)).await;
    }
}

impl PendingRequests {
    fn state(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> Result<(u64, oneshot::Receiver<RpcAnswer>), McpError> {
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(McpError::Unsent(why.clone()));
        }
        if state.waiting.len() >= MCP_CALLS_MAX {
            return Err(McpError::Busy(MCP_CALLS_MAX));
        }
        state.last += 1;
        let (id, (answer, wait)) = (state.last, oneshot::channel());
        state.waiting.insert(id, answer);
        Ok((id, wait))
    }

    /// Processes a message of the server; returns the reply to send, if any.
    fn process(&self, message: Message) -> Option<String> {
        let mut state = self.state();
        match message {
            Message::Answer { id, outcome } => {
                // An abandoned request has no waiting caller.
                if let Some(waiting) = state.waiting.remove(&id) {
                    let _ = waiting.send(outcome.map_err(McpError::Refused));
                }
                None
            }
            Message::Request { id, method } => Some(message::reply(&id, &method)),
            Message::Notification { method } => {
                state.changed |= method == "notifications/tools/list_changed";
                None
            }
        }
    }

    fn fail_all(&self, how: &str) {
        let mut state = self.state();
        let why = match &state.last_error_line {
            Some(line) => format!("{how}; last line on standard error: {line}"),
            None => how.to_owned(),
        };
        state.ended = Some(why.clone());
        for (_, waiting) in std::mem::take(&mut state.waiting) {
            let _ = waiting.send(Err(McpError::Lost(why.clone())));
        }
    }
}

/// Cancels a request when its caller is dropped.
struct StdioCancelGuard<'a> {
    pending: &'a PendingRequests,
    id: u64,
    outgoing: Option<&'a mpsc::Sender<String>>,
}

impl Drop for StdioCancelGuard<'_> {
    fn drop(&mut self) {
        let open = self.pending.state().waiting.remove(&self.id).is_some();
        if let Some(outgoing) = self.outgoing.filter(|_| open) {
            // Best effort: a server that does not read must not block the caller.
            let _ = outgoing.try_send(message::cancelled(self.id));
        }
    }
}

/// The task that owns the process.
struct ProcessTask {
    name: String,
    group: Group,
    pending: Arc<PendingRequests>,
    /// Weak, because the task ends when all senders are dropped.
    replies: mpsc::WeakSender<String>,
}

/// Why the task ends.
enum TaskEnd {
    /// The server closed its end or broke the protocol.
    Closed(&'static str),
    /// The process has exited.
    Exited(Option<ExitStatus>),
    /// The connection was dropped.
    Dropped,
}

impl ProcessTask {
    async fn run(mut self, queue: mpsc::Receiver<String>) {
        let (stdin, stdout, stderr) = self.group.raw_pipes();
        let (pending, replies) = (Arc::clone(&self.pending), self.replies.clone());
        let mut lines = BoundedLines::new(stdout, MCP_MESSAGE_BYTES_MAX);
        let logged = log_stderr(self.name.clone(), Arc::clone(&pending), stderr);
        let logged = AbortOnDropHandle::new(tokio::spawn(logged));
        let end = tokio::select! {
            end = write_messages(stdin, queue) => end,
            end = read_messages(&mut lines, &pending, &replies) => end,
            status = self.group.wait() => TaskEnd::Exited(status.ok()),
        };
        let (otherwise, status) = match end {
            TaskEnd::Exited(status) => ("ended", status),
            TaskEnd::Closed(why) => (why, self.close().await),
            TaskEnd::Dropped => {
                self.close().await;
                ("was closed", None)
            }
        };
        // Messages and log lines from before the exit are still read.
        let rest = async { tokio::join!(read_messages(&mut lines, &pending, &replies), logged) };
        let _ = timeout(Duration::from_millis(SILENCE_MS), rest).await;
        let how = match status {
            Some(status) => format!("ended ({status})"),
            None => otherwise.to_owned(),
        };
        self.pending.fail_all(&how);
        tracing::debug!(server = self.name, "the tool server {how}");
    }

    /// Waits for a process with a closed standard input, then sends SIGTERM, then
    /// SIGKILL. Returns the exit status if it exited by itself.
    async fn close(&mut self) -> Option<ExitStatus> {
        let grace = Duration::from_millis(GRACE_MS);
        if let Ok(status) = timeout(grace, self.group.wait()).await {
            return status.ok();
        }
        self.group.terminate(grace).await;
        None
    }
}

/// Writes queued messages until the connection is dropped.
async fn write_messages(mut stdin: ChildStdin, mut queue: mpsc::Receiver<String>) -> TaskEnd {
    while let Some(mut text) = queue.recv().await {
        text.push('\n');
        if stdin.write_all(text.as_bytes()).await.is_err() {
            return TaskEnd::Closed("closed its standard input");
        }
    }
    TaskEnd::Dropped
}

/// Routes the server's messages to the waiting callers.
async fn read_messages(
    lines: &mut BoundedLines<ChildStdout>,
    pending: &PendingRequests,
    replies: &mpsc::WeakSender<String>,
) -> TaskEnd {
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return TaskEnd::Closed("closed its standard output"),
            Err(_) => return TaskEnd::Closed("sent a line that is too long or cannot be read"),
        };
        for message in message::read(&line) {
            let Some(reply) = pending.process(message) else { continue };
            // A server that sends requests faster than it reads gets no replies.
            if let Some(replies) = replies.upgrade() {
                let _ = replies.try_send(reply);
            }
        }
    }
}

/// Logs standard error up to a limit, then only drains it.
async fn log_stderr(name: String, pending: Arc<PendingRequests>, stderr: ChildStderr) {
    let mut lines = BoundedLines::new(stderr, LOG_LINE_BYTES_MAX).cutting();
    let mut left = MCP_STDERR_BYTES_MAX;
    while let Ok(Some(line)) = lines.next().await {
        let text = String::from_utf8_lossy(&line);
        let text = known::process().scrub().text(&text).into_owned();
        if !text.trim().is_empty() {
            pending.state().last_error_line = Some(message::brief(text.trim()));
        }
        if left > 0 {
            left = left.saturating_sub(line.len());
            tracing::debug!(server = name, "tool server: {}", message::brief(&text));
        }
    }
}
