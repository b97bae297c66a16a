//! Everything that can happen to a run: each event is declared here, once.
//!
//! A declaration has the Rust type, the name and fields on the wire, what erasure leaves of
//! each field, and the audit fact (see [`declare`](super::declare)). Payloads that several
//! fields make up are declared in the modules below.

mod approval;
mod call_record;
mod dispatch;
mod labels;
mod log;
mod outcome;
mod started;
mod stream;

pub use approval::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, ApprovalSubject, ChangedValue, Resolution,
    ShownArgument, Tightened,
};
pub use call_record::{CallRecord, HistoryTaken};
pub use dispatch::{
    Account, Assigned, Assignee, Dispatch, Path, Prepared, Record, Retried, Terms, Wait,
};
pub use log::{ChildPace, EndedCall, LogLine, Ruling, ToolRequest};
pub use outcome::{Completed, Ending, Endorsed, Provenance, Skip, SkipCause, StepOutcome};
pub use started::{DocumentSource, Origin, ParentStep, RunStarted};
pub use stream::{Delta, DeltaPart};

use super::declare::form::{Always, Maybe, Shared, Sparse, Text, Word};
use super::declare::{Declaration, ObjectSchema, events};
use crate::choices::choices;
use crate::id::ApprovalId;
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::Usage;
use crate::status::RunStatus;
use crate::violation::Violation;
use dispatch::is_assigned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A step of the plan, or one instance of a `for_each` step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepAt {
    /// Position of the step in the plan.
    pub step: u32,
    /// Index of the item, for an instance.
    pub item: Option<u32>,
}

impl StepAt {
    /// A step that is not an instance.
    pub const fn whole(step: u32) -> StepAt {
        StepAt { step, item: None }
    }

    /// The instance for one item of a `for_each` step.
    pub const fn instance(step: u32, item: u32) -> StepAt {
        StepAt { step, item: Some(item) }
    }
}

events! {
    /// Something that happened to a run.
    #[derive(Debug, Clone, PartialEq)]
    pub enum Event {
        /// The run exists; every step is pending.
        RunStarted(started: Box<RunStarted>) = "run.started", execution "run_started";
        /// The status of the run changed, but the run did not end.
        RunStatusChanged {
            /// The new status.
            status: RunStatus = "status" as Word, Whole;
            /// Why: `operator`, `approval`, `taken_over`, `cancel`, `rewind`, …
            reason: String = "reason" as Sparse, Reason;
            /// The person who changed it, if a person did.
            by: Option<String> = "by" as Maybe<Always>, Gone;
        } = "run.status.changed", execution "run_status_changed";
        /// The run succeeded.
        RunCompleted {
            /// Outputs of the run.
            outputs: Arc<Value> = "outputs" as Shared<Sparse>, Gone;
        } = "run.completed", execution "run_completed";
        /// The run ended because of a failure.
        RunFailed {
            /// Code of the failure.
            code: String = "errorCode" as Always, Word;
            /// What failed.
            message: String = "errorMessage" as Always, Blank;
        } = "run.failed", execution "run_failed";
        /// The run was cancelled.
        RunCancelled {
            /// Why, as the person who cancelled it wrote.
            reason: String = "reason" as Sparse, Gone;
        } = "run.cancelled", execution "run_cancelled";
        /// The run exceeded its timeout.
        RunTimedOut {
            /// The timeout that the document sets for the run.
            timeout_ms: u64 = "timeoutMs" as Always, Whole;
        } = "run.timed_out", execution "run_timed_out";
        /// A run that had failed was retried and has succeeded.
        RunRecovered = "run.recovered", execution "run_recovered";
        /// Spending passed a threshold of a budget.
        BudgetAlert(figures: BudgetFigures) = "budget.alert", governance "budget_alert";
        ..
        /// Something that happened to a step.
        Step(StepAt, StepEvent)
    }
}

events! {
    /// Something that happened to a step.
    #[derive(Debug, Clone, PartialEq)]
    pub enum StepEvent {
        /// The step was blocked until a person assigned it; it is ready now.
        Assigned(assigned: Box<Assigned>) = "node.queued" if is_assigned;
        /// The step is ready.
        Queued {
            /// Items of a `for_each` step.
            items: Option<Arc<Vec<Value>>> = "items" as Maybe<Shared<Always>>, Count;
        } = "node.queued";
        /// The step waits.
        Waiting(wait: Box<Wait>) = "node.waiting";
        /// The engine dispatched the step.
        Started(dispatch: Box<Dispatch>) = "node.started", execution "step_dispatched";
        /// A part of the answer arrived.
        Delta(delta: Box<Delta>) = "node.stream.delta";
        /// A line of the log of the step.
        Log {
            /// Dispatch that the line belongs to.
            dispatch_no: u32 = "dispatchNo" as Always, Whole;
            /// What is logged.
            line: LogLine;
        } = "node.log";
        /// An attempt failed, and the engine makes another one.
        Retried(retried: Box<Retried>) = "node.retried", execution "step_retried";
        /// The step succeeded.
        Completed(completed: Box<Completed>) = "node.completed", execution "step_completed";
        /// The step failed, and no attempt is left.
        Failed(ending: Box<Ending>) = "node.failed", execution "step_failed";
        /// The last attempt exceeded its timeout.
        TimedOut(ending: Box<Ending>) = "node.timed_out", execution "step_timed_out";
        /// The step was cancelled.
        Cancelled {
            /// `cancelled`, `run_halted`, `condition_failed`, …
            code: String = "code" as Always, Word;
            /// Why, for people.
            reason: String = "reason" as Sparse, Gone;
            /// Cost of the cancelled attempt.
            usage: Usage;
        } = "node.cancelled", execution "step_cancelled";
        /// The step was skipped.
        Skipped(skip: Skip) = "node.skipped", execution "step_skipped";
        /// The step cannot be dispatched until a person or a later event unblocks it.
        Blocked {
            /// Code of the cause.
            code: String = "errorCode" as Always, Word;
            /// The cause, for people.
            message: String = "errorMessage" as Always, Blank;
            /// Label without a value, if that is the cause.
            placeholder: Option<String> = "placeholder" as Maybe<Always>, Gone;
            /// Whether the run waits for a person to unblock the step.
            waits: bool = "waits" as Sparse, Whole;
        } = "node.blocked", execution "step_blocked";
        /// The result of the step is no longer valid.
        Invalidated = "node.invalidated", execution "step_invalidated";
        /// An input of the step was read from an output of another step.
        Provenance(provenance: Box<Provenance>) = "node.provenance";
        /// An output lost origins: it cannot carry a text, or a person has approved it.
        Endorsed(endorsed: Box<Endorsed>) = "node.endorsed", governance "output_endorsed";
        /// The moderator flagged a text of the step.
        ModerationFlagged {
            /// Side of the step that was moderated.
            phase: ModerationPhase = "phase" as Word, Word;
            /// What the moderator answered.
            decision: Value = "decision" as Sparse, Gone;
        } = "moderation.flagged", governance "content_flagged";
        /// Inputs or outputs violate their contract.
        ContractViolated {
            /// Side of the step that was checked.
            phase: ContractSide = "phase" as Word, Word;
            /// Every violation that was found, not only the first.
            errors: Arc<Vec<Violation>> = "errors" as Shared<Sparse>, Gone;
        } = "contract.violated", governance "contract_violated";
        /// The gates decided.
        GovernanceDecided(record: Record) = "governance.decided", governance "dispatch_decided";
        /// The step needs an approval.
        ApprovalRequested(request: Box<ApprovalRequested>)
            = "approval.requested", governance "approval_requested";
        /// The approvers were reminded.
        ApprovalReminded {
            /// Approval that they were reminded of.
            approval: ApprovalId = "approvalId" as Text, Whole;
            /// Urgency of the reminder.
            level: String = "level" as Sparse, Word;
        } = "approval.reminded", governance "approval_reminded";
        /// An approval is closed, or has one vote more.
        ApprovalResolved(resolved: Box<ApprovalResolved>)
            = "approval.resolved", governance "approval_resolved";
        /// The cost of an abandoned dispatch is known, or is assumed to be what was reserved.
        Reconciled {
            /// The abandoned dispatch.
            dispatch_no: u32 = "dispatchNo" as Always, Whole;
            /// Its cost.
            usage: Usage;
        } = "budget.alert" with "kind" = "reconciled", governance "budget_alert";
    }
}

choices! {
    /// What a contract was checked on.
    pub enum ContractSide, "a side of a contract" {
        /// The inputs of the step.
        Input = "input",
        /// What the step answered.
        Output = "output",
        /// The layers of its prompt.
        Instructions = "instructions",
    }
}

/// Figures of a budget alert, as the gates name them.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetFigures(pub Map<String, Value>);

/// Name of the message that keeps a quiet stream alive. It has no id and is never journalled.
pub const HEARTBEAT: &str = "heartbeat";

/// Every declaration. Two of them can have one name.
pub(crate) fn declarations() -> impl Iterator<Item = &'static Declaration> {
    Event::DECLARED.iter().chain(StepEvent::DECLARED)
}

/// The names of all events that are journalled, each once, in the order of declaration.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for declared in declarations() {
        if !names.contains(&declared.name) {
            names.push(declared.name);
        }
    }
    names
}

/// JSON Schema of the payload of each event, by the name of the event.
pub fn payload_schemas() -> BTreeMap<&'static str, Value> {
    let mut schemas: BTreeMap<&'static str, ObjectSchema> = BTreeMap::new();
    for declared in declarations() {
        let mut object = ObjectSchema::default();
        declared.describe(&mut object);
        match schemas.remove(declared.name) {
            Some(earlier) => object.merge(earlier),
            None if StepEvent::DECLARED.iter().any(|one| one.name == declared.name) => {
                object.add("nodeId", serde_json::json!({"type": "string"}), true);
            }
            None => {}
        }
        schemas.insert(declared.name, object);
    }
    schemas.into_iter().map(|(name, object)| (name, object.into_value())).collect()
}
