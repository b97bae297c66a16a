//! The format of setups.

use super::choices::{ExecutionTarget, GatewayUrl};
use super::prompt::{InstructionDoc, Memory, NoteDoc};
use super::schedule::ScheduleRow;
use super::webhook::{HookDoc, Reference, WebhookDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::{Table, WholeNumber};
use crate::doc::lens::written::LensDoc;
use crate::doc::read::{DocumentReader, Read, Spelling, document};
use crate::doc::schema::Defs;
use crate::doc::team::TeamRow;
use crate::id::RunId;
use crate::money::Money;
use crate::node::Node;
use crate::span::Spanned;
use serde_json::{Value, json};
use sluice_govern::registry::{AgentStatus, Period, Phase, PolicySet, Posture, Scope, SessionMode};

/// A trust level.
type Level = WholeNumber<1, 10>;
/// A number of things, at least one.
type Count = WholeNumber<1, 1_000_000>;
/// Seconds, up to a year.
type Seconds = WholeNumber<0, 31_622_400>;

document! {
    /// The rows of the registry.
    pub(crate) struct SetupDoc {
        /// Agents, by name.
        optional "agents" agents: Table<AgentDoc>,
        /// Gateways, by name.
        optional "gateways" gateways: Table<GatewayDoc>,
        /// Bounds on the agents in a role, in every workflow.
        optional "roles" roles: Table<RoleDoc>,
        /// Deployments: the agents and the gateway of a workflow.
        optional "deployments" deployments: Table<DeploymentDoc>,
        /// Budgets.
        optional "budgets" budgets: Table<Budget>,
        /// Prices of models, by model.
        optional "prices" prices: Table<PriceDoc>,
        /// Policies by name: text, or the file it is in.
        optional "policies" policies: Table<Policy>,
        /// A directory whose `.cedar` files are the active policies.
        optional "policy_dir" policy_dir: String,
        /// Texts that memory profiles load, by name.
        optional "notes" notes: Table<NoteDoc>,
        /// Memory profiles, by name: the past outputs and notes that steps load.
        optional "memories" memories: Table<Memory>,
        /// Permanent instructions of the platform and the owner, by name.
        optional "instructions" instructions: Table<InstructionDoc>,
        /// Library steps by name: step fields, and `locked`, the list of fields that steps cannot loosen.
        optional "library" library: Library,
        /// Lenses by id: their versions, or the file they are in.
        optional "lenses" lenses: Table<LensOrFile>,
        /// Teams by name, written like the `team` of a document.
        optional "teams" teams: Table<TeamRow>,
        /// Files with workflows. Each becomes an immutable version.
        optional "workflows" workflows: Vec<Spanned<String>>,
        /// Schedules that start workflows, by name.
        optional "schedules" schedules: Table<ScheduleRow>,
        /// Outbound webhooks, by name.
        optional "webhooks" webhooks: Table<WebhookDoc>,
        /// Inbound webhooks, by name.
        optional "hooks" hooks: Table<HookDoc>,
    }
}

/// Library steps, which the registry's own reader reads later.
#[derive(Debug, Clone)]
pub(crate) struct Library;

impl Read for Library {
    fn read<'n>(_: &'n Node<'n>, _: &mut DocumentReader<'n, '_>) -> Option<Library> {
        Some(Library)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": "object" } })
    }
}

document! {
    /// An agent.
    pub(crate) struct AgentDoc {
        /// The name for people.
        optional "name" name: String,
        /// Whether it may execute steps; unchanged if not set.
        optional "status" status: AgentStatus,
        /// Its lifecycle phase (production).
        optional "phase" phase: Phase,
        /// Its trust level, 1 to 10 (5).
        optional "trust_level" trust_level: Level,
        /// The maximum number of its steps in flight, over all runs.
        optional "max_concurrent_steps" max_concurrent_steps: Count,
        /// The maximum number of dispatches in a sliding window.
        optional "rate" rate: RateDoc,
        /// Its budget for a calendar month, in cents.
        optional "budget_monthly_cents" budget_monthly_cents: Money,
        /// Capabilities that its gateway must have.
        optional "capabilities" capabilities: Vec<String>,
        /// Where its steps are executed.
        optional "execution_target" execution_target: ExecutionTarget,
        /// The gateway it is pinned to.
        optional "gateway" gateway: String,
        /// Its model, unless a step names one.
        optional "model" model: String,
        /// Its system prompt.
        optional "system_prompt" system_prompt: String,
        /// Tools it may use.
        optional "tools" tools: ToolsDoc,
        /// Its memory profile.
        optional "memory" memory: String,
        /// Providers in order of preference, for routing.
        optional "provider_preferences" provider_preferences: Vec<String>,
        /// The maximum cost of a dispatch without a price or a limit of the step, in
        /// cents.
        optional "max_cost_cents" max_cost_cents: Money,
        /// How long a step waits at a gate that delays it, in seconds (3600).
        optional "queue_timeout_s" queue_timeout_s: Seconds,
        /// Whether its steps in a run continue one provider session: `new` (the
        /// default) or `continue`.
        optional "session" session: SessionMode,
    }
}

document! {
    /// The maximum number of dispatches in a sliding window.
    pub(crate) struct RateDoc {
        /// The number of dispatches.
        required "limit" limit: Count,
        /// The length of the window in seconds.
        required "window_s" window_s: WholeNumber<1, 31_622_400>,
    }
}

document! {
    /// Tools an agent may use.
    pub(crate) struct ToolsDoc {
        /// Only these tools; by default any.
        optional "allow" allow: Vec<String>,
        /// Never these tools.
        optional "deny" deny: Vec<String>,
        /// Tools that change nothing.
        optional "read_only" read_only: Vec<String>,
    }
}

document! {
    /// A gateway, where steps are executed.
    pub(crate) struct GatewayDoc {
        /// The name for people.
        optional "name" name: String,
        /// Its provider: `mock`, `shell`, `openai`, …; by default that of the agent.
        optional "provider" provider: String,
        /// Its environment (local).
        optional "environment" environment: String,
        /// The URL of its bridge; without it, this process executes the steps.
        optional "url" url: GatewayUrl,
        /// The base URL of its provider's API, if this process calls it.
        optional "base_url" base_url: GatewayUrl,
        /// The key for its provider or its bridge: `secret:NAME`; `env:NAME` or
        /// `file:PATH` in the operator's own rows.
        optional "key" key: Reference,
        /// Tool servers that it may offer to models, by the operator's names.
        optional "tool_servers" tool_servers: Vec<String>,
        /// Whether its callbacks may omit the dispatch number (false).
        optional "legacy_callback" legacy_callback: bool,
        /// Its capabilities.
        optional "capabilities" capabilities: Vec<String>,
        /// Agents below this trust level may not use it (1).
        optional "min_trust_level" min_trust_level: Level,
        /// Cheaper gateways have lower ranks (0).
        optional "cost_rank" cost_rank: WholeNumber<0, 1_000_000>,
        /// Whether it is the organisation's default (false).
        optional "default" default: bool,
        /// Whether it is paused; unchanged if not set.
        optional "paused" paused: bool,
        /// The agents deployed on it; by default any.
        optional "agents" agents: Vec<String>,
    }
}

document! {
    /// Bounds on the agents in a role.
    pub(crate) struct RoleDoc {
        /// The maximum cost of its steps in one run, in cents.
        optional "max_spend_cents" max_spend_cents: Money,
        /// Environments in which its steps may run; by default any.
        optional "allowed_environments" allowed_environments: Vec<String>,
        /// Requirements for its inputs.
        optional "trusted_context" trusted_context: ContextDoc,
    }
}

document! {
    /// Requirements for the inputs of a role.
    pub(crate) struct ContextDoc {
        /// Source classes of acceptable inputs; by default any.
        optional "accepted_source_classes" accepted_source_classes: Vec<String>,
        /// The maximum age of an input, in seconds.
        optional "max_age_s" max_age_s: Seconds,
    }
}

document! {
    /// The agents, the gateway and the posture of a workflow's runs.
    pub(crate) struct DeploymentDoc {
        /// The workflow.
        required "workflow" workflow: String,
        /// Whether it is active (true). A workflow has one active deployment.
        optional "active" active: bool,
        /// The gateway of its runs.
        optional "gateway" gateway: String,
        /// The agent of each role.
        optional "roles" roles: Table<String>,
        /// The gateway an agent is pinned to in its runs.
        optional "agent_gateways" agent_gateways: Table<String>,
        /// The autonomy of its runs (bounded_autonomous).
        optional "posture" posture: Posture,
        /// The highest trust level that an agent has in its runs.
        optional "trust_ceiling" trust_ceiling: Level,
    }
}

document! {
    /// A budget.
    pub(crate) struct BudgetRowDoc {
        /// What it applies to.
        required "scope" scope: Scope,
        /// The gateway, agent, workflow or run; without it, all of them together.
        optional "of" of: Spanned<String>,
        /// When it starts again, in UTC.
        required "period" period: Period,
        /// The limit, in cents.
        required "amount_cents" amount_cents: Money,
        /// Whether it is enforced (true).
        optional "enabled" enabled: bool,
    }
}

/// A budget whose fields agree.
#[derive(Debug, Clone)]
pub(crate) struct Budget;

impl Read for Budget {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Budget> {
        let map = BudgetRowDoc::read(node, cx)?;
        match (map.scope, &map.of) {
            (Some(Scope::Global), Some(of)) => {
                let message = "a global budget applies to everything: `of` has no meaning";
                let problem = Problem::new(Code::ConflictingFields, of.span, message);
                cx.add(problem.with_hint("leave `of` out, or choose another scope"));
            }
            (Some(Scope::Run), Some(of)) if RunId::parse(&of.value).is_none() => {
                let shown = crate::visible::shorten(&of.value);
                let message = format!("`{shown}` is not a run id");
                let problem = Problem::new(Code::BadValue, of.span, message);
                cx.add(problem.with_hint("`sluice runs list` shows the ids"));
            }
            _ => {}
        }
        Some(Budget)
    }

    fn schema(defs: &mut Defs) -> Value {
        BudgetRowDoc::schema(defs)
    }
}

document! {
    /// The price of a model.
    pub(crate) struct PriceDoc {
        /// A million input tokens, in cents.
        required "input_cents_per_mtok" input_cents_per_mtok: Money,
        /// A million output tokens, including thinking, in cents.
        required "output_cents_per_mtok" output_cents_per_mtok: Money,
        /// A million cached input tokens, in cents; by default the price of input
        /// tokens.
        optional "cached_input_cents_per_mtok" cached_input_cents_per_mtok: Money,
        /// The limit on output tokens if neither step nor agent sets one.
        optional "max_output_tokens" max_output_tokens: WholeNumber<1, 100_000_000>,
    }
}

document! {
    /// Policies: their text, or a file with it.
    pub(crate) struct PolicyDoc {
        /// The file, relative to this file.
        optional "file" file: Spanned<String>,
        /// The text of the policies.
        optional "text" text: String,
        /// The policy set that they belong to (active).
        optional "set" set: PolicySet,
    }
}

/// Policies with either a text or a file.
#[derive(Debug, Clone)]
pub(crate) struct Policy;

impl Read for Policy {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Policy> {
        let map = PolicyDoc::read(node, cx)?;
        match (&map.file, &map.text) {
            (Some(file), Some(_)) => {
                let message = "`file` and `text` exclude each other";
                cx.add(Problem::new(Code::ConflictingFields, file.span, message));
            }
            (None, None) => {
                let message = "`file` or `text` is missing";
                cx.add(Problem::new(Code::MissingField, node.span, message));
            }
            _ => {}
        }
        Some(Policy)
    }

    fn schema(defs: &mut Defs) -> Value {
        PolicyDoc::schema(defs)
    }
}

document! {
    /// A lens in a file.
    pub(crate) struct LensFileDoc {
        /// The file, relative to this file.
        required "file" file: String,
    }
}

/// A lens, inline or in a file.
#[derive(Debug, Clone)]
pub(crate) struct LensOrFile;

impl Read for LensOrFile {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<LensOrFile> {
        if node.get("file").is_some() {
            LensFileDoc::read(node, cx)?;
            return Some(LensOrFile);
        }
        // Programs often write lenses, in their own spelling.
        let strict = std::mem::replace(&mut cx.spelling, Spelling::Either);
        let lens = LensDoc::read(node, cx);
        cx.spelling = strict;
        lens.map(|_| LensOrFile)
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [LensFileDoc::schema(defs), LensDoc::schema(defs)] })
    }
}
