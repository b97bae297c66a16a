//! Questions to people, and how they are closed.

use super::Prepared;
use crate::id::ApprovalId;
use crate::port::adapter::Usage;
use serde_json::Value;
use sluice_govern::decision::Constraints;
use std::sync::Arc;

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequested {
    /// Its id.
    pub approval: ApprovalId,
    /// Why it is asked.
    pub source: ApprovalSource,
    /// What is asked.
    pub summary: String,
    /// Users or roles who may answer.
    pub approvers: Vec<String>,
    /// When it is too late.
    pub expires_at_ms: u64,
    /// The failure behind an escalation: code and message.
    pub error: Option<(String, String)>,
    /// What would be sent on a grant.
    pub prepared: Option<Arc<Prepared>>,
    /// What the failed attempt cost, for an escalation.
    pub usage: Usage,
    /// What the failed attempt answered, for an escalation.
    pub answer: Option<Arc<Value>>,
    /// Of each group at least one must agree.
    pub groups: Vec<Vec<String>>,
    /// How many must agree.
    pub quorum: u32,
    /// Whether the one who started the run may not.
    pub not_initiator: bool,
    /// When people are reminded, and how urgent it is by then.
    pub reminders: Vec<(u64, String)>,
    /// What is agreed to, and its SHA-256.
    pub action: Option<Arc<Asked>>,
}

/// What a person agrees to.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The action, complete.
    pub action: Value,
    /// SHA-256 of its canonical JSON.
    pub digest: String,
    /// Why it is asked.
    pub reasons: Vec<String>,
    /// What differs from what was agreed to before: path, before, after.
    pub changes: Vec<Change>,
}

/// Something that differs from what was agreed to before.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where.
    pub path: String,
    /// What it was.
    pub before: Value,
    /// What it is.
    pub after: Value,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalSource {
    /// The step says so.
    Step,
    /// A policy says so.
    Policy,
    /// A tool that it wants to call needs somebody's consent.
    Tool,
    /// The step failed, or nobody knows what became of it.
    Escalation,
}

/// How a question was closed.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalResolved {
    /// Which.
    pub approval: ApprovalId,
    /// How.
    pub resolution: Resolution,
    /// By whom.
    pub by: Option<String>,
    /// What they said.
    pub comment: Option<String>,
    /// The roles they answered in.
    pub roles: Vec<String>,
    /// What they tightened, and the SHA-256 of the action with it.
    pub tightened: Option<(Constraints, String)>,
}

impl ApprovalResolved {
    /// A question that is closed by itself.
    pub fn new(approval: ApprovalId, resolution: Resolution) -> ApprovalResolved {
        let (by, comment, roles, tightened) = (None, None, Vec::new(), None);
        ApprovalResolved { approval, resolution, by, comment, roles, tightened }
    }
}

/// The ways a question is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Not yet: one answer more, others are still needed.
    Pending,
    /// Yes.
    Approved,
    /// No.
    Rejected,
    /// Nobody answered in time; counts as no.
    Expired,
    /// The question is moot.
    Cancelled,
    /// Of an escalation: try again.
    Retry,
    /// Of an escalation: go on without it.
    Skip,
    /// Of an escalation: give up.
    Abort,
}
