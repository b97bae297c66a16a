//! The configuration of an operator: agents, gateways, roles, deployments, budgets,
//! prices, policies. Registry rows, each with a kind and a name, are parsed into one
//! [`Fabric`] that a turn uses.
//!
//! Rows are stored as JSON with the field names below. Amounts are in cents, with
//! fractions, as operators write them.

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

/// The kinds of registry rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An agent, which does the work of steps.
    Agent,
    /// A gateway, where agents do their work.
    Gateway,
    /// Bounds on a role, in every workflow.
    Role,
    /// The agents and gateway of a workflow.
    Deployment,
    /// A budget.
    Envelope,
    /// The price of a model.
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
    /// A schedule that starts a workflow.
    Schedule,
    /// A text that memory profiles load.
    Note,
    /// A memory profile: context from the past for a step.
    Memory,
    /// A standing instruction of the platform or the owner.
    Instruction,
    /// An outbound webhook, which receives events.
    Webhook,
    /// An inbound webhook, which starts runs.
    Hook,
    /// A token, or a session opened with one.
    Token,
    /// The switch that stops all work; its only name is `all`.
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

    /// The keyword in the store and on the wire.
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

    /// Parses the keyword.
    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A registry row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Kind of the row.
    pub kind: Kind,
    /// Name, unique within its kind.
    pub name: String,
    /// Content, a JSON object.
    pub body: serde_json::Value,
}
