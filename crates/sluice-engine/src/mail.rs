//! What reaches a resident run.

use sluice_core::journal::event::StepAt;
use sluice_core::port::adapter::{Process, ToolEnded, ToolUse, ToolVerdict};
use sluice_core::run::command::{Command, Refusal};
use sluice_core::run::id::RunId;
use tokio::sync::oneshot;

/// Answers when the append that a command led to is durable.
pub(crate) type Reply = oneshot::Sender<Result<(), Refusal>>;

/// Something for a resident run.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A command, and who waits for it.
    Command(Command, Option<Reply>),
    /// Letters lie in the run's inbox.
    Letters,
    /// What the run waits for at a gate may be free.
    Look,
    /// A line for the log.
    Log { at: StepAt, dispatch_no: u32, text: String },
    /// A tool that a call wants to use, and who waits to hear whether it may.
    Tool { at: StepAt, dispatch_no: u32, wanted: ToolUse, reply: oneshot::Sender<ToolVerdict> },
    /// A tool has answered.
    ToolEnded { at: StepAt, dispatch_no: u32, ended: ToolEnded },
    /// A process that waits until it is journalled.
    Process { at: StepAt, dispatch_no: u32, process: Process, reply: Reply },
    /// The run was given to this process under this epoch.
    Claimed(u64),
    /// A child exists, and has heard what it must.
    Child(RunId),
    /// What is in flight is stopped, what waits is left to others.
    Leave,
}
