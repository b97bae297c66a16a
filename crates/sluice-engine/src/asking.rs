//! Calls that wait to hear whether a tool may be called.

use sluice_core::journal::event::{Ruling, StepAt};
use sluice_core::port::adapter::{ToolUse, ToolVerdict};
use sluice_core::run::state::Run;
use tokio::sync::oneshot;

/// A call that waits to hear whether a tool may be called.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) at: StepAt,
    pub(crate) dispatch_no: u32,
    pub(crate) wanted: ToolUse,
    pub(crate) reply: oneshot::Sender<ToolVerdict>,
}

impl Asking {
    /// Answers if it was decided; whoever is left waits on. Of a dispatch that is
    /// over nothing is decided any more: whoever asked finds nobody.
    pub(crate) fn settle(self, run: &Run) -> Option<Asking> {
        if self.reply.is_closed() {
            return None;
        }
        let verdict = match run.ruling(self.at, self.dispatch_no, &self.wanted)? {
            Ruling::Held(_) => return Some(self),
            Ruling::Allowed(_) => ToolVerdict::Allowed,
            Ruling::Denied(why) => ToolVerdict::Denied(why.clone()),
        };
        // Whoever asked may have given up meanwhile.
        let _ = self.reply.send(verdict);
        None
    }
}
