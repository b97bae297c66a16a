//! The handle and the in-memory mailbox of a loaded run.

use crate::watch::Tip;
use sluice_core::id::RunId;
use sluice_core::journal::event::StepAt;
use sluice_core::port::adapter::{Process, ToolEnded, ToolUse, ToolVerdict};
use sluice_core::run::command::{Command, Refusal};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};

/// A loaded run as the rest of the engine sees it.
#[derive(Debug, Clone)]
pub(crate) struct RunHandle {
    /// Sends mail to the run.
    pub(crate) mailbox: mpsc::Sender<Mail>,
    tip: Arc<Mutex<Option<Tip>>>,
}

impl RunHandle {
    pub(crate) fn new(mailbox: mpsc::Sender<Mail>) -> RunHandle {
        RunHandle { mailbox, tip: Arc::default() }
    }

    /// The tip after the run's last turn; `None` while it is being loaded.
    pub(crate) fn tip(&self) -> Option<Tip> {
        *self.lock()
    }

    pub(crate) fn set_tip(&self, tip: Tip) {
        *self.lock() = Some(tip);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tip>> {
        self.tip.lock().expect("the lock is not poisoned")
    }
}

/// Answered when the append that the command led to is durable.
pub(crate) type Reply = oneshot::Sender<Result<(), Refusal>>;

/// An item in the mailbox of a loaded run.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A command, and the caller that waits for it.
    Command(Command, Option<Reply>),
    /// Messages wait in the run's durable mailbox in the store.
    Messages,
    /// What the run waits for at a gate may be free now.
    CheckGates,
    /// A log line of a step.
    Log { at: StepAt, dispatch_no: u32, text: String },
    /// A call wants to use a tool; the reply says whether it may.
    Tool { at: StepAt, dispatch_no: u32, wanted: ToolUse, reply: oneshot::Sender<ToolVerdict> },
    /// A tool call has ended.
    ToolEnded { at: StepAt, dispatch_no: u32, ended: ToolEnded },
    /// A process was started; it waits behind its gate until that is journalled.
    Process { at: StepAt, dispatch_no: u32, process: Process, reply: Reply },
    /// The store assigned the run to this node under this epoch.
    Claimed(u64),
    /// The child run exists, and was cancelled if the parent no longer wants it.
    Child(RunId),
    /// The node shuts down: stop calls in flight and release the run.
    Release,
}
