//! One step of a plan, the same for every format.
//!
//! The fields are in alphabetical order: canonical JSON then needs no sorting, and hashing a
//! large plan is a third faster.

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
    Moderation, OnFailure, OnParentFailure, ParallelFailure, RetryCause, Sought,
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
use sluice_govern::registry::LensKind;

/// A step as the engine executes it: every default is filled in.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Step {
    /// The agent that executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The approval that it needs before its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// Capabilities that its gateway must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The step is skipped unless this expression is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expr>,
    /// Working directory inside the run's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Ids of the steps that must settle first, explicit and implied, in document order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Lens edges that end at this node, in document order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// Additional environment variables of a shell step.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// The step runs once for each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Box<ForEach>>,
    /// Unique in the plan.
    pub id: String,
    /// Whether an attempt whose outcome is unknown may be repeated.
    pub idempotent: bool,
    /// Typed values from other steps.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub inputs: IndexMap<String, Input>,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The maximum cost of one dispatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// The limit on output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The memory profile it loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// How several values are merged into one input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Strategy>,
    /// The model to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which text is moderated.
    pub moderation: Moderation,
    /// What a final failure does to the run. Absent for lens nodes and steps of a team
    /// without a policy: the failure does not stop the run, and dependents follow their
    /// `on_parent_failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// What a failed parent does.
    pub on_parent_failure: OnParentFailure,
    /// The author's order, if it differs from the document order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<i64>,
    /// The outputs that it must produce.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outputs: IndexMap<String, FieldSchema>,
    /// What a failure does to steps in flight.
    pub parallel_failure_policy: ParallelFailure,
    /// The group in which it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How often the request is repeated with the violations found.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reask: u32,
    /// The model tier that it requires, in team runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_tier: Option<String>,
    /// When and how often a failed attempt is retried.
    pub retry: Retry,
    /// The role that executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Path>,
    /// Expressions over the outputs that must all be true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<Expr>,
    /// The time limit of one attempt, from dispatch.
    pub timeout_ms: u64,
    /// Tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What the step does.
    pub work: Work,
}

impl Step {
    /// The rules for the outputs of this step.
    pub(crate) fn output_rules(&self) -> OutputRules<'_> {
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
    /// It only requests an approval.
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
    /// A library step or lens that was not loaded when the plan was made. Such a plan can
    /// be shown, but not run.
    Unresolved {
        /// The kind of thing that is missing.
        what: Sought,
        /// The name as the document writes it.
        name: String,
    },
}

impl Work {
    /// The word for this kind of step.
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

/// Another workflow and its arguments.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct WorkflowWork {
    /// The arguments of the child run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub args: IndexMap<String, TemplateTree>,
    /// The arguments in a lens document, with the node's labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub label_args: IndexMap<String, LabelTree>,
    /// The workflow's name.
    pub name: String,
    /// The workflow's version; by default the newest at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A lens version and how a node uses it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct LensWork {
    /// Requirements for its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_contract: Option<InputContract>,
    /// The lens in the registry or in the setup.
    pub lens_id: String,
    /// The kind of output.
    pub lens_kind: LensKind,
    /// Requirements for its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// Values that take precedence over root inputs and edges.
    #[serde(default, deserialize_with = "wire::map", skip_serializing_if = "Map::is_empty")]
    pub param_overrides: Map<String, Value>,
    /// The instruction, with placeholders.
    pub template: LensTemplate,
    /// The pinned version.
    pub version_id: String,
}

/// A typed value from other steps.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Input {
    /// The value if the source is skipped or has no such field.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The sources; several values are merged.
    pub from: Vec<Path>,
    /// The type of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<FieldSchema>,
}

/// When and how often a failed attempt is retried.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Retry {
    /// The total number of attempts.
    pub attempts: u32,
    /// The first delay; it doubles with each attempt.
    pub backoff_ms: u64,
    /// The longest delay.
    pub max_backoff_ms: u64,
    /// The errors that are retried.
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

/// The approvers and rules of an approval.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Approval {
    /// Users or roles that may decide; empty means everyone with the permission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Whether an approval also covers retries.
    pub covers_retries: bool,
    /// How long the approval request stays open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Whether the initiator of the run is excluded from deciding.
    pub not_initiator: bool,
    /// The number of approvals required.
    pub quorum: u32,
    /// The text of the request.
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

/// The items of a step that runs once for each.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ForEach {
    /// The source of the items.
    pub items: Items,
    /// The maximum number of items.
    pub max_items: u32,
    /// The maximum number of instances in flight; by default the limit of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// The source of items.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", try_from = "read::ItemsJson")]
pub enum Items {
    /// A list in another step or an argument.
    From(Path),
    /// A literal list.
    List(Vec<Value>),
}

/// A lens edge, stored at the node where it ends.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Edge {
    /// When the edge is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<EdgeCondition>,
    /// Unique in the plan.
    pub id: String,
    /// How its value is merged with other edges of the same label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_strategy: Option<Strategy>,
    /// The node it starts at.
    pub source: String,
    /// The part of the source's output that it carries.
    pub source_output_key: String,
    /// The label that it binds, as written.
    pub target_param_label: String,
}

/// When an edge is active.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EdgeCondition {
    /// A test of the carried value.
    Test(Test),
    /// An expression over the run.
    Expression {
        /// The expression; `value` is the carried value.
        expr: Expr,
    },
}

impl EdgeCondition {
    /// Whether the edge is active for `value`. Only an expression can fail, when it runs
    /// out of fuel.
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
