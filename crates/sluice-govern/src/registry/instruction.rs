//! Standing instructions of the platform and of the owner, and what they bind.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A policy in words, for every prompt it applies to. Beside the text stand the
/// directives that can be checked: a looser layer that contradicts one is
/// refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Whose it is.
    pub layer: Whose,
    /// What agents are told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Only for runs of these workflows; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// Only for steps of these agents; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Steps may ask for no other tools; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_tools: Vec<String>,
    /// Steps may not ask for these tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_tools: Vec<String>,
    /// Steps may use no other models; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Lenses may be of no other kind; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_kinds: Vec<String>,
    /// Whether steps may load memory.
    #[serde(default, skip_serializing_if = "MemoryUse::is_allowed")]
    pub memory: MemoryUse,
    /// Values that nobody may set otherwise: arguments and `param_overrides` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pin: BTreeMap<String, Value>,
}

/// Whose an instruction is. The first is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Of whoever runs the platform: layer 2.
    Platform,
    /// Of whoever owns the workflows: layer 3.
    Owner,
}

/// Whether steps may load memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryUse {
    /// They may.
    #[default]
    Allow,
    /// They may not.
    Deny,
}

impl MemoryUse {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_allowed(&self) -> bool {
        *self == MemoryUse::Allow
    }
}

impl Instruction {
    /// Whether it is about a step of this workflow and agent.
    pub fn applies(&self, workflow: &str, agent: &str) -> bool {
        let among = |list: &[String], one: &str| list.is_empty() || list.iter().any(|it| it == one);
        among(&self.workflows, workflow) && among(&self.agents, agent)
    }
}
