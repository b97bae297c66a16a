//! The configuration of an operator: agents, gateways, roles, deployments, budgets,
//! prices, policies. Registry rows, each with a kind and a name, are parsed into one
//! [`Fabric`] that a turn uses.
//!
//! Rows are stored as JSON with the field names below. Amounts are in cents, with
//! fractions, as operators write them.

mod agent;
mod budget;
mod deployment;
mod fabric;
mod gateway;
mod instruction;
mod memory;
mod policy;
mod price;
mod role;
mod row;
mod schedule;
mod token;
mod webhook;
mod workflow;

pub use agent::{Agent, AgentStatus, ExecutionTarget, POC_MS, Phase, Rate, SessionMode, Tools};
pub use budget::{Budget, Period, Scope};
pub use deployment::{Deployment, Posture};
pub use fabric::{Fabric, Held};
pub use gateway::{ANYTHING, Gateway, Health, PROVIDERS};
pub use instruction::{Instruction, InstructionLayer, LensKind, MemoryUse};
pub use memory::{LastOutputs, MemoryProfile, Note};
pub use policy::{PolicyFile, PolicySet, policy_files};
pub use price::Price;
pub(crate) use role::meet;
pub use role::{NOTHING, Role, TrustedContext};
pub use row::{FieldForm, Form, Need, RowField, RowForm, RowType};
pub use schedule::{Missed, Overlap, Schedule};
pub use token::Token;
pub use webhook::{Hook, Webhook};
pub use workflow::WorkflowVersion;

use crate::choice::choices;

choices! {
    /// The kinds of registry rows, in the order in which they are applied.
    pub enum Kind, "a kind of registry row" {
        /// The price of a model.
        Price = "price",
        /// A gateway, where agents do their work.
        Gateway = "gateway",
        /// An agent, which does the work of steps.
        Agent = "agent",
        /// Bounds on a role, in every workflow.
        Role = "role",
        /// A text that memory profiles load.
        Note = "note",
        /// A memory profile: context from the past for a step.
        Memory = "memory",
        /// A standing instruction of the platform or the owner.
        Instruction = "instruction",
        /// A library step.
        Library = "library",
        /// A prompt with contracts, in versions.
        Lens = "lens",
        /// Members that share the steps of workflows.
        Team = "team",
        /// A version of a workflow; the name is `name@version`.
        Workflow = "workflow",
        /// The agents and gateway of a workflow.
        Deployment = "deployment",
        /// A budget; stored rows, policies and the audit call it envelope.
        Budget = "envelope",
        /// A policy file.
        Policy = "policy",
        /// A schedule that starts a workflow.
        Schedule = "schedule",
        /// An outbound webhook, which receives events.
        Webhook = "webhook",
        /// An inbound webhook, which starts runs.
        Hook = "hook",
        /// A token, or a session opened with one.
        Token = "token",
        /// The switch that stops all work; its only name is `all`.
        Switch = "switch",
    }
}

impl Kind {
    /// The word for people: the stored word of a budget is an old name.
    pub const fn noun(self) -> &'static str {
        match self {
            Kind::Budget => "budget",
            kind => kind.as_str(),
        }
    }

    /// The fields of its rows, if they are declared with `row!`.
    pub const fn form(self) -> Option<&'static RowForm> {
        Some(match self {
            Kind::Agent => &Agent::ROW,
            Kind::Gateway => &Gateway::ROW,
            Kind::Role => &Role::ROW,
            Kind::Deployment => &Deployment::ROW,
            Kind::Budget => &Budget::ROW,
            Kind::Price => &Price::ROW,
            Kind::Note => &Note::ROW,
            Kind::Memory => &MemoryProfile::ROW,
            Kind::Instruction => &Instruction::ROW,
            Kind::Schedule => &Schedule::ROW,
            Kind::Webhook => &Webhook::ROW,
            Kind::Hook => &Hook::ROW,
            Kind::Library
            | Kind::Lens
            | Kind::Team
            | Kind::Workflow
            | Kind::Policy
            | Kind::Token
            | Kind::Switch => return None,
        })
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
