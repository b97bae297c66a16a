//! Calls of tools that a step asks for.

use crate::id::ApprovalId;
use serde_json::Value;

/// A call of a tool that was asked for, and what was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAsked {
    /// The call, unique within its dispatch.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it is called with.
    pub input: Value,
    /// SHA-256 of tool and input.
    pub digest: String,
    /// What was decided.
    pub ruling: Ruling,
}

/// Whether a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It may, this once; a person agreed, where one was asked.
    Allowed(Option<ApprovalId>),
    /// It may not, and why.
    Denied(String),
    /// A person is asked.
    Held(ApprovalId),
}

impl Ruling {
    /// The word on every wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Ruling::Allowed(_) => "allowed",
            Ruling::Denied(_) => "denied",
            Ruling::Held(_) => "held",
        }
    }
}
