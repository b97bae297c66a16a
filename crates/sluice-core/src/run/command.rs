//! The commands that a run takes, and why it refuses one.

use crate::choices::choices;
use crate::id::{ApprovalId, Entropy, RunId};
use crate::journal::event::{ChildPace, DeltaPart, Provenance, StepAt};
use crate::origin::PassedLabels;
use crate::port::adapter::{Answer, Emission, Process, ToolEnded, ToolUse};
use crate::port::authority::Authority;
use crate::port::moderator::Verdict;
use crate::status::RunStatus;
use crate::violation::Violation;
use serde_json::{Map, Value};
use sluice_govern::decision::Constraints;
use std::collections::BTreeSet;

/// A command for a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A node has claimed the run: decides what becomes of dispatches that were in flight at
    /// the previous owner.
    TakeOver,
    /// A dispatch has a result.
    Complete {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1. A result of any other than the one in flight is late.
        dispatch_no: u32,
        /// The result.
        answer: Box<Answer>,
    },
    /// A remote worker accepted a dispatch: its result arrives by callback.
    Accepted {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
    },
    /// A part of an answer has arrived.
    Stream {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// Text or media, in the order of arrival.
        part: DeltaPart,
    },
    /// An adapter reports a line for the step's log.
    Log {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// The line.
        text: String,
    },
    /// A process was started for a step.
    Process {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// What a later owner needs to end it.
        process: Process,
    },
    /// A step requests a tool call. The engine reads the decision from the run
    /// ([`Run::ruling`](super::state::Run::ruling)).
    UseTool {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// The call.
        wanted: ToolUse,
    },
    /// An allowed tool call has ended.
    ToolEnded {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// How it ended.
        ended: ToolEnded,
    },
    /// A bridge delivers parts of an answer while it executes the step, in order.
    Parts {
        /// The step or instance that was dispatched.
        at: StepAt,
        /// Which dispatch of the step, counted from 1.
        dispatch_no: u32,
        /// Text, media, log lines and tool calls, in the order in which they were made.
        parts: Vec<Emission>,
    },
    /// The moderator has checked the inputs of a step.
    Moderated {
        /// The step whose inputs were checked.
        at: StepAt,
        /// SHA-256 of the checked text. A verdict on any other text than the one that the
        /// step waits for is late.
        digest: String,
        /// Whether the moderator flagged the text.
        verdict: Verdict,
    },
    /// A result that the moderator has checked.
    Checked {
        /// The result of a dispatch or of a child run.
        command: Box<Command>,
        /// The moderator's verdict on it.
        verdict: Verdict,
    },
    /// A child run ended, or could not be started.
    ChildEnded {
        /// The run that a step of this run started.
        child: RunId,
        /// How it ended.
        status: RunStatus,
        /// Its outputs, if it completed.
        outputs: Option<Value>,
        /// Code and message of its failure.
        error: Option<(String, String)>,
        /// Where the parts of its result come from.
        origins: Vec<Provenance>,
        /// Labels of its result; `None` if it did not complete, or an older version wrote
        /// the message.
        labels: Option<PassedLabels>,
    },
    /// A child run has begun to wait only for people, or continues.
    ChildPaced {
        /// The run that a step of this run started.
        child: RunId,
        /// Whether it waits or continues.
        pace: ChildPace,
        /// When, by the journal of the child.
        at_ms: u64,
    },
    /// Cancel the run.
    Cancel {
        /// The principal.
        by: String,
        /// Why, for the journal and the people who read it.
        reason: String,
    },
    /// Pause the run: start no step until it is resumed.
    Pause {
        /// The principal.
        by: String,
    },
    /// Resume a paused run.
    Unpause {
        /// The principal.
        by: String,
    },
    /// Decide an approval.
    Resolve(Box<Resolve>),
    /// Rewind the run to a checkpoint.
    Rewind {
        /// The principal.
        by: String,
        /// The steps whose results stay, as they were at the checkpoint.
        keep: BTreeSet<u32>,
    },
    /// Retry a failed run: its failed steps and all steps that depend on them.
    Retry {
        /// The principal.
        by: String,
    },
    /// Assign a step that no member of the team fits.
    Assign {
        /// The principal.
        by: String,
        /// The step, with all its instances.
        step: u32,
        /// The id of a member of the team, or the name of an agent.
        whom: String,
    },
}

/// A person's decision on an approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolve {
    /// The open approval that is decided.
    pub approval: ApprovalId,
    /// Approve or reject.
    pub decision: Decision,
    /// The principal that decides.
    pub by: String,
    /// Comment of that principal.
    pub comment: Option<String>,
    /// Values that the step takes as its outputs.
    pub values: Map<String, Value>,
    /// Roles of that principal.
    pub roles: Vec<String>,
    /// Constraints that the approver adds.
    pub constraints: Option<Constraints>,
}

choices! {
    /// The decisions that a person can take on an approval.
    pub enum Decision, "a decision on an approval" {
        /// Approve the action.
        Approve = "approve",
        /// Reject the action; needs a comment.
        Reject = "reject",
        /// Escalation: retry the step.
        Retry = "retry",
        /// Escalation: skip the step.
        Skip = "skip",
        /// Escalation: abort the step.
        Abort = "abort",
    }
}

/// Why a run refuses a command. A refused command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A run with this final status takes no commands.
    #[error("the run is {0} already")]
    Ended(RunStatus),
    /// The run is not paused by an operator.
    #[error("the run is not paused by an operator")]
    NotPaused,
    /// The run has no approval with this id.
    #[error("this run has no approval {0}")]
    NoApproval(ApprovalId),
    /// The approval is closed.
    #[error("the approval is {0} already")]
    Resolved(&'static str),
    /// The approval does not take this decision.
    #[error("this approval takes {0}")]
    WrongDecision(&'static str),
    /// The rejection has no comment.
    #[error("a rejection needs a comment that says why")]
    CommentMissing,
    /// The values do not fit the outputs that the step declares.
    #[error("the values do not fit: {}", list(.0))]
    BadValues(Vec<Violation>),
    /// Only a failed run can be retried.
    #[error("only a run that failed can be retried; this one is {0}")]
    NotFailed(RunStatus),
    /// The result does not belong to the dispatch in flight: it is late, or a duplicate.
    #[error("the result is of a dispatch that is no longer in flight")]
    Late,
    /// The principal is not an approver of this approval.
    #[error("{by} may not decide this approval: its approvers are {approvers}")]
    NotApprover {
        /// The principal that tried to decide.
        by: String,
        /// The people and groups that may decide it.
        approvers: String,
    },
    /// The principal is an initiator of the run, and the approval excludes initiators.
    #[error("{0} is an initiator of the run: a different person must decide")]
    SelfApproval(String),
    /// The principal has voted already.
    #[error("{0} has already voted on this approval; it needs votes of other approvers")]
    AnsweredAlready(String),
    /// The constraints allow more than the approval request does.
    #[error("an approver can only tighten constraints: {0}")]
    Widens(String),
    /// The step does not wait for an assignment.
    #[error("`{0}` does not wait for an assignment")]
    NotBlocked(String),
    /// No member of the team and no agent has this name.
    #[error("`{0}` is neither a member of the team nor an agent")]
    NoMember(String),
    /// No step was settled after the checkpoint.
    #[error("nothing happened after this checkpoint")]
    NothingToRewind,
}

macro_rules! refusal_codes {
    ($($refusal:pat => $code:literal,)*) => {
        impl Refusal {
            /// All codes. Each has a page `docs/errors/CODE.md`; a test walks them.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// The code of the refusal.
            pub const fn code(&self) -> &'static str {
                match self { $($refusal => $code,)* }
            }
        }
    };
}

// One list for both, so that a refusal without a listed code does not compile.
refusal_codes! {
    Refusal::Ended(_) => "run_ended",
    Refusal::NotPaused => "run_not_paused",
    Refusal::NoApproval(_) => "approval_unknown",
    Refusal::Resolved(_) => "approval_resolved",
    Refusal::WrongDecision(_) => "wrong_decision",
    Refusal::CommentMissing => "comment_missing",
    Refusal::BadValues(_) => "invalid_values",
    Refusal::NotFailed(_) => "run_not_failed",
    Refusal::Late => "completion_late",
    Refusal::NotApprover { .. } => "not_approver",
    Refusal::SelfApproval(_) => "self_approval",
    Refusal::AnsweredAlready(_) => "answered_already",
    Refusal::Widens(_) => "constraints_widen",
    Refusal::NothingToRewind => "nothing_to_rewind",
    Refusal::NotBlocked(_) => "step_not_blocked",
    Refusal::NoMember(_) => "member_unknown",
}

fn list(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Everything from outside the run that a decision depends on.
pub struct Given<'a> {
    /// The current time.
    pub now_ms: u64,
    /// Random bits for ids and delays.
    pub entropy: &'a mut (dyn Entropy + 'static),
    /// Whether steps may be dispatched.
    pub dispatching: Dispatching,
    /// Registry rows, policies and counters.
    pub authority: &'a dyn Authority,
}

/// Whether steps may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatching {
    /// Steps may be dispatched.
    Allowed,
    /// Steps wait for a process that executes steps; this process only records events.
    Deferred,
}
