//! The plan: a graph of steps, ready to run, which every format is resolved to.
//!
//! Everything after the front end (journal, engine, governance, events) knows only the plan. It
//! is plain data: defaults are filled in, references are resolved, and nothing points into the
//! document's text.

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

/// A resolved workflow.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "read::PlanJson")]
pub struct Plan {
    /// The family of documents that it came from: defaults and the final status differ.
    pub family: Family,
    /// The workflow's name.
    pub name: String,
    /// The author's version number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments of a run.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub args: IndexMap<String, ArgDecl>,
    /// The roles that steps name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub roles: IndexMap<String, Role>,
    /// Groups of steps for display; they do not affect the order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The model of steps without one, unless the caller sets another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// The budget of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// The time limit of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The maximum number of steps in flight.
    pub max_parallel: u32,
    /// When a ready step may start.
    pub scheduling: Scheduling,
    /// Whether a failed run is retried automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The outputs of the run; if empty, its final variables.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub outputs: IndexMap<String, Template>,
    /// The team that shares the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// The steps, in document order.
    pub steps: Vec<Step>,
    /// The dependencies of the steps. They follow from the steps, so they are not hashed.
    #[serde(skip)]
    pub graph: Graph,
}

impl Plan {
    /// SHA-256 of the canonical JSON, in hexadecimal.
    pub fn hash(&self) -> String {
        /// The typical size of a step as JSON.
        const STEP_BYTES: usize = 512;
        canonical::sha256_hex(self, self.steps.len() * STEP_BYTES)
    }

    /// The step called `id`.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.graph.position(id).map(|at| &self.steps[at])
    }
}

/// A text that is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plan cannot be read: {0}")]
pub struct PlanError(String);

/// An abstract actor that a deployment binds to an agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct Role {
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Skills an agent in this role must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_skills: Vec<String>,
    /// The maximum cost of its steps in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spend: Option<Money>,
    /// Environments in which its steps may run; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_environments: Vec<String>,
    /// Requirements for its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_context: Option<TrustedContext>,
}

/// Requirements for the inputs of a role.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct TrustedContext {
    /// Source classes of acceptable inputs; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_source_classes: Vec<String>,
    /// The maximum age of an input, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u64>,
}

/// A group of steps for display.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Phase {
    /// The id that steps refer to.
    pub id: String,
    /// The name for people.
    pub name: String,
}

/// How often a failed run is retried automatically.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Recovery {
    /// The maximum number of retries.
    pub max: u32,
    /// The delay after the failure.
    pub after_ms: u64,
}

/// The names of a team's policies.
pub(crate) const QUEUE_POLICY: &str = "queue_policy";
pub(crate) const APPROVAL_POLICY: &str = "approval_policy";
pub(crate) const RETRY_POLICY: &str = "retry_policy";

/// The members that share a run's steps, and their common policies.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Team {
    /// The members, in document order.
    pub members: Vec<Member>,
    /// What a failed branch does to other branches.
    pub failure_mode: policy::FailureMode,
    /// Its other policies by name, resolved when the plan was made. Plans of earlier
    /// versions contain the policies as written.
    #[serde(
        default,
        deserialize_with = "wire::values_by_name",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub policies: IndexMap<String, Value>,
}

impl Team {
    /// The order in which ready steps start.
    pub fn order(&self) -> QueueOrder {
        let order = self.policies.get(QUEUE_POLICY).and_then(|policy| policy.get("order"));
        order.and_then(Value::as_str).and_then(choice::find).unwrap_or(QueueOrder::Id)
    }

    /// Whether every step of a member needs an approval.
    pub(crate) fn asks_always(&self) -> bool {
        let policy = self.policies.get(APPROVAL_POLICY);
        policy.and_then(|policy| policy.get("required")).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The approval that a member's steps need.
    pub fn approval(&self) -> Approval {
        let policy = self.policies.get(APPROVAL_POLICY).cloned();
        policy.and_then(|policy| serde_json::from_value(policy).ok()).unwrap_or_default()
    }

    /// The retry policy of steps without one.
    pub fn retry(&self) -> Option<Retry> {
        serde_json::from_value(self.policies.get(RETRY_POLICY)?.clone()).ok()
    }
}

/// One member of a team.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Member {
    /// Unique in the team.
    pub id: String,
    /// The agent that executes the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its role in the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Members with a lower lane come first.
    pub lane: i64,
    /// Order within a lane.
    pub sort_order: i64,
    /// Whether it executes steps.
    pub is_active: bool,
    /// Tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_tools: Vec<String>,
    /// Tools it may never use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_tools: Vec<String>,
    /// Whether each of its nodes needs an approval.
    pub requires_approval: bool,
    /// The tier of work its model supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_level: Option<String>,
    /// A text added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_patch: Option<String>,
    /// The memory it loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_profile: Option<String>,
}
