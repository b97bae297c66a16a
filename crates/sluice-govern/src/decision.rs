//! What was decided, gate by gate.

pub(crate) mod brief;
mod constraints;
mod figures;

pub use brief::{BRIEF, Known, expand};
pub use constraints::Constraints;
pub use figures::{Figure, Figures};

use crate::policy::PolicyFacts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The names of the gates, in the order in which they are asked.
pub fn gates() -> impl Iterator<Item = &'static str> {
    crate::gates::GATES.iter().map(|gate| gate.name)
}

/// What becomes of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It is sent.
    Allow,
    /// It is not.
    Block,
    /// A person must agree first.
    Hold,
}

/// What one gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Yes.
    Pass,
    /// Yes, but.
    Warn,
    /// No.
    Block,
    /// Only if a person agrees.
    Hold,
    /// It was not asked.
    Skip,
}

/// A gate's verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The gate.
    pub gate: &'static str,
    /// What it says.
    pub outcome: Outcome,
    /// The kind of trouble; for a warning, what would have blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// For people. A plain pass says nothing: readers put it into words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<str>>,
    /// What was compared.
    #[serde(skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
    /// What would unblock it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<str>>,
    /// Whether it only observes, because the agent is on trial.
    #[serde(skip_serializing_if = "is_false")]
    pub observe: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(observe: &bool) -> bool {
    !*observe
}

/// The gate that ended an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedBy {
    /// The gate.
    pub gate: &'static str,
    /// The kind of trouble.
    pub code: &'static str,
    /// Whether to try again, and until when.
    pub retryable: bool,
    /// Whether the wait ends only when an operator ends it: a pause.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
}

/// Who wants a person to agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldBy {
    /// The policy; none if the step or the run's posture says so.
    pub policy: Option<String>,
    /// Users or groups who may answer; none named means anyone who may approve.
    pub approvers: Vec<String>,
    /// How many people must agree.
    pub quorum: u32,
    /// Whether the initiator of the run may not answer.
    pub not_initiator: bool,
    /// Why, for the person.
    pub reason: String,
}

/// A policy that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// `file/id`.
    pub policy: String,
    /// `block`, `require_approval`, `warn` or `log`.
    pub action: &'static str,
    /// `hard`, `soft` or `audit`.
    pub enforcement: &'static str,
}

/// What was decided: all that is followed, which needs nothing that it was made
/// from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What becomes of the dispatch.
    pub disposition: Disposition,
    /// All ten, in order.
    pub gates: Vec<Verdict>,
    /// What ended the evaluation, for a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Who wants a person to agree, for a hold.
    #[serde(skip)]
    pub holds: Vec<HoldBy>,
    /// What to pass on.
    #[serde(skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Policies that matched, whatever they did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<Matched>,
    /// SHA-256 of the whole policy set.
    pub policy_hash: String,
    /// SHA-256 over the facts.
    pub facts_digest: String,
    /// The action, complete, where a person is asked about it.
    #[serde(skip)]
    pub action: Option<Value>,
    /// SHA-256 of the action.
    pub action_digest: String,
    /// What a set in shadow would have decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
}

/// A decision, and what is written down with it. Serialised it is what the event
/// `governance.decided` holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated<'f> {
    /// What was decided.
    #[serde(flatten)]
    pub decision: Decision,
    /// What the policies saw, so that others can be tried on it.
    pub facts: PolicyFacts<'f>,
    /// The same as a brief record has it.
    #[serde(skip)]
    pub(crate) brief: String,
}

impl Evaluated<'_> {
    /// What the event `governance.decided` holds. On a hot path,
    /// [`write`](Evaluated::write) it: that builds no map.
    pub fn to_json(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            other => unreachable!("a decision is a map of plain data, not {other:?}"),
        }
    }
}

/// What a set in shadow would have decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// What would have become of the dispatch.
    pub disposition: Disposition,
    /// SHA-256 of that set.
    pub policy_hash: String,
    /// Its policies that matched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<Matched>,
}
