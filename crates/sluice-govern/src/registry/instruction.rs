//! Standing instructions of the platform and of the owner, and their directives.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A policy in words, for every prompt it applies to. In addition to the text it has
/// directives that can be checked: a looser layer that contradicts one is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// The layer that issues it.
    pub layer: Whose,
    /// Text for the agents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Workflows it applies to; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// Agents it applies to; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Tools that steps may request; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_tools: Vec<String>,
    /// Tools that steps may not request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_tools: Vec<String>,
    /// Models that steps may use; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Output kinds that lenses may have; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_kinds: Vec<String>,
    /// Whether steps may load memory.
    #[serde(default, skip_serializing_if = "MemoryUse::is_allowed")]
    pub memory: MemoryUse,
    /// Values that documents cannot override: arguments and `param_overrides` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pin: BTreeMap<String, Value>,
}

/// The layer that issues an instruction. The first is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The operator of the platform: layer 2.
    Platform,
    /// The owner of the workflows: layer 3.
    Owner,
}

/// Whether steps may load memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryUse {
    /// Allowed.
    #[default]
    Allow,
    /// Forbidden.
    Deny,
}

impl MemoryUse {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_allowed(&self) -> bool {
        *self == MemoryUse::Allow
    }
}

impl Instruction {
    /// Whether it applies to a step of this workflow and agent.
    pub fn applies(&self, workflow: &str, agent: &str) -> bool {
        let among = |list: &[String], one: &str| list.is_empty() || list.iter().any(|it| it == one);
        among(&self.workflows, workflow) && among(&self.agents, agent)
    }
}
