//! Context from the past for agents: notes, and profiles that load them.

use serde::{Deserialize, Serialize};

/// A text that a memory profile loads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Whether it came from outside and was not checked.
    #[serde(skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Whether it must not leave the organisation.
    #[serde(skip_serializing_if = "is_false")]
    pub private: bool,
}

/// The context from the past for a step that names this profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryProfile {
    /// Names of notes, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Last outputs of an agent, in any run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outputs: Option<LastOutputs>,
    /// Size limit of the whole context, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// Last outputs of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastOutputs {
    /// The agent.
    pub agent: String,
    /// Largest number of outputs, newest first.
    pub count: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
