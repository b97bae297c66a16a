//! Tool calls of running steps that wait for a decision.

use sluice_core::journal::event::{Ruling, StepAt};
use sluice_core::port::adapter::{ToolUse, ToolVerdict};
use sluice_core::run::state::Run;
use tokio::sync::oneshot;

/// A call that waits for permission to use a tool.
#[derive(Debug)]
pub(crate) struct PendingToolCall {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) wanted: ToolUse,
    pub(crate) reply: oneshot::Sender<ToolVerdict>,
}

impl PendingToolCall {
    /// Replies if the call was decided; returns it if it still waits. The reply channel of
    /// an ended dispatch is dropped, which ends the wait.
    pub(crate) fn resolve(self, run: &Run) -> Option<PendingToolCall> {
        if self.reply.is_closed() {
            return None;
        }
        let verdict = match run.ruling(self.at, self.dispatch_no, &self.wanted)? {
            Ruling::Held(_) => return Some(self),
            Ruling::Allowed(_) => ToolVerdict::Allowed,
            Ruling::Denied(why) => ToolVerdict::Denied(why.clone()),
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(verdict);
        None
    }
}
