//! Deployments: the agents and gateway of a workflow.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The agents of a workflow's roles, their gateways, and the posture of its runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// The workflow.
    pub workflow: String,
    /// Whether it is in force. A workflow uses its first active deployment by name.
    pub active: bool,
    /// The gateway of its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// The agent of each role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, String>,
    /// The gateway that an agent is pinned to in its runs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_gateways: BTreeMap<String, String>,
    /// Posture of its runs.
    pub posture: Posture,
    /// Caps the trust level of every agent in its runs.
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
    /// Every agent step requires an approval.
    ApprovalRequired,
    /// Only tools marked read-only.
    Retrieval,
    /// Gates are evaluated and recorded, nothing is dispatched.
    Advisory,
}

impl Posture {
    /// The keyword on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Posture::BoundedAutonomous => "bounded_autonomous",
            Posture::ApprovalRequired => "approval_required",
            Posture::Retrieval => "retrieval",
            Posture::Advisory => "advisory",
        }
    }

    /// Parses the keyword.
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
