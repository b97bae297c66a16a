//! What an operator sets up: agents, gateways, roles, deployments, envelopes,
//! prices, policies. Rows of a registry, each with a kind and a name, read into
//! one [`Fabric`] that a turn looks at.
//!
//! Rows are kept as JSON under the names below. Amounts are in cents, fractions
//! allowed, as everywhere an operator writes them.

mod agent;
mod deployment;
mod envelope;
mod fabric;
mod gateway;
mod instruction;
mod memory;
mod policy;
mod price;
mod role;
mod schedule;
mod token;
mod webhook;
mod workflow;

pub use agent::{Agent, AgentStatus, POC_MS, Phase, Rate, SessionMode, Tools};
pub use deployment::{Deployment, Posture};
pub use envelope::{Envelope, Period, Scope};
pub use fabric::{Fabric, Held};
pub use gateway::{ANYTHING, Gateway, Health, PROVIDERS};
pub use instruction::{Instruction, MemoryUse, Whose};
pub use memory::{LastOutputs, MemoryProfile, Note};
pub use policy::{PolicyFile, PolicySet, policy_files};
pub use price::Price;
pub(crate) use role::meet;
pub use role::{NOTHING, Role, TrustedContext};
pub use schedule::{Missed, Overlap, Schedule};
pub use token::Token;
pub use webhook::{Hook, Webhook};
pub use workflow::WorkflowVersion;

use serde::{Deserialize, Serialize};

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Who does work.
    Agent,
    /// Where work is done.
    Gateway,
    /// Bounds on whoever acts in a role, in every workflow.
    Role,
    /// Who and where, for one workflow.
    Deployment,
    /// A cap on money.
    Envelope,
    /// What a model costs.
    Price,
    /// A policy file.
    Policy,
    /// A library step.
    Library,
    /// A version of a workflow; the name is `name@version`.
    Workflow,
    /// A lens.
    Lens,
    /// Members that share the steps of workflows.
    Team,
    /// A workflow that is started by itself.
    Schedule,
    /// A text that memory profiles load.
    Note,
    /// A memory profile: what a step is told of the past.
    Memory,
    /// A standing instruction of the platform or the owner.
    Instruction,
    /// Somebody elsewhere whom events are sent to.
    Webhook,
    /// A door through which somebody elsewhere starts runs.
    Hook,
    /// A token, or a session opened with one.
    Token,
    /// A switch for everything; its only name is `all`.
    Switch,
}

impl Kind {
    /// All kinds, in the order in which they are applied.
    pub const ALL: [Kind; 19] = [
        Kind::Price,
        Kind::Gateway,
        Kind::Agent,
        Kind::Role,
        Kind::Note,
        Kind::Memory,
        Kind::Instruction,
        Kind::Library,
        Kind::Lens,
        Kind::Team,
        Kind::Workflow,
        Kind::Deployment,
        Kind::Envelope,
        Kind::Policy,
        Kind::Schedule,
        Kind::Webhook,
        Kind::Hook,
        Kind::Token,
        Kind::Switch,
    ];

    /// The word in the store and on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Agent => "agent",
            Kind::Gateway => "gateway",
            Kind::Role => "role",
            Kind::Deployment => "deployment",
            Kind::Envelope => "envelope",
            Kind::Price => "price",
            Kind::Policy => "policy",
            Kind::Library => "library",
            Kind::Workflow => "workflow",
            Kind::Lens => "lens",
            Kind::Team => "team",
            Kind::Schedule => "schedule",
            Kind::Note => "note",
            Kind::Memory => "memory",
            Kind::Instruction => "instruction",
            Kind::Webhook => "webhook",
            Kind::Hook => "hook",
            Kind::Token => "token",
            Kind::Switch => "switch",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A row: what an operator has set up under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// Its name among those of its kind.
    pub name: String,
    /// What it says, an object.
    pub body: serde_json::Value,
}
