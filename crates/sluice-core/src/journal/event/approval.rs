//! Payloads of approvals.

use super::Prepared;
use crate::choices::choices;
use crate::id::ApprovalId;
use crate::journal::declare::form::{
    Always, Erasable, Form, Maybe, Optional, Shared, Sparse, Text, Word,
};
use crate::journal::declare::{Read, payload};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::object::PayloadWriter;
use crate::port::adapter::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_govern::decision::Constraints;
use sluice_govern::facts::SeenIn;
use std::sync::Arc;

payload! {
    /// A request for an approval.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ApprovalRequested {
        /// Identifies the approval in the CLI, the API and later events.
        approval: ApprovalId = "approvalId" as Text, Whole;
        /// What requires the approval.
        source: ApprovalSource = "source" as Word, Whole;
        /// What the approver decides on, in words.
        summary: String = "summary" as Sparse, Gone;
        /// Users or roles that may decide.
        approvers: Vec<String> = "approvers" as Sparse, Gone;
        /// When the request expires.
        expires_at_ms: u64 = "expiresAt" as Always, Whole;
        /// Code and message of the failure behind an escalation.
        error: Option<(String, String)>;
        /// What is sent if the approval is granted.
        prepared: Option<Arc<Prepared>>;
        /// Cost of the failed attempt behind an escalation.
        usage: Usage;
        /// Answer of the failed attempt behind an escalation.
        answer: Option<Arc<Value>> = "answer" as Maybe<Shared<Always>>, Gone;
        /// Groups of which at least one member each must approve.
        groups: Vec<Vec<String>> = "groups" as Sparse, Gone;
        /// How many approvers must approve.
        quorum: u32 = "quorum" as FromOne, Whole;
        /// Whether the initiator of the run may not approve.
        not_initiator: bool = "notInitiator" as Sparse, Whole;
        /// When the approvers are reminded, and how urgently. An old journal does not say.
        reminders: Option<Vec<(u64, String)>> = "reminders" as Optional, Whole;
        /// The action that is approved.
        action: Option<Arc<ApprovalSubject>>;
    }
}

payload! {
    /// The action that an approval is about.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct ApprovalSubject if "actionDigest" {
        /// SHA-256 of the canonical JSON of the action.
        digest: String = "actionDigest" as Always, Word;
        /// The action, complete.
        action: Value = "action" as Erasable, Gone;
        /// Why an approval is required.
        reasons: Vec<String> = "reasons" as Sparse, Gone;
        /// What differs from the action that was approved before.
        changes: Vec<ChangedValue> = "changes" as Sparse, Gone;
        /// Where the value of each argument of a tool call was seen.
        arguments: Vec<ShownArgument> = "arguments" as Sparse, Gone;
        /// What the caller asked for, for a tool call.
        asked_for: Option<String> = "askedFor" as Optional, Gone;
    }
}

/// Where the value of an argument was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownArgument {
    /// Path of the argument.
    pub path: String,
    /// Where its values were seen.
    pub seen: Vec<SeenIn>,
    /// Where the addresses in it were seen.
    pub mentions: Vec<SeenIn>,
    /// Of what it repeats a passage.
    pub carries: Vec<SeenIn>,
}

/// A value that differs from the one that was approved before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangedValue {
    /// Path of the value within the action.
    pub path: String,
    /// The value that was approved.
    pub before: Value,
    /// The value now.
    pub after: Value,
}

choices! {
    /// What requires an approval.
    pub enum ApprovalSource, "a source of an approval" {
        /// The document, for the step.
        Step = "step",
        /// A policy with `require_approval`.
        Policy = "policy",
        /// A tool that the step calls.
        Tool = "tool",
        /// A failure of the step, or a dispatch whose result is unknown.
        Escalation = "escalation",
    }
}

payload! {
    /// A vote on an approval, or its end.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ApprovalResolved {
        /// The approval that was decided.
        approval: ApprovalId = "approvalId" as Text, Whole;
        /// The decision so far.
        resolution: Resolution = "resolution" as Word, Whole;
        /// The person who decided.
        by: Option<String> = "by" as Optional, Gone;
        /// Comment of that person.
        comment: Option<String> = "comment" as Optional, Gone;
        /// Roles in which the person decided.
        roles: Vec<String> = "roles" as Sparse, Gone;
        /// Constraints that the person added.
        tightened: Option<Tightened>;
    }
}

payload! {
    /// Constraints that an approver added.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Tightened if "constraints" {
        /// All constraints, the added ones included.
        #[serde(with = "crate::compact::json")]
        constraints: Constraints = "constraints" as Always, Whole;
        /// SHA-256 of the action with these constraints.
        digest: String = "actionDigest" as Always, Word;
    }
}

impl ApprovalResolved {
    /// An approval that the engine closes.
    pub fn new(approval: ApprovalId, resolution: Resolution) -> ApprovalResolved {
        let (by, comment, roles, tightened) = (None, None, Vec::new(), None);
        ApprovalResolved { approval, resolution, by, comment, roles, tightened }
    }
}

choices! {
    /// The decisions on an approval.
    pub enum Resolution, "a decision on an approval" {
        /// One more vote; the approval needs further votes.
        Pending = "pending",
        /// The action may proceed.
        Approved = "approved",
        /// The action may not proceed.
        Rejected = "rejected",
        /// No decision in time, which rejects.
        Expired = "expired",
        /// The step no longer needs the approval.
        Cancelled = "cancelled",
        /// Escalation: retry the step.
        Retry = "retry",
        /// Escalation: skip the step.
        Skip = "skip",
        /// Escalation: abort the step.
        Abort = "abort",
    }
}

/// A count that is left out where it is one.
struct FromOne;

impl Form<u32> for FromOne {
    const REQUIRED: bool = false;

    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, count: &u32) {
        if *count > 1 {
            payload.field(name, count);
        }
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<u32> {
        Ok(fields.option(name)?.unwrap_or(1))
    }

    fn schema() -> Value {
        json!({"type": "integer"})
    }
}
