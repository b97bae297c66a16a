//! What can be asked of a run.

use super::id::{ApprovalId, RunId};
use super::status::RunStatus;
use crate::journal::event::{ChildPace, DeltaPart, Provenance, StepAt};
use crate::port::Entropy;
use crate::port::adapter::{Answer, Emission, Process, ToolEnded, ToolUse};
use crate::port::authority::Authority;
use crate::port::moderator::Verdict;
use crate::violation::Violation;
use serde_json::{Map, Value};
use sluice_govern::decision::Constraints;
use std::collections::BTreeSet;

/// Something asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Its owner died, or it lay unowned: what was in flight is looked after.
    TakeOver,
    /// A dispatch has a result.
    Complete {
        /// Whose.
        at: StepAt,
        /// Of which dispatch: any other than the one in flight is late.
        dispatch_no: u32,
        /// What came of it.
        answer: Box<Answer>,
    },
    /// Work that was sent goes on elsewhere: its result comes by callback.
    Accepted {
        /// Whose.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
    },
    /// Part of an answer came.
    Stream {
        /// Whose.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// What came.
        part: DeltaPart,
    },
    /// A line for a step's log.
    Log {
        /// Whose.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// The line.
        text: String,
    },
    /// A process was started for a step.
    Process {
        /// Whose.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// The process.
        process: Process,
    },
    /// A step wants to call a tool. What was decided is read from the run.
    UseTool {
        /// Which step.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// The call.
        wanted: ToolUse,
    },
    /// A tool that was allowed has answered.
    ToolEnded {
        /// Which step.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// What came of it.
        ended: ToolEnded,
    },
    /// Parts of an answer that a bridge delivers while it works, in order.
    Parts {
        /// Which step.
        at: StepAt,
        /// Of which dispatch.
        dispatch_no: u32,
        /// What came.
        parts: Vec<Emission>,
    },
    /// The moderator has answered about what goes into a step.
    Moderated {
        /// Which step.
        at: StepAt,
        /// SHA-256 of the text it was asked about: any other than the one that
        /// is waited for is late.
        digest: String,
        /// What it says.
        verdict: Verdict,
    },
    /// A result, with what the moderator says of it.
    Checked {
        /// The result: of a dispatch, or of a child run.
        command: Box<Command>,
        /// What it says.
        verdict: Verdict,
    },
    /// A child run ended, or could not be started.
    ChildEnded {
        /// The child.
        child: RunId,
        /// How it ended.
        status: RunStatus,
        /// Its result.
        outputs: Option<Value>,
        /// Its failure: code and message.
        error: Option<(String, String)>,
        /// Where the parts of its result come from.
        origins: Vec<Provenance>,
    },
    /// A child run has begun to wait only for people, or goes on.
    ChildPaced {
        /// The child.
        child: RunId,
        /// Which of the two.
        pace: ChildPace,
        /// When that was.
        at_ms: u64,
    },
    /// Stop it.
    Cancel {
        /// Who says so.
        by: String,
        /// Why.
        reason: String,
    },
    /// Start nothing more for now.
    Pause {
        /// Who says so.
        by: String,
    },
    /// Go on.
    Unpause {
        /// Who says so.
        by: String,
    },
    /// Close a question.
    Resolve(Box<Resolve>),
    /// Go back to a checkpoint.
    Rewind {
        /// Who says so.
        by: String,
        /// The steps whose results stay, as they were at the checkpoint.
        keep: BTreeSet<u32>,
    },
    /// Take a failed run up again: its failed steps and all that depend on them.
    Retry {
        /// Who says so.
        by: String,
    },
    /// Choose who does a step that no member of the team fits.
    Assign {
        /// Who says so.
        by: String,
        /// The step, with all its instances.
        step: u32,
        /// A member of the team, else an agent.
        whom: String,
    },
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolve {
    /// Which question.
    pub approval: ApprovalId,
    /// The answer.
    pub decision: Decision,
    /// Whose.
    pub by: String,
    /// What they say.
    pub comment: Option<String>,
    /// The values they supply.
    pub values: Map<String, Value>,
    /// The roles they answer in.
    pub roles: Vec<String>,
    /// What they tighten.
    pub constraints: Option<Constraints>,
}

/// The answers a person can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Approve,
    /// No; needs a comment.
    Reject,
    /// Of an escalation: try again.
    Retry,
    /// Of an escalation: go on without it.
    Skip,
    /// Of an escalation: give up.
    Abort,
}

impl Decision {
    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
            Decision::Retry => "retry",
            Decision::Skip => "skip",
            Decision::Abort => "abort",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Decision> {
        [Decision::Approve, Decision::Reject, Decision::Retry, Decision::Skip, Decision::Abort]
            .into_iter()
            .find(|one| one.as_str() == word)
    }
}

/// A command that makes no sense now. Nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has ended.
    #[error("the run is {0} already")]
    Ended(RunStatus),
    /// The run is not paused by an operator.
    #[error("the run is not paused by an operator")]
    NotPaused,
    /// There is no such question.
    #[error("this run has no approval {0}")]
    NoApproval(ApprovalId),
    /// The question is closed.
    #[error("the approval is {0} already")]
    Resolved(&'static str),
    /// The question does not have this answer.
    #[error("this approval takes {0}")]
    WrongDecision(&'static str),
    /// A rejection without a reason.
    #[error("a rejection needs a comment that says why")]
    CommentMissing,
    /// The values do not fit what the step declares.
    #[error("the values do not fit: {}", list(.0))]
    BadValues(Vec<Violation>),
    /// Only a run that failed can be taken up again.
    #[error("only a run that failed can be retried; this one is {0}")]
    NotFailed(RunStatus),
    /// The result is not of the dispatch in flight: it came late, or twice.
    #[error("the result is of a dispatch that is no longer in flight")]
    Late,
    /// They are not among those who may answer.
    #[error("{by} may not answer this: it is for {for_whom}")]
    NotApprover {
        /// Who tried.
        by: String,
        /// Who may.
        for_whom: String,
    },
    /// They are an initiator of the run: another person must answer.
    #[error("{0} is an initiator of the run: another person must answer")]
    SelfApproval(String),
    /// They have answered already.
    #[error("{0} has answered already; others must")]
    AnsweredAlready(String),
    /// An answer that would allow more than was asked.
    #[error("an answer can only tighten: {0}")]
    Widens(String),
    /// The step does not wait for somebody to be chosen.
    #[error("`{0}` does not wait for anybody to be assigned")]
    NotBlocked(String),
    /// There is no such member or agent.
    #[error("`{0}` is neither a member of the team nor an agent")]
    NoMember(String),
    /// Going back there changes nothing.
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

/// What a decision is told of the world.
pub struct Given<'a> {
    /// The time.
    pub now_ms: u64,
    /// Chance: for ids and delays.
    pub entropy: &'a mut (dyn Entropy + 'static),
    /// Whether steps may be dispatched.
    pub dispatching: Dispatching,
    /// Rows, rules and counters.
    pub authority: &'a dyn Authority,
}

/// Whether steps may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatching {
    /// They may.
    Allowed,
    /// They wait for a process that does work: this one only notes things down.
    Deferred,
}
