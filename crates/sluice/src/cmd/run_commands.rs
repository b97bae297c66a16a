//! Commands to a run, sent through the API. Where another process owns the run, its
//! effect is awaited.

use crate::client::Client;
use crate::out::Out;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// How long the owner of a run may take to apply a command.
const PATIENCE_MS: u64 = 5000;
const POLL_MS: u64 = 50;

/// A command, and how its effect is recognised.
pub(super) struct RunCommand<'a> {
    pub(super) path: &'a [&'a str],
    pub(super) body: Value,
    /// The route that shows the effect.
    pub(super) shown_by: &'a [&'a str],
    /// Whether the answer of that route shows the effect.
    pub(super) is_applied: &'a dyn Fn(&Value) -> bool,
}

/// The process that applied a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandDelivery {
    /// This one: no process works on the run.
    Local,
    /// The owner of the run, or the server.
    Remote,
    /// The owner of the run has not applied it yet; it stays in the run's mailbox.
    Pending,
}

/// A command that was accepted.
pub(super) struct SentCommand {
    pub(super) delivery: CommandDelivery,
    /// The status of the run.
    pub(super) status: String,
}

impl SentCommand {
    /// `is`, or `will be` while the command is pending.
    pub(super) fn is(&self) -> &'static str {
        if self.delivery == CommandDelivery::Pending { "will be" } else { "is" }
    }
}

#[derive(Deserialize)]
struct CommandAnswer {
    done: bool,
    status: String,
}

impl RunCommand<'_> {
    pub(super) async fn send(&self, client: &Client, out: &mut Out) -> anyhow::Result<SentCommand> {
        let CommandAnswer { done, mut status } =
            client.post(self.path, &self.body).await?.read()?;
        if done {
            let delivery = if client.is_in_process() {
                CommandDelivery::Local
            } else {
                CommandDelivery::Remote
            };
            return Ok(SentCommand { delivery, status });
        }
        out.note("sent to the process that runs it")?;
        for _ in 0..PATIENCE_MS / POLL_MS {
            tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
            let now = client.get(self.shown_by, &[]).await?.data;
            if let Some(word) = now["status"].as_str() {
                word.clone_into(&mut status);
            }
            if (self.is_applied)(&now) {
                return Ok(SentCommand { delivery: CommandDelivery::Remote, status });
            }
        }
        out.note("it has not answered yet; the command stays in the run's mailbox")?;
        Ok(SentCommand { delivery: CommandDelivery::Pending, status })
    }
}

/// A step in the state of a run; null if the run has no such step.
pub(super) fn step<'v>(state: &'v Value, id: &str) -> &'v Value {
    let steps = state["node_results"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().find(|step| step["node_id"] == id).unwrap_or(&Value::Null)
}
