//! What every format becomes: a graph of steps, ready to run.
//!
//! Everything after the front end (journal, engine, governance, events) knows
//! only the plan. It is plain data: defaults are filled in, references are
//! resolved, nothing points back into the document's text.

pub mod graph;
pub mod policy;
mod read;
pub mod step;

use crate::args::ArgDecl;
use crate::canonical;
use crate::choice;
use crate::money::Money;
use crate::template::Template;
use crate::wire;
use graph::Graph;
use indexmap::IndexMap;
use policy::{Family, QueueOrder, Scheduling};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use step::{Approval, Retry, Step};

/// A workflow, resolved.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "read::Written")]
pub struct Plan {
    /// Which family of documents it came from: defaults and final status differ.
    pub family: Family,
    /// The workflow's name.
    pub name: String,
    /// The author's version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a run may be given.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub args: IndexMap<String, ArgDecl>,
    /// The roles that steps name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub roles: IndexMap<String, Role>,
    /// Groups of steps, for people; they order nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The model of steps that name none, unless the caller names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Most money the whole run may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Most time the whole run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Most steps in flight at once.
    pub max_parallel: u32,
    /// When a ready step may start.
    pub scheduling: Scheduling,
    /// Whether a failed run is taken up again by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The run's result; when empty, its final variables.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub outputs: IndexMap<String, Template>,
    /// Who shares the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// The steps, in document order.
    pub steps: Vec<Step>,
    /// How they depend on each other. Follows from the steps, so it is not hashed.
    #[serde(skip)]
    pub graph: Graph,
}

impl Plan {
    /// SHA-256 of the canonical JSON, in hexadecimal.
    pub fn hash(&self) -> String {
        /// What a step of a plan usually takes as JSON.
        const STEP_BYTES: usize = 512;
        canonical::sha256_hex(self, self.steps.len() * STEP_BYTES)
    }

    /// The step called `id`.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.graph.position(id).map(|at| &self.steps[at])
    }
}

/// A text that is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plan cannot be read: {0}")]
pub struct PlanError(String);

/// An abstract actor that a deployment binds to an agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct Role {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Skills an agent in this role must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_skills: Vec<String>,
    /// Most money its steps may cost in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spend: Option<Money>,
    /// Environments its steps may run in; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_environments: Vec<String>,
    /// What its inputs must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_context: Option<TrustedContext>,
}

/// What inputs a role accepts.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct TrustedContext {
    /// Source classes of acceptable inputs; none named means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_source_classes: Vec<String>,
    /// Oldest acceptable input, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u64>,
}

/// A group of steps, for people.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Phase {
    /// What steps name.
    pub id: String,
    /// What people read.
    pub name: String,
}

/// How often a failed run is reopened by itself.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Recovery {
    /// Most times.
    pub max: u32,
    /// How long after the failure.
    pub after_ms: u64,
}

/// The names of a team's policies.
pub(crate) const QUEUE_POLICY: &str = "queue_policy";
pub(crate) const APPROVAL_POLICY: &str = "approval_policy";
pub(crate) const RETRY_POLICY: &str = "retry_policy";

/// The members that share a run's steps, and their common policies.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Team {
    /// In document order.
    pub members: Vec<Member>,
    /// What a failed branch does to the others.
    pub failure_mode: policy::FailureMode,
    /// Its other policies by name, as they were settled when the plan was made. Plans
    /// of earlier versions hold whatever was written.
    #[serde(
        default,
        deserialize_with = "wire::values_by_name",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub policies: IndexMap<String, Value>,
}

impl Team {
    /// In which order ready steps are taken.
    pub fn order(&self) -> QueueOrder {
        let order = self.policies.get(QUEUE_POLICY).and_then(|policy| policy.get("order"));
        order.and_then(Value::as_str).and_then(choice::find).unwrap_or(QueueOrder::Id)
    }

    /// Whether people are asked before every step of a member.
    pub fn asks_always(&self) -> bool {
        let policy = self.policies.get(APPROVAL_POLICY);
        policy.and_then(|policy| policy.get("required")).and_then(Value::as_bool).unwrap_or(false)
    }

    /// How people are asked before a member begins.
    pub fn approval(&self) -> Approval {
        let policy = self.policies.get(APPROVAL_POLICY).cloned();
        policy.and_then(|policy| serde_json::from_value(policy).ok()).unwrap_or_default()
    }

    /// When steps that say nothing of it are tried again.
    pub fn retry(&self) -> Option<Retry> {
        serde_json::from_value(self.policies.get(RETRY_POLICY)?.clone()).ok()
    }
}

/// One member of a team.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Member {
    /// Unique in the team.
    pub id: String,
    /// The agent that does the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its role in the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Lower lanes are asked first.
    pub lane: i64,
    /// Order within a lane.
    pub sort_order: i64,
    /// Whether it takes work at all.
    pub is_active: bool,
    /// Tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_tools: Vec<String>,
    /// Tools it may never use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_tools: Vec<String>,
    /// Whether an approval stands before each of its nodes.
    pub requires_approval: bool,
    /// The tier of work its model supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_level: Option<String>,
    /// Added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_patch: Option<String>,
    /// The memory it loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_profile: Option<String>,
}
