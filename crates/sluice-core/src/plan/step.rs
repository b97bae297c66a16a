//! One step of a plan, whichever format it came from.
//!
//! Fields stand in alphabetical order: canonical JSON then needs no sorting,
//! and hashing a large plan is a third faster.

mod read;

use crate::contract::{InputContract, OutputContract};
use crate::edge::test::Test;
use crate::expr::{EvalError, Expr};
use crate::merge::Strategy;
use crate::money::Money;
use crate::outputs::complete::OutputRules;
use crate::outputs::schema::FieldSchema;
use crate::path::Path;
use crate::plan::policy::{
    LensKind, Moderation, OnFailure, OnParentFailure, ParallelFailure, RetryCause, Sought,
};
use crate::scope::Scope;
use crate::scope::with::With;
use crate::template::Template;
use crate::template::lens::LensTemplate;
use crate::template::tree::{LabelTree, TemplateTree};
use crate::value::Membership;
use crate::wire;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Step {
    /// The agent that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A person decides before the work is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// What its gateway must offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The step is skipped unless this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expr>,
    /// Working directory inside the run's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Ids of the steps that must settle first, written and implied, in document order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Lens edges that end here, in the document's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// Extra variables for shell steps.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// The step is done once for each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Box<ForEach>>,
    /// Unique in the plan.
    pub id: String,
    /// Whether an attempt whose outcome is unknown may be repeated.
    pub idempotent: bool,
    /// Typed values from other steps.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub inputs: IndexMap<String, Input>,
    /// What people read instead of the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Most money one dispatch may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The memory profile it loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// How several values meet in one input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Strategy>,
    /// The model to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is moderated.
    pub moderation: Moderation,
    /// What a final failure does to the run. Absent for lens nodes and steps of a
    /// team that name none: the failure stays where it is, and dependents decide by
    /// their `on_parent_failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// What a failed parent does.
    pub on_parent_failure: OnParentFailure,
    /// The author's order, where it differs from the document's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<i64>,
    /// What it must answer.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outputs: IndexMap<String, FieldSchema>,
    /// What a failure does to steps in flight.
    pub parallel_failure_policy: ParallelFailure,
    /// The group it is shown in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Times the step is asked again with the violations found.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reask: u32,
    /// The tier of model it needs, in team runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_tier: Option<String>,
    /// When and how often an attempt is repeated.
    pub retry: Retry,
    /// The role it is done in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is piped in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Path>,
    /// What must hold of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<Expr>,
    /// Time for one attempt, from dispatch.
    pub timeout_ms: u64,
    /// Tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What the step does.
    pub work: Work,
}

impl Step {
    /// The rules that the outputs of this step must keep.
    pub fn output_rules(&self) -> OutputRules<'_> {
        OutputRules { outputs: &self.outputs, success_criteria: &self.success_criteria }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Nothing but ask a person.
    Approval,
    /// An instruction for an agent or a shell.
    Command {
        /// The instruction.
        command: Template,
    },
    /// Another workflow, as a child run.
    Workflow(Box<WorkflowWork>),
    /// A lens version applied to the node's inputs.
    Lens(Box<LensWork>),
    /// A library step or lens that was not at hand when the plan was made. Such
    /// a plan can be shown, not run.
    Unresolved {
        /// What it was looked for as.
        what: Sought,
        /// The name it was looked for by.
        name: String,
    },
}

impl Work {
    /// The word for people: what kind of step this is.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Approval => "approval",
            Work::Command { .. } => "command",
            Work::Workflow(_) => "workflow",
            Work::Lens(_) => "lens",
            Work::Unresolved { .. } => "unresolved",
        }
    }
}

/// Another workflow and what it is given.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct WorkflowWork {
    /// What it is given.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub args: IndexMap<String, TemplateTree>,
    /// What a node of a lens document gives it, with the node's labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub label_args: IndexMap<String, LabelTree>,
    /// Its name.
    pub name: String,
    /// Its version; the newest at start when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A lens version and how a node uses it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct LensWork {
    /// What its inputs must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_contract: Option<InputContract>,
    /// The lens.
    pub lens_id: String,
    /// What it makes or does.
    pub lens_kind: LensKind,
    /// What its output must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// Values that win over root inputs and edges.
    #[serde(default, deserialize_with = "wire::map", skip_serializing_if = "Map::is_empty")]
    pub param_overrides: Map<String, Value>,
    /// The instruction, with placeholders.
    pub template: LensTemplate,
    /// The version, pinned.
    pub version_id: String,
}

/// A typed value from other steps.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Input {
    /// Used when the source is skipped or has no such field.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Where it comes from; several sources are merged.
    pub from: Vec<Path>,
    /// What it must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<FieldSchema>,
}

/// When and how often an attempt is repeated.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// First delay; it doubles.
    pub backoff_ms: u64,
    /// Longest delay.
    pub max_backoff_ms: u64,
    /// What is worth another try.
    pub retry_on: Vec<RetryCause>,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            attempts: 1,
            backoff_ms: 500,
            max_backoff_ms: 8000,
            retry_on: vec![RetryCause::Timeout, RetryCause::ProviderError, RetryCause::RateLimit],
        }
    }
}

/// Who decides, and how.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Approval {
    /// Users or roles who may; none named means whoever has the permission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Whether the grant holds for retries too.
    pub covers_retries: bool,
    /// How long the question stays open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// The one who started the run may not.
    pub not_initiator: bool,
    /// How many must agree.
    pub quorum: u32,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Template>,
}

impl Default for Approval {
    fn default() -> Approval {
        Approval {
            approvers: Vec::new(),
            covers_retries: false,
            expires_in_ms: None,
            not_initiator: false,
            quorum: 1,
            summary: None,
        }
    }
}

/// The items a step is done for.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ForEach {
    /// Where they come from.
    pub items: Items,
    /// Most items.
    pub max_items: u32,
    /// Most instances in flight; the run's own bound when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// Where items come from.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", try_from = "read::Written")]
pub enum Items {
    /// A list that another step or an argument holds.
    From(Path),
    /// Written in the document.
    List(Vec<Value>),
}

/// A lens edge, kept at the node it ends at.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Edge {
    /// When it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<EdgeCondition>,
    /// Unique in the plan.
    pub id: String,
    /// How it meets other edges of the same label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_strategy: Option<Strategy>,
    /// The node it starts at.
    pub source: String,
    /// Which part of the source's output it carries.
    pub source_output_key: String,
    /// The label it binds, as written.
    pub target_param_label: String,
}

/// When an edge counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EdgeCondition {
    /// A test of the value the edge carries.
    Test(Test),
    /// An expression over the run.
    Expression {
        /// The expression; `value` is what the edge carries.
        expr: Expr,
    },
}

impl EdgeCondition {
    /// Whether the edge counts, carrying `value`. Only an expression can fail,
    /// by running out of fuel.
    pub fn holds(&self, value: &Value, scope: &dyn Scope) -> Result<bool, EvalError> {
        match self {
            EdgeCondition::Test(test) => Ok(test.holds(value)),
            EdgeCondition::Expression { expr } => {
                expr.holds(&With::new(scope, "value", value), Membership::Tolerant)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::names::Names;
    use serde_json::json;

    #[test]
    fn a_condition_tests_what_its_edge_carries() {
        let scope = Names::new().with_step("judge", json!({"score": 8}), None);
        let test = EdgeCondition::Test(Test::Equals(json!("5")));
        assert_eq!(test.holds(&json!(5), &scope), Ok(true));
        assert_eq!(test.holds(&json!(6), &scope), Ok(false));
        let expr = Expr::parse("value == 'go' and judge.score > 7").unwrap();
        let expression = EdgeCondition::Expression { expr };
        assert_eq!(expression.holds(&json!("go"), &scope), Ok(true));
        assert_eq!(expression.holds(&json!("stop"), &scope), Ok(false));
        assert_eq!(expression.holds(&json!("go"), &Names::new()), Ok(false));
    }
}
