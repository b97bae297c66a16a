//! The format of `.lobsterX` documents.

use crate::args::ArgDecl;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::fields::{ArgDoc, SchemaDoc, report};
use crate::doc::leaf::{Later, Millis, Table, WholeNumber};
use crate::doc::read::{DocumentReader, Read, document};
use crate::doc::schema::Defs;
use crate::doc::shared::{BudgetDoc, RecoveryDoc, RetryDoc, RoleDoc};
use crate::doc::team::TeamField;
use crate::expr::Expr;
use crate::limits::{MAX_ITEMS_MAX, MAX_PARALLEL_MAX, REASK_MAX};
use crate::merge::Strategy;
use crate::money::Money;
use crate::node::{Kind, Node};
use crate::plan::policy::{Moderation, OnFailure, OnParentFailure, ParallelFailure, Scheduling};
use crate::span::Spanned;
use crate::template::Template;
use crate::template::tree::TemplateTree;
use serde_json::{Value, json};

/// Largest version number and token count: whole numbers that every JSON reader keeps exact.
const EXACT_MAX: u64 = (1 << 53) - 1;

pub(crate) type MaxParallel = WholeNumber<1, { MAX_PARALLEL_MAX as u64 }>;
pub(crate) type MaxItems = WholeNumber<1, { MAX_ITEMS_MAX as u64 }>;
pub(crate) type VersionNumber = WholeNumber<0, EXACT_MAX>;
pub(crate) type Tokens = WholeNumber<1, EXACT_MAX>;

document! {
    /// A workflow: steps for agents, tools and people, with their dependencies.
    pub(crate) struct Document {
        /// The workflow's name, in kebab-case.
        required "name" name: Spanned<String>,
        /// The author's version number.
        optional "version" version: VersionNumber,
        /// A description for people.
        optional "description" description: String,
        /// The arguments of a run.
        optional "args" args: Table<ArgDoc>,
        /// Abstract actors that a deployment binds to agents.
        optional "roles" roles: Table<RoleDoc>,
        /// Groups of steps for display; they do not affect the order.
        optional "phases" phases: Vec<PhaseDoc>,
        /// Fields that every step has unless it, or its library step, sets them.
        optional "defaults" defaults: Later<Defaults>,
        /// The budget of the whole run.
        optional "budget" budget: BudgetDoc,
        /// The time limit of the whole run.
        optional "timeout" timeout: Millis,
        /// The maximum number of steps in flight (64).
        optional "max_parallel" max_parallel: MaxParallel,
        /// When a ready step may start: `eager` (default) or `waves`.
        optional "scheduling" scheduling: Scheduling,
        /// How often a failed run is retried automatically.
        optional "recovery" recovery: RecoveryDoc,
        /// The run's result, by name; by default its final variables.
        optional "outputs" outputs: Table<Spanned<Template>>,
        /// The members that share the steps.
        optional "team" team: TeamField,
        /// The steps, at least one.
        required "steps" steps: Later<Vec<StepDoc>>,
    }
}

document! {
    /// A step of the workflow.
    pub(crate) struct StepDoc {
        /// Unique name in snake_case.
        required "id" id: Spanned<String>,
        /// The role that executes it; a deployment binds the role to an agent.
        optional "role" role: Spanned<String>,
        /// The agent that executes it.
        optional "agent" agent: String,
        /// The instruction, with `${…}` references.
        optional "command" command: Spanned<Template>,
        /// Ids of steps that must settle first.
        optional "depends_on" depends_on: Vec<Spanned<String>>,
        /// The standard input: `$id.stdout`, `$id.json`, `$id.outputs.path` or
        /// `$id.approved`.
        optional "stdin" stdin: Spanned<String>,
        /// The step is skipped unless this expression holds.
        optional "condition" condition: Spanned<Expr>,
        /// Typed values from other steps.
        optional "inputs" inputs: Table<InputDoc>,
        /// The outputs that the step must produce, by name.
        optional "outputs" outputs: Table<SchemaDoc>,
        /// Expressions over `outputs` that must all hold.
        optional "success_criteria" success_criteria: Vec<Spanned<Expr>>,
        /// The time limit of one attempt, from dispatch (600 s).
        optional "timeout" timeout: Millis,
        /// What a final failure does: `halt` (default), `skip`, or a retrying policy.
        optional "on_failure" on_failure: Spanned<OnFailure>,
        /// When and how often a failed attempt is retried.
        optional "retry" retry: Spanned<RetryDoc>,
        /// What a failure does to steps in flight: `wait_all` (default) or `fail_fast`.
        optional "parallel_failure_policy" parallel_failure_policy: ParallelFailure,
        /// `required`, or a map with the approvers and rules.
        optional "approval" approval: ApprovalDoc,
        /// Another workflow to run as this step: `name` or `name@version`.
        optional "workflow_ref" workflow_ref: Spanned<String>,
        /// The arguments of the other workflow.
        optional "args" args: Spanned<Table<TemplateTree>>,
        /// A library step whose fields this step copies.
        optional "library_step" library_step: Spanned<String>,
        /// A list; the step runs once for each item.
        optional "for_each" for_each: Spanned<ForEachDoc>,
        /// The maximum number of instances of a `for_each` step in flight.
        optional "max_parallel" max_parallel: Spanned<MaxParallel>,
        /// The maximum number of items of a `for_each` step (1000).
        optional "max_items" max_items: Spanned<MaxItems>,
        /// A declared phase.
        optional "phase" phase: Spanned<String>,
        /// The model to use.
        optional "model" model: String,
        /// Tools it may use.
        optional "tools" tools: Vec<String>,
        /// Capabilities that its gateway must have.
        optional "capabilities" capabilities: Vec<String>,
        /// The limit on output tokens.
        optional "max_output_tokens" max_output_tokens: Tokens,
        /// The maximum cost of one dispatch, in cents.
        optional "max_cost_cents" max_cost_cents: Money,
        /// What is moderated: `off` (default), `input`, `output` or `both`.
        optional "moderation" moderation: Moderation,
        /// What a failed parent does: `propagate` (default), `skip` or `substitute_default`.
        optional "on_parent_failure" on_parent_failure: OnParentFailure,
        /// How several values are merged into one input.
        optional "merge" merge: Strategy,
        /// Repeats the request if the outputs are not valid.
        optional "repair" repair: RepairDoc,
        /// Working directory of a shell step, inside the run's workspace.
        optional "cwd" cwd: Spanned<String>,
        /// Additional environment variables of a shell step.
        optional "env" env: Table<EnvDoc>,
        /// The memory profile it loads.
        optional "memory" memory: String,
        /// Whether an attempt whose outcome is unknown may be repeated (true).
        optional "idempotent" idempotent: bool,
    }
}

/// Step fields without those that cannot be defaults; read as part of every step.
#[derive(Debug, Clone)]
pub(crate) struct Defaults;

impl Read for Defaults {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Defaults> {
        cx.map(node).map(|_| Defaults)
    }

    fn schema(defs: &mut Defs) -> Value {
        StepDoc::schema(defs);
        defs.define("Defaults", |defs| {
            let mut schema = defs.found("StepDoc");
            if let Some(schema) = schema.as_object_mut() {
                schema.shift_remove("allOf");
                schema.insert("description".to_owned(), json!("Fields that steps share."));
                if let Some(properties) = schema["properties"].as_object_mut() {
                    properties.retain(|key, _| !super::NO_DEFAULTS.contains(&key.as_str()));
                }
            }
            schema
        })
    }
}

document! {
    /// Repeats the request if the outputs are not valid.
    pub(crate) struct RepairDoc {
        /// How often, with the violations in the message.
        required "reask" reask: WholeNumber<0, { REASK_MAX as u64 }>,
    }
}

document! {
    /// The approvers and rules of an approval.
    pub(crate) struct ApprovalMap {
        /// Whether an approval is required (true).
        optional "required" required: bool,
        /// Users or roles that may decide.
        optional "approvers" approvers: Vec<String>,
        /// The number of approvals required (1).
        optional "quorum" quorum: WholeNumber<1, 100>,
        /// Whether the initiator of the run is excluded from deciding.
        optional "not_initiator" not_initiator: bool,
        /// How long the approval request stays open.
        optional "expires_in" expires_in: Millis,
        /// The text of the request, with `${…}` references.
        optional "summary" summary: Spanned<Template>,
        /// Whether an approval also covers retries.
        optional "covers_retries" covers_retries: bool,
    }
}

/// `approval`: the word `required` or a map.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalDoc(pub(crate) ApprovalMap);

impl Read for ApprovalDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ApprovalDoc> {
        match &node.kind {
            Kind::Text(word) if word == "required" => Some(ApprovalDoc(ApprovalMap::default())),
            Kind::Map(_) => ApprovalMap::read(node, cx).map(ApprovalDoc),
            _ => {
                let hint = match node.kind {
                    Kind::Bool(false) => "leave `approval` out",
                    _ => "write `approval: required`",
                };
                let message = format!("expected `required` or a map, found {}", node.describe());
                cx.add(Problem::new(Code::WrongType, node.span, message).with_hint(hint));
                None
            }
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [{ "const": "required" }, ApprovalMap::schema(defs)] })
    }
}

/// A phase: `{id, name}` or just a name.
#[derive(Debug, Clone)]
pub(crate) struct PhaseDoc {
    pub(crate) id: Spanned<String>,
    pub(crate) name: String,
}

document! {
    /// A group of steps for display.
    pub(crate) struct PhaseMap {
        /// The id that steps refer to.
        required "id" id: Spanned<String>,
        /// The name for people.
        optional "name" name: String,
    }
}

impl Read for PhaseDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<PhaseDoc> {
        let (id, name) = match &node.kind {
            Kind::Map(_) => {
                let map = PhaseMap::read(node, cx)?;
                (map.id?, map.name)
            }
            _ => (Spanned::<String>::read(node, cx)?, None),
        };
        let name = name.unwrap_or_else(|| id.value.clone());
        Some(PhaseDoc { id, name })
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [{ "type": "string" }, PhaseMap::schema(defs)] })
    }
}

document! {
    /// A typed value from other steps.
    pub(crate) struct InputMap {
        /// `id.field`, or a list of them whose values are merged.
        required "from" from: Sources,
        /// The type of the value.
        optional "type" kind: crate::outputs::schema::FieldType,
        /// The value if the source is skipped or has no such field.
        optional "default" default: Value,
    }
}

/// An input: `id.field`, or a map with a type and a default.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputDoc(pub(crate) InputMap);

impl Read for InputDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<InputDoc> {
        match &node.kind {
            Kind::Map(_) => {
                let map = InputMap::read(node, cx)?;
                let value =
                    ArgDecl { kind: map.kind, default: map.default.clone(), ..ArgDecl::default() };
                report(value.contradictions(), node, cx);
                Some(InputDoc(map))
            }
            _ => {
                let from = Some(Sources::read(node, cx)?);
                Some(InputDoc(InputMap { from, ..InputMap::default() }))
            }
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [{ "type": "string" }, InputMap::schema(defs)] })
    }
}

/// One source or several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(pub(crate) Vec<Spanned<String>>);

impl Read for Sources {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Sources> {
        match &node.kind {
            Kind::List(items) if items.is_empty() => {
                let message = "an input needs at least one source";
                cx.add(Problem::new(Code::BadValue, node.span, message));
                None
            }
            Kind::List(_) => Vec::read(node, cx).map(Sources),
            _ => Spanned::read(node, cx).map(|one| Sources(vec![one])),
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 }
        ] })
    }
}

document! {
    /// The items of a step, with their bounds.
    pub(crate) struct ForEachMap {
        /// A reference to a list, or the list itself.
        required "items" items: ItemsDoc,
        /// The maximum number of instances in flight.
        optional "max_parallel" max_parallel: MaxParallel,
        /// The maximum number of items (1000).
        optional "max_items" max_items: MaxItems,
    }
}

/// `for_each`: a reference, a list, or a map of either with bounds.
#[derive(Debug, Clone)]
pub(crate) struct ForEachDoc(pub(crate) ForEachMap);

impl Read for ForEachDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ForEachDoc> {
        match &node.kind {
            Kind::Map(_) => ForEachMap::read(node, cx).map(ForEachDoc),
            _ => {
                let items = Some(ItemsDoc::read(node, cx)?);
                Some(ForEachDoc(ForEachMap { items, ..ForEachMap::default() }))
            }
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [ItemsDoc::schema(defs), ForEachMap::schema(defs)] })
    }
}

/// A reference to a list, or the list itself.
#[derive(Debug, Clone)]
pub(crate) enum ItemsDoc {
    From(Spanned<String>),
    List(Vec<Value>),
}

impl Read for ItemsDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ItemsDoc> {
        match &node.kind {
            Kind::Text(text) => Some(ItemsDoc::From(Spanned::new(
                text.clone().into_owned(),
                cx.reported_span(node.span),
            ))),
            Kind::List(items) => Some(ItemsDoc::List(items.iter().map(Node::to_value).collect())),
            _ => {
                cx.wrong_type(node, "a list, or a reference such as `$id.outputs.list`");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": ["string", "array"] })
    }
}

/// The value of an environment variable: a scalar, as text.
#[derive(Debug, Clone)]
pub(crate) struct EnvDoc(pub(crate) String);

impl Read for EnvDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<EnvDoc> {
        match &node.kind {
            Kind::Text(text) => Some(EnvDoc(text.clone().into_owned())),
            Kind::Number(_) | Kind::Bool(_) => {
                // As written, so that `1.10` stays `1.10`. The span of an alias
                // has no number, and the text of a library is not loaded.
                let raw = cx.written(node.span).filter(|raw| !raw.starts_with('*'));
                match (raw, node.to_value()) {
                    (Some(raw), _) => Some(EnvDoc(raw.to_owned())),
                    (None, Value::Number(number)) if number.is_f64() => {
                        cx.wrong_type(node, "a string");
                        None
                    }
                    (None, value) => Some(EnvDoc(value.to_string())),
                }
            }
            _ => {
                cx.wrong_type(node, "a string");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
}
