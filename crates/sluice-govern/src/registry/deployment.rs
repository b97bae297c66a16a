//! Deployments: the agents and gateway of a workflow.

use super::agent::TRUST_LEVEL;
use super::row::row;
use crate::choice::choices;
use std::collections::BTreeMap;

// A workflow uses its first active deployment by name.
row! {
    /// The agents, the gateway and the posture of a workflow's runs.
    pub struct Deployment, "DeploymentDoc" {
        /// The workflow.
        required workflow: String,
        /// Whether it is active (true). A workflow has one active deployment.
        stored active: bool,
        /// The gateway of its runs.
        optional gateway: Option<String>,
        /// The agent of each role.
        optional roles: BTreeMap<String, String>,
        /// The gateway an agent is pinned to in its runs.
        optional agent_gateways: BTreeMap<String, String>,
        /// The autonomy of its runs (bounded_autonomous).
        stored posture: Posture,
        /// The highest trust level that an agent has in its runs.
        optional trust_ceiling: Option<u8> as TRUST_LEVEL,
    }
}

choices! {
    /// How much freedom a run has. Pinned when it starts.
    #[derive(Default)]
    pub enum Posture, "a posture" {
        /// The gates decide.
        #[default]
        BoundedAutonomous = "bounded_autonomous",
        /// Every agent step requires an approval.
        ApprovalRequired = "approval_required",
        /// Only tools marked read-only.
        Retrieval = "retrieval",
        /// Gates are evaluated and recorded, nothing is dispatched.
        Advisory = "advisory",
    }
}
