//! Everything that can happen to a run, as the core works with it.
//!
//! One enum names every event. It is not `Serialize`:
//! only [`wire`](super::wire) knows how events are written down.

mod governed;
mod question;
mod started;
mod tool;

pub use governed::{Account, Record, Terms};
pub use question::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, Asked, Change, Resolution,
};

pub use started::{DocumentSource, Origin, RunStarted};
pub use tool::{Ruling, ToolAsked};

use crate::choice::choices;
use crate::contract::envelope::Envelope;
use crate::id::{ApprovalId, RunId};
use crate::layers::Layer;
use crate::origin::Labels;
use crate::outputs::coerce::Coercion;
use crate::port::adapter::{Process, ToolEnded, Usage};
use crate::port::moderator::Phase;
use crate::status::{RunStatus, Waiting};
use crate::violation::Violation;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A step of the plan, or one instance of a `for_each` step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepAt {
    /// The step's position in the plan.
    pub step: u32,
    /// Which item, for an instance.
    pub item: Option<u32>,
}

impl StepAt {
    /// The step as a whole.
    pub const fn whole(step: u32) -> StepAt {
        StepAt { step, item: None }
    }

    /// One instance of a step.
    pub const fn instance(step: u32, item: u32) -> StepAt {
        StepAt { step, item: Some(item) }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run exists; every step is pending.
    RunStarted(Box<RunStarted>),
    /// The run's status changed, without an end.
    RunStatusChanged {
        /// What it is now.
        status: RunStatus,
        /// Why: `operator`, `approval`, `taken_over`, `cancel`, `rewind`, …
        reason: String,
        /// Who did it, where someone did.
        by: Option<String>,
    },
    /// The run ended well.
    RunCompleted {
        /// Its result.
        outputs: Arc<Value>,
    },
    /// The run ended badly.
    RunFailed {
        /// The kind of failure.
        code: String,
        /// What failed.
        message: String,
    },
    /// The run was stopped.
    RunCancelled {
        /// Why.
        reason: String,
    },
    /// The run took too long.
    RunTimedOut {
        /// How long it was given.
        timeout_ms: u64,
    },
    /// A run that had failed has succeeded.
    RunRecovered,
    /// Something that happened to a step.
    Node(StepAt, NodeEvent),
    /// A threshold of a budget was passed.
    BudgetAlert(Map<String, Value>),
}

/// Something that happened to a step.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeEvent {
    /// It is ready.
    Queued {
        /// What a `for_each` step is done for.
        items: Option<Arc<Vec<Value>>>,
    },
    /// It was blocked, and somebody has chosen who does it: it is ready.
    Assigned(Box<Assigned>),
    /// It waits.
    Waiting(Box<Wait>),
    /// It is dispatched.
    Started(Box<Dispatch>),
    /// A part of its answer.
    Delta(Box<Delta>),
    /// A line of its log.
    Log {
        /// Of which dispatch.
        dispatch_no: u32,
        /// What there is to know.
        line: Line,
    },
    /// An attempt failed, another one comes.
    Retried(Box<Retried>),
    /// It is done.
    Completed(Box<Completed>),
    /// It failed for good.
    Failed(Box<Ending>),
    /// Its last attempt took too long.
    TimedOut(Box<Ending>),
    /// It was stopped.
    Cancelled {
        /// `cancelled`, `run_halted`, `condition_failed`, …
        code: String,
        /// Why, for people.
        reason: String,
        /// What the stopped attempt cost.
        usage: Usage,
    },
    /// It was not done.
    Skipped(Skip),
    /// It cannot be done until someone sees to it.
    Blocked {
        /// The kind of trouble.
        code: String,
        /// For people.
        message: String,
        /// The label without a value, where that is the trouble.
        placeholder: Option<String>,
        /// Whether the run waits for someone to resolve it.
        waits: bool,
    },
    /// What it did no longer counts.
    Invalidated,
    /// A value came from another step.
    Provenance(Box<Provenance>),
    /// Moderation found something.
    ModerationFlagged {
        /// `input` or `output`.
        phase: String,
        /// What it decided.
        decision: Value,
    },
    /// Inputs or outputs broke their contract.
    ContractViolated {
        /// `input` or `output`.
        phase: String,
        /// All of it.
        errors: Arc<Vec<Violation>>,
    },
    /// The gates decided.
    GovernanceDecided(Record),
    /// A person is asked.
    ApprovalRequested(Box<ApprovalRequested>),
    /// A person was reminded.
    ApprovalReminded {
        /// Which question.
        approval: ApprovalId,
        /// How urgent it is by now.
        level: String,
    },
    /// A question is closed, or has one answer more.
    ApprovalResolved(Box<ApprovalResolved>),
    /// What a dispatch that was given up has cost is known, or is taken to be
    /// what was reserved.
    Reconciled {
        /// Of which dispatch.
        dispatch_no: u32,
        /// What it cost.
        usage: Usage,
    },
}

/// Somebody has chosen who does a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Whom.
    pub whom: Whom,
    /// Who chose.
    pub by: Option<String>,
}

/// Who was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// A member of the team.
    Member(String),
    /// An agent, who need be no member.
    Agent(String),
}

/// A wait of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Why it waits.
    pub reason: Waiting,
    /// The attempt that comes after the wait.
    pub attempt: u32,
    /// What made it wait.
    pub cause: Option<String>,
    /// How long.
    pub delay_ms: u64,
    /// Until when.
    pub until_ms: u64,
    /// A gate's code.
    pub code: Option<String>,
    /// What would end the wait.
    pub hint: Option<String>,
}

/// How a step is dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// In the engine's process.
    Edge,
    /// Elsewhere, the result comes by callback.
    Bridge,
    /// Elsewhere, the result is the answer to the request.
    Sync,
    /// As a run of its own.
    Child(RunId),
    /// By its instances.
    FanOut,
}

/// A dispatch of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// Which attempt of this generation, from 1.
    pub attempt: u32,
    /// Which dispatch of the step, from 1, never reset.
    pub dispatch_no: u32,
    /// The step's wave.
    pub wave: u32,
    /// Who does it.
    pub agent: Option<String>,
    /// Where.
    pub gateway: String,
    /// How.
    pub path: Path,
    /// When the attempt is given up.
    pub deadline_ms: Option<u64>,
    /// What is sent; none when it is what was sent before.
    pub prepared: Option<Arc<Prepared>>,
    /// SHA-256 of the action that was allowed.
    pub digest: Option<String>,
    /// What was taken for it, and what it must keep to.
    pub terms: Arc<Terms>,
    /// The session of the provider that it continues.
    pub session: Option<String>,
}

/// What a step is given, rendered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prepared {
    /// Its inputs, bound.
    pub inputs: Map<String, Value>,
    /// The instruction.
    pub prompt: String,
    /// What is piped in.
    pub stdin: Option<String>,
    /// Environment variables, for a shell.
    pub env: Vec<(String, String)>,
    /// What is known of the values it reads.
    pub labels: Labels,
    /// The layers of its prompt that are not in the plan; none if there are only
    /// those of the engine, the step and the caller.
    pub layers: Vec<Layer>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    /// Per step from 0, over attempts.
    pub index: u64,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// The dispatch it belongs to: text starts anew with each, and an attempt may
    /// be sent again after a crash. 0 in journals that do not say.
    pub dispatch_no: u32,
    /// What came.
    pub part: DeltaPart,
}

/// What a part of an answer is.
#[derive(Debug, Clone, PartialEq)]
pub enum DeltaPart {
    /// Text.
    Text(String),
    /// A picture or sound.
    Media {
        /// Where it is.
        url: String,
        /// What it is.
        mime: String,
    },
    /// It stands beside the frame, and was not read: the fold does without.
    Beside,
}

/// A line of a step's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Text.
    Text(String),
    /// A process was started.
    Process(Process),
    /// A tool was asked for, and what was decided.
    Tool(Box<ToolAsked>),
    /// A tool that was allowed has answered.
    ToolEnded(ToolEnded),
    /// The moderator is asked whether this may go in.
    Asked {
        /// SHA-256 of the text that is judged.
        digest: String,
        /// What was prepared; none when the journal has it already.
        prepared: Option<Arc<Prepared>>,
    },
    /// The moderator had nothing against it.
    Cleared {
        /// Which side of the step.
        phase: Phase,
        /// SHA-256 of the text that was judged.
        digest: String,
    },
    /// The child run of the step has begun to wait only for people, or goes on.
    Child {
        /// The child.
        child: RunId,
        /// Which of the two.
        pace: ChildPace,
        /// When, by the child's journal.
        at_ms: u64,
    },
}

choices! {
    /// Whether a child run waits only for people.
    pub enum ChildPace, "what a child run does" {
        /// It has begun to.
        Paused = "paused",
        /// It no longer does.
        Resumed = "resumed",
    }
}

/// A failed attempt that is followed by another.
#[derive(Debug, Clone, PartialEq)]
pub struct Retried {
    /// The one that failed.
    pub attempt: u32,
    /// Why another one comes.
    pub cause: String,
    /// What failed.
    pub message: String,
    /// How long until the next.
    pub delay_ms: u64,
    /// Whether the next one is asked with what was wrong.
    pub reask: bool,
    /// What the attempt cost.
    pub usage: Usage,
    /// What the attempt answered, as [`Answer::into_record`] writes it.
    ///
    /// [`Answer::into_record`]: crate::port::adapter::Answer::into_record
    pub answer: Option<Arc<Value>>,
    /// The session of that answer, where the next attempt is asked with what was wrong.
    pub session: Option<String>,
}

/// A step's result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Its outputs, an object.
    pub outputs: Value,
    /// Its text, as it came.
    pub stdout: Option<String>,
    /// The envelope of a lens node.
    pub envelope: Option<Envelope>,
    /// What is known of these values.
    pub labels: Labels,
}

impl Outcome {
    /// Of a lens node: its data by name, and its whole output as `output`.
    pub fn of(envelope: Envelope, labels: Labels) -> Outcome {
        let mut outputs = match &envelope.data {
            Some(Value::Object(data)) => data.clone(),
            _ => Map::new(),
        };
        if !outputs.contains_key("output") {
            outputs.insert("output".to_owned(), envelope.output.clone());
        }
        Outcome {
            outputs: Value::Object(outputs),
            stdout: envelope.output.as_str().map(str::to_owned),
            envelope: Some(envelope),
            labels,
        }
    }
}

/// A step is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// What came of it.
    pub outcome: Arc<Outcome>,
    /// How many attempts it took.
    pub attempts: u32,
    /// How long the last attempt took.
    pub duration_ms: u64,
    /// What the last attempt cost.
    pub usage: Usage,
    /// What was changed so that the outputs fit.
    pub coercions: Vec<Coercion>,
    /// The conversation, to go on with.
    pub session: Option<String>,
    /// What was said in it, for whoever looks.
    pub conversation: Vec<Value>,
    /// Files that came of it.
    pub artefacts: Vec<Value>,
    /// The run it was taken over from.
    pub carried: Option<RunId>,
}

/// The end of a step that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The kind of failure.
    pub code: String,
    /// What failed.
    pub message: String,
    /// The values that do not fit.
    pub violations: Arc<Vec<Violation>>,
    /// How many attempts were made.
    pub attempts: u32,
    /// What the last attempt cost.
    pub usage: Usage,
    /// What the last attempt answered. The journal has it; the fold drops it.
    pub answer: Option<Arc<Value>>,
}

/// Why a step was not done.
#[derive(Debug, Clone, PartialEq)]
pub struct Skip {
    /// The kind.
    pub cause: SkipCause,
    /// For people.
    pub reason: String,
    /// The failure behind it, where there is one: code and message.
    pub error: Option<(String, String)>,
    /// The values that do not fit, where that is the failure.
    pub violations: Arc<Vec<Violation>>,
    /// What the failed attempt cost.
    pub usage: Usage,
    /// What the failed attempt answered. The journal has it; the fold drops it.
    pub answer: Option<Arc<Value>>,
    /// The run it was taken over from.
    pub carried: Option<RunId>,
}

impl Skip {
    /// A skip that cost nothing.
    pub fn new(cause: SkipCause, reason: impl Into<String>) -> Skip {
        Skip {
            cause,
            reason: reason.into(),
            error: None,
            violations: Arc::default(),
            usage: Usage::default(),
            answer: None,
            carried: None,
        }
    }
}

/// The kinds of skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipCause {
    /// Its condition, or every edge's, is false.
    Condition,
    /// Everything it depends on was skipped.
    Dependencies,
    /// A parent failed, and it skips then.
    ParentFailure,
    /// It failed, and its policy says: skip.
    Failure,
    /// A person decided so.
    Decision,
    /// The run only looks at what would be done.
    Advisory,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// The run it came from; none means this one.
    pub source_run: Option<RunId>,
    /// The step, as written.
    pub source_node: String,
    /// The part of its result.
    pub source_output_path: String,
    /// What it became here.
    pub target_input_path: String,
    /// What was done to it on the way.
    pub transform: Option<String>,
}
