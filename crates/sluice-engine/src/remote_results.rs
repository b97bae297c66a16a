//! Results, streamed parts and tool requests from remote workers (bridges and callbacks).

use crate::engine::Engine;
use crate::error::CommandError;
use sluice_core::id::RunId;
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::{Answer, Emission, ToolUse};
use sluice_core::port::store::{MailboxMessage, Posted, StoreError};
use sluice_core::run::command::{Command, Refusal};
use sluice_core::run::message;

impl Engine {
    /// Stores a result in the run's durable mailbox and notifies its owner. A repeated
    /// result is dropped.
    pub async fn callback(
        &self,
        run: RunId,
        step: &str,
        dispatch_no: u32,
        answer: &Answer,
    ) -> Result<Posted, StoreError> {
        let key = format!("callback:{dispatch_no}:{step}");
        let body = message::callback(step, dispatch_no, answer);
        let posted = self.inner().store.post(MailboxMessage { run, key, body }).await?;
        if posted == Posted::Done {
            self.inner().notify_messages(run);
        }
        Ok(posted)
    }

    /// Stores streamed parts in the run's durable mailbox. `first` is the number of the
    /// first part within the dispatch: a repeated batch is dropped.
    pub async fn parts(
        &self,
        run: RunId,
        step: &str,
        dispatch_no: u32,
        first: u64,
        parts: &[Emission],
    ) -> Result<Posted, StoreError> {
        let key = format!("parts:{dispatch_no}:{step}:{first}");
        let body = message::parts(step, dispatch_no, parts);
        let posted = self.inner().store.post(MailboxMessage { run, key, body }).await?;
        if posted == Posted::Done {
            self.inner().notify_messages(run);
        }
        Ok(posted)
    }

    /// Decides whether a dispatch may call a tool. `None` if the decision is still open:
    /// another node owns the run, or an approval is pending.
    pub async fn use_tool(
        &self,
        run: RunId,
        step: &str,
        dispatch_no: u32,
        wanted: ToolUse,
    ) -> Result<Option<Ruling>, CommandError> {
        let now = self.load(run).await?;
        let at = now.find(step).ok_or(Refusal::Late)?;
        if let Some(ruling) = now.ruling(at, dispatch_no, &wanted) {
            return Ok(Some(ruling.clone()));
        }
        let key = format!("tool:{dispatch_no}:{step}:{}", wanted.id);
        let command = Command::UseTool { at, dispatch_no, wanted: wanted.clone() };
        self.command(run, command, &key).await?;
        let now = self.load(run).await?;
        Ok(now.ruling(at, dispatch_no, &wanted).cloned())
    }

    /// Current time of the engine's clock.
    pub fn now_ms(&self) -> u64 {
        self.inner().clock.now_ms()
    }
}
