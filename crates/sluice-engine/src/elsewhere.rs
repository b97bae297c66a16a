//! What comes from those who do work elsewhere: results, and tools they ask for.

use crate::engine::Engine;
use crate::error::CommandError;
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::{Answer, Emission, ToolUse};
use sluice_core::port::store::{Letter, Posted, StoreError};
use sluice_core::run::command::{Command, Refusal};
use sluice_core::run::id::RunId;
use sluice_core::run::letter;

impl Engine {
    /// Puts a result into its run's inbox, durably, and tells whoever looks after
    /// the run. One that came before is dropped.
    pub async fn callback(
        &self,
        run: RunId,
        step: &str,
        dispatch_no: u32,
        answer: &Answer,
    ) -> Result<Posted, StoreError> {
        let key = format!("callback:{dispatch_no}:{step}");
        let body = letter::callback(step, dispatch_no, answer);
        let posted = self.inner().store.post(Letter { run, key, body }).await?;
        if posted == Posted::Done {
            self.inner().deliver(run);
        }
        Ok(posted)
    }

    /// Puts parts of an answer into its run's inbox, durably. `first` is the number of
    /// the first of them within the dispatch: the same batch sent again is dropped.
    pub async fn parts(
        &self,
        run: RunId,
        step: &str,
        dispatch_no: u32,
        first: u64,
        parts: &[Emission],
    ) -> Result<Posted, StoreError> {
        let key = format!("parts:{dispatch_no}:{step}:{first}");
        let body = letter::parts(step, dispatch_no, parts);
        let posted = self.inner().store.post(Letter { run, key, body }).await?;
        if posted == Posted::Done {
            self.inner().deliver(run);
        }
        Ok(posted)
    }

    /// Asks whether a dispatch may call a tool. None if that is not known yet:
    /// another process looks after the run, or somebody must be asked first.
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

    /// The time, as the engine has it.
    pub fn now_ms(&self) -> u64 {
        self.inner().clock.now_ms()
    }
}
