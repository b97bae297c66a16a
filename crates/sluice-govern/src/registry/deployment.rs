//! Deployments: who and where, for one workflow.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who does a workflow's roles, where, and with how much freedom.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// The workflow.
    pub workflow: String,
    /// Whether it counts. One active deployment a workflow: the first by name.
    pub active: bool,
    /// The gateway of its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Which agent stands for which role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, String>,
    /// The gateway an agent is pinned to in its runs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_gateways: BTreeMap<String, String>,
    /// How much freedom its runs have.
    pub posture: Posture,
    /// No agent counts as more trusted than this in its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_ceiling: Option<u8>,
}

/// How much freedom a run has. Pinned when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Posture {
    /// The gates decide.
    #[default]
    BoundedAutonomous,
    /// Every agent step holds for a person.
    ApprovalRequired,
    /// Only tools marked read-only.
    Retrieval,
    /// Gates are evaluated and recorded, nothing is dispatched.
    Advisory,
}

impl Posture {
    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Posture::BoundedAutonomous => "bounded_autonomous",
            Posture::ApprovalRequired => "approval_required",
            Posture::Retrieval => "retrieval",
            Posture::Advisory => "advisory",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Posture> {
        [
            Posture::BoundedAutonomous,
            Posture::ApprovalRequired,
            Posture::Retrieval,
            Posture::Advisory,
        ]
        .into_iter()
        .find(|posture| posture.as_str() == word)
    }
}
