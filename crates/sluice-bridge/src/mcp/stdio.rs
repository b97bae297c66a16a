//! Connection to a tool server that is a local process: one JSON message per line.
//!
//! One task owns the process, writes the queued messages and routes answers to the callers.
//! When the connection is dropped, the task ends the process group in order: it closes the
//! standard input, then sends SIGTERM, then SIGKILL.
//!
//! INVARIANT: dropping the task kills the process group, and every waiting caller gets an
//! error.

use super::lines::Lines;
use super::message::{self, Message};
use super::trouble::Trouble;
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

type Answer = Result<Value, Trouble>;

/// Handle to the process and its task.
#[derive(Debug)]
pub(super) struct Link {
    outgoing: mpsc::Sender<String>,
    desk: Arc<Desk>,
}

/// Requests that wait for an answer, shared by callers and the task.
#[derive(Debug, Default)]
struct Desk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Why the connection has ended.
    ended: Option<String>,
    /// Whether the server announced a changed tool list.
    changed: bool,
    /// Last line of standard error.
    complaint: Option<String>,
}

impl Link {
    pub(super) fn start(name: &str, command: &Command) -> Result<Link, Trouble> {
        let (program, arguments) =
            command.argv.split_first().expect("a command names a program: the list is checked");
        let environment = environment::beside(std::env::vars_os(), &command.env);
        for (name, value) in environment.iter().filter(|(name, _)| {
            name.to_str().is_some_and(|name| command.env.iter().any(|one| one == name))
        }) {
            // A variable that is inherited by name is most likely a key: redact it.
            let source = format!("env:{}", name.to_string_lossy());
            let secret = Secret::new(value.to_string_lossy());
            let noted = known::process().note(&source, &secret);
            noted.map_err(|error| Trouble::Lost(format!("cannot be started: {error}")))?;
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
            .map_err(|error| Trouble::Lost(format!("cannot be started: {}", error.kind())))?;
        let (outgoing, queue) = mpsc::channel(MCP_QUEUE_MAX);
        let desk = Arc::new(Desk::default());
        let attending = Attending {
            name: name.to_owned(),
            group,
            desk: Arc::clone(&desk),
            replies: outgoing.downgrade(),
        };
        tokio::spawn(attending.attend(queue));
        Ok(Link { outgoing, desk })
    }

    /// Whether the connection is open.
    pub(super) fn is_alive(&self) -> bool {
        self.desk.state().ended.is_none()
    }

    /// Whether the tool list has changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.desk.state().changed)
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask(&self, method: &str, params: &Value, patience: Duration) -> Answer {
        let (id, answer) = self.desk.enter()?;
        // The protocol does not allow cancelling `initialize`.
        let outgoing = (method != "initialize").then_some(&self.outgoing);
        let _leave = Leave { desk: &self.desk, id, outgoing };
        let answered = async {
            // If the task has ended, `answer` carries the reason.
            let _ = self.outgoing.send(message::request(id, method, params)).await;
            answer.await.unwrap_or_else(|_| Err(Trouble::Lost("ended".to_owned())))
        };
        let late = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        timeout(patience, answered).await.unwrap_or(Err(Trouble::Late(late)))
    }

    /// Sends a notification.
    pub(super) async fn tell(&self, method: &str, params: &Value) {
        // If the task has ended, the next request gets the error.
        let _ = self.outgoing.send(message::notification(method, params)).await;
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Result<(u64, oneshot::Receiver<Answer>), Trouble> {
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(Trouble::Unsent(why.clone()));
        }
        if state.waiting.len() >= MCP_CALLS_MAX {
            return Err(Trouble::Busy(MCP_CALLS_MAX));
        }
        state.last += 1;
        let (id, (answer, wait)) = (state.last, oneshot::channel());
        state.waiting.insert(id, answer);
        Ok((id, wait))
    }

    /// Processes a message of the server; returns the reply to send, if any.
    fn take(&self, said: Message) -> Option<String> {
        let mut state = self.state();
        match said {
            Message::Answer { id, outcome } => {
                // An abandoned request has no waiting caller.
                if let Some(waiting) = state.waiting.remove(&id) {
                    let _ = waiting.send(outcome.map_err(Trouble::Refused));
                }
                None
            }
            Message::Asked { id, method } => Some(message::reply(&id, &method)),
            Message::Told { method } => {
                state.changed |= method == "notifications/tools/list_changed";
                None
            }
        }
    }

    fn end(&self, how: &str) {
        let mut state = self.state();
        let why = match &state.complaint {
            Some(line) => format!("{how}; last line on standard error: {line}"),
            None => how.to_owned(),
        };
        state.ended = Some(why.clone());
        for (_, waiting) in std::mem::take(&mut state.waiting) {
            let _ = waiting.send(Err(Trouble::Lost(why.clone())));
        }
    }
}

/// Cancels a request when its caller is dropped.
struct Leave<'a> {
    desk: &'a Desk,
    id: u64,
    outgoing: Option<&'a mpsc::Sender<String>>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let open = self.desk.state().waiting.remove(&self.id).is_some();
        if let Some(outgoing) = self.outgoing.filter(|_| open) {
            // Best effort: a server that does not read must not block the caller.
            let _ = outgoing.try_send(message::cancelled(self.id));
        }
    }
}

/// The task that owns the process.
struct Attending {
    name: String,
    group: Group,
    desk: Arc<Desk>,
    /// Weak, because the task ends when all senders are dropped.
    replies: mpsc::WeakSender<String>,
}

/// Why the task ends.
enum End {
    /// The server closed its end or broke the protocol.
    Silent(&'static str),
    /// The process has exited.
    Exited(Option<ExitStatus>),
    /// The connection was dropped.
    Unwanted,
}

impl Attending {
    async fn attend(mut self, queue: mpsc::Receiver<String>) {
        let (stdin, stdout, stderr) = self.group.raw_pipes();
        let (desk, replies) = (Arc::clone(&self.desk), self.replies.clone());
        let mut lines = Lines::new(stdout, MCP_MESSAGE_BYTES_MAX);
        let logged = log(self.name.clone(), Arc::clone(&desk), stderr);
        let logged = AbortOnDropHandle::new(tokio::spawn(logged));
        let end = tokio::select! {
            end = write(stdin, queue) => end,
            end = listen(&mut lines, &desk, &replies) => end,
            status = self.group.wait() => End::Exited(status.ok()),
        };
        let (otherwise, status) = match end {
            End::Exited(status) => ("ended", status),
            End::Silent(why) => (why, self.close().await),
            End::Unwanted => {
                self.close().await;
                ("was closed", None)
            }
        };
        // Messages and log lines from before the exit are still read.
        let rest = async { tokio::join!(listen(&mut lines, &desk, &replies), logged) };
        let _ = timeout(Duration::from_millis(SILENCE_MS), rest).await;
        let how = match status {
            Some(status) => format!("ended ({status})"),
            None => otherwise.to_owned(),
        };
        self.desk.end(&how);
        tracing::debug!(server = self.name, "the tool server {how}");
    }

    /// Waits for a process whose standard input is closed, then sends SIGTERM, then
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
async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<String>) -> End {
    while let Some(mut text) = queue.recv().await {
        text.push('\n');
        if stdin.write_all(text.as_bytes()).await.is_err() {
            return End::Silent("closed its standard input");
        }
    }
    End::Unwanted
}

/// Routes the server's messages to the waiting callers.
async fn listen(
    lines: &mut Lines<ChildStdout>,
    desk: &Desk,
    replies: &mpsc::WeakSender<String>,
) -> End {
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return End::Silent("closed its standard output"),
            Err(_) => return End::Silent("sent a line that is too long or cannot be read"),
        };
        for said in message::read(&line) {
            let Some(reply) = desk.take(said) else { continue };
            // A server that sends requests faster than it reads gets no replies.
            if let Some(replies) = replies.upgrade() {
                let _ = replies.try_send(reply);
            }
        }
    }
}

/// Logs standard error up to a limit, then only drains it.
async fn log(name: String, desk: Arc<Desk>, stderr: ChildStderr) {
    let mut lines = Lines::new(stderr, LOG_LINE_BYTES_MAX).cutting();
    let mut left = MCP_STDERR_BYTES_MAX;
    while let Ok(Some(line)) = lines.next().await {
        let text = String::from_utf8_lossy(&line);
        let text = known::process().scrub().text(&text).into_owned();
        if !text.trim().is_empty() {
            desk.state().complaint = Some(message::told(text.trim()));
        }
        if left > 0 {
            left = left.saturating_sub(line.len());
            tracing::debug!(server = name, "tool server: {}", message::told(&text));
        }
    }
}
