//! A decision and the verdict of each gate.

pub(crate) mod brief;
mod constraints;
mod figures;

pub use brief::{BRIEF, Known, expand};
pub use constraints::Constraints;
pub use figures::{Figure, Figures};

use crate::choice::choices;
use crate::policy::{Consequence, Enforcement, PolicyFacts};
use serde::Serialize;
use serde_json::{Map, Value};

/// The names of the gates, in the order of evaluation.
pub fn gates() -> impl Iterator<Item = &'static str> {
    crate::gates::GATES.iter().map(|gate| gate.name)
}

/// The error codes of the gates, in the same order.
pub fn gate_codes() -> impl Iterator<Item = &'static str> {
    crate::gates::GATES.iter().map(|gate| gate.code)
}

choices! {
    /// What happens to a dispatch.
    pub enum Disposition, "a disposition" {
        /// It is sent.
        Allow = "allow",
        /// It is not sent.
        Block = "block",
        /// It waits for an approval.
        Hold = "hold",
    }
}

choices! {
    /// What a gate says about one action.
    pub enum GateOutcome, "an outcome of a gate" {
        /// The gate allows the dispatch.
        Pass = "pass",
        /// The gate allows the dispatch, with a warning.
        Warn = "warn",
        /// The gate blocks the dispatch.
        Block = "block",
        /// The gate requires an approval.
        Hold = "hold",
        /// The gate was not evaluated.
        Skip = "skip",
    }
}

/// What a gate decided, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateVerdict {
    /// Name of the gate.
    pub gate: &'static str,
    /// Whether the gate passes, holds or blocks the action.
    pub outcome: GateOutcome,
    /// The error code; for a warning, the code that would have blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Message for people. A plain pass has none: readers supply the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<str>>,
    /// The values that were compared.
    #[serde(skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
    /// How to unblock the dispatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<str>>,
    /// Whether the gate only observes, because the agent is on trial.
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
    /// Name of the gate.
    pub gate: &'static str,
    /// The error code.
    pub code: &'static str,
    /// Whether a retry may succeed.
    pub retryable: bool,
    /// Whether the wait ends only when an operator resumes an agent, a gateway or
    /// everything.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
}

/// A reason for requiring an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldBy {
    /// The policy; `None` if the step or the posture of the run requires it.
    pub policy: Option<String>,
    /// Users or groups that may approve; empty means anyone with the permission.
    pub approvers: Vec<String>,
    /// How many people must approve.
    pub quorum: u32,
    /// Whether the initiator of the run may not approve.
    pub not_initiator: bool,
    /// The reason, for the approver.
    pub reason: String,
}

/// A policy that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// `file/id`.
    pub policy: String,
    /// What it does.
    pub action: Consequence,
    /// How strictly.
    pub enforcement: Enforcement,
}

/// The decision that the engine follows. It does not refer to the facts it was made
/// from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What happens to the dispatch.
    pub disposition: Disposition,
    /// The verdicts of all ten gates, in order.
    pub gates: Vec<GateVerdict>,
    /// The gate that blocked the dispatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// The reasons for requiring an approval.
    #[serde(skip)]
    pub holds: Vec<HoldBy>,
    /// Constraints to pass to the agent.
    #[serde(skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Policies that matched, whatever their effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<Matched>,
    /// SHA-256 of the whole policy set.
    pub policy_hash: String,
    /// SHA-256 over the facts.
    pub facts_digest: String,
    /// The complete action, if it needs an approval.
    #[serde(skip)]
    pub action: Option<Value>,
    /// SHA-256 of the action.
    pub action_digest: String,
    /// The decision of the shadow policy set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
}

/// A decision with its record. It serialises as the payload of the event
/// `governance.decided`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated<'f> {
    /// The disposition and what people must approve.
    #[serde(flatten)]
    pub decision: Decision,
    /// The facts that the policies saw, so that other policy sets can be tried on them.
    pub facts: PolicyFacts<'f>,
    /// The facts in the compact form.
    #[serde(skip)]
    pub(crate) brief: String,
}

impl Evaluated<'_> {
    /// The payload of the event `governance.decided`. On a hot path use
    /// [`write`](Evaluated::write), which builds no map.
    pub fn to_json(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            other => unreachable!("a decision is a map of plain data, not {other:?}"),
        }
    }
}

/// The decision of the shadow policy set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// What would have happened to the dispatch.
    pub disposition: Disposition,
    /// SHA-256 of the shadow set.
    pub policy_hash: String,
    /// Policies of the shadow set that matched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<Matched>,
}
