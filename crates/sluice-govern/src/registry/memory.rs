//! What agents are told of the past: notes, and profiles that load them.

use serde::{Deserialize, Serialize};

/// A text that a memory profile loads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Whether it came from outside and was checked by nobody.
    #[serde(skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Whether it must not leave the house.
    #[serde(skip_serializing_if = "is_false")]
    pub private: bool,
}

/// What a step that names it is told of the past.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryProfile {
    /// Notes by name, in the order in which they are told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What an agent answered last, in whatever run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outputs: Option<LastOutputs>,
    /// Most bytes of all of it together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// What an agent answered last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastOutputs {
    /// Which agent.
    pub agent: String,
    /// How many answers at most, newest first.
    pub count: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
