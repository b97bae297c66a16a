//! What a setup may say.

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
/// How many of something, at least one.
type Count = WholeNumber<1, 1_000_000>;
/// Seconds, up to a year.
type Seconds = WholeNumber<0, 31_622_400>;

document! {
    /// What rows the registry of a data directory has.
    pub(crate) struct SetupDoc {
        /// Who does work, by name.
        optional "agents" agents: Table<AgentDoc>,
        /// Where work is done, by name.
        optional "gateways" gateways: Table<GatewayDoc>,
        /// Bounds on whoever acts in a role, in every workflow.
        optional "roles" roles: Table<RoleDoc>,
        /// Who and where, for one workflow each.
        optional "deployments" deployments: Table<DeploymentDoc>,
        /// Caps on money.
        optional "budgets" budgets: Table<Budget>,
        /// What models cost, by model.
        optional "prices" prices: Table<PriceDoc>,
        /// Policies by name: text, or the file it is in.
        optional "policies" policies: Table<Policy>,
        /// A directory whose `.cedar` files are the active policies.
        optional "policy_dir" policy_dir: String,
        /// Texts that memory profiles load, by name.
        optional "notes" notes: Table<NoteDoc>,
        /// What steps are told of the past, by name of the profile.
        optional "memories" memories: Table<Memory>,
        /// Standing instructions of the platform and the owner, by name.
        optional "instructions" instructions: Table<InstructionDoc>,
        /// Library steps by name: step fields, and `locked`, the list of fields that steps cannot loosen.
        optional "library" library: Library,
        /// Lenses by id: their versions, or the file they are in.
        optional "lenses" lenses: Table<LensOrFile>,
        /// Teams by name: what a document may write as its `team`.
        optional "teams" teams: Table<TeamRow>,
        /// Files with workflows. Each becomes a version that never changes.
        optional "workflows" workflows: Vec<Spanned<String>>,
        /// Workflows that are started by themselves, by name.
        optional "schedules" schedules: Table<ScheduleRow>,
        /// Whom events are sent to, by name.
        optional "webhooks" webhooks: Table<WebhookDoc>,
        /// Doors through which somebody elsewhere starts runs, by name.
        optional "hooks" hooks: Table<HookDoc>,
    }
}

/// Library steps. They are read with the registry's own reader, later.
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
    /// Who does work.
    pub(crate) struct AgentDoc {
        /// What people read.
        optional "name" name: String,
        /// Whether it may work; left as it is unless written.
        optional "status" status: AgentStatus,
        /// How far it has come (production).
        optional "phase" phase: Phase,
        /// How far it is trusted, 1 to 10 (5).
        optional "trust_level" trust_level: Level,
        /// Most steps it does at once, over all runs.
        optional "max_concurrent_steps" max_concurrent_steps: Count,
        /// Most dispatches in a sliding window.
        optional "rate" rate: RateDoc,
        /// Most money in a calendar month, in cents.
        optional "budget_monthly_cents" budget_monthly_cents: Money,
        /// What its gateway must offer.
        optional "capabilities" capabilities: Vec<String>,
        /// Where it is executed.
        optional "execution_target" execution_target: ExecutionTarget,
        /// The gateway it is pinned to.
        optional "gateway" gateway: String,
        /// The model it uses unless a step names one.
        optional "model" model: String,
        /// Standing instructions.
        optional "system_prompt" system_prompt: String,
        /// Tools it may use.
        optional "tools" tools: ToolsDoc,
        /// Its memory profile.
        optional "memory" memory: String,
        /// Providers in order of preference, for routing.
        optional "provider_preferences" provider_preferences: Vec<String>,
        /// Most a dispatch may cost where no price and no step says, in cents.
        optional "max_cost_cents" max_cost_cents: Money,
        /// How long a step waits when a gate says: not now; in seconds (3600).
        optional "queue_timeout_s" queue_timeout_s: Seconds,
        /// Whether its steps in a run continue one session of the provider: `new` (the
        /// default) or `continue`.
        optional "session" session: SessionMode,
    }
}

document! {
    /// Most dispatches in a sliding window.
    pub(crate) struct RateDoc {
        /// How many.
        required "limit" limit: Count,
        /// In how many seconds.
        required "window_s" window_s: WholeNumber<1, 31_622_400>,
    }
}

document! {
    /// Tools an agent may use.
    pub(crate) struct ToolsDoc {
        /// Only these; none named means any.
        optional "allow" allow: Vec<String>,
        /// Never these.
        optional "deny" deny: Vec<String>,
        /// Those that change nothing.
        optional "read_only" read_only: Vec<String>,
    }
}

document! {
    /// Where work is done.
    pub(crate) struct GatewayDoc {
        /// What people read.
        optional "name" name: String,
        /// What it speaks to: `mock`, `shell`, `openai`, …; by default whatever the agent is.
        optional "provider" provider: String,
        /// The environment it stands in (local).
        optional "environment" environment: String,
        /// Where it is; without it, in this process.
        optional "url" url: GatewayUrl,
        /// Where the API of its provider is, for one in this process.
        optional "base_url" base_url: GatewayUrl,
        /// Where the key is kept that its provider, or the bridge behind it, is shown:
        /// `secret:NAME`; `env:NAME` or `file:PATH` in the operator's own rows.
        optional "key" key: Reference,
        /// Servers of tools that it may offer to models, by the operator's names.
        optional "tool_servers" tool_servers: Vec<String>,
        /// Whether its callbacks may leave out which dispatch they are of (false).
        optional "legacy_callback" legacy_callback: bool,
        /// What it offers.
        optional "capabilities" capabilities: Vec<String>,
        /// Agents below this trust level may not use it (1).
        optional "min_trust_level" min_trust_level: Level,
        /// Cheaper gateways have lower ranks (0).
        optional "cost_rank" cost_rank: WholeNumber<0, 1_000_000>,
        /// Whether it is the organisation's default (false).
        optional "default" default: bool,
        /// Whether it is stopped for a while; left as it is unless written.
        optional "paused" paused: bool,
        /// The agents deployed on it; none named means any.
        optional "agents" agents: Vec<String>,
    }
}

document! {
    /// Bounds on whoever acts in a role.
    pub(crate) struct RoleDoc {
        /// Most money its steps may cost in one run, in cents.
        optional "max_spend_cents" max_spend_cents: Money,
        /// Environments its steps may run in; none named means any.
        optional "allowed_environments" allowed_environments: Vec<String>,
        /// What its inputs must be.
        optional "trusted_context" trusted_context: ContextDoc,
    }
}

document! {
    /// What inputs a role accepts.
    pub(crate) struct ContextDoc {
        /// Source classes of acceptable inputs; none named means any.
        optional "accepted_source_classes" accepted_source_classes: Vec<String>,
        /// Oldest acceptable input, in seconds.
        optional "max_age_s" max_age_s: Seconds,
    }
}

document! {
    /// Who does a workflow's roles, where, and with how much freedom.
    pub(crate) struct DeploymentDoc {
        /// The workflow.
        required "workflow" workflow: String,
        /// Whether it counts (true). A workflow has one active deployment.
        optional "active" active: bool,
        /// The gateway of its runs.
        optional "gateway" gateway: String,
        /// Which agent stands for which role.
        optional "roles" roles: Table<String>,
        /// The gateway an agent is pinned to in its runs.
        optional "agent_gateways" agent_gateways: Table<String>,
        /// How much freedom its runs have (bounded_autonomous).
        optional "posture" posture: Posture,
        /// No agent counts as more trusted than this in its runs.
        optional "trust_ceiling" trust_ceiling: Level,
    }
}

document! {
    /// A cap on money.
    pub(crate) struct BudgetRowDoc {
        /// What it counts.
        required "scope" scope: Scope,
        /// Which gateway, agent, workflow or run; without it, all of them together.
        optional "of" of: Spanned<String>,
        /// When it starts anew, in UTC.
        required "period" period: Period,
        /// The cap, in cents.
        required "amount_cents" amount_cents: Money,
        /// Whether it counts (true).
        optional "enabled" enabled: bool,
    }
}

/// A cap on money whose fields agree.
#[derive(Debug, Clone)]
pub(crate) struct Budget;

impl Read for Budget {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Budget> {
        let map = BudgetRowDoc::read(node, cx)?;
        match (map.scope, &map.of) {
            (Some(Scope::Global), Some(of)) => {
                let message = "a global budget counts everything: `of` means nothing in it";
                let problem = Problem::new(Code::ConflictingFields, of.span, message);
                cx.add(problem.with_hint("leave `of` out, or choose another scope"));
            }
            (Some(Scope::Run), Some(of)) if RunId::parse(&of.value).is_none() => {
                let shown = crate::visible::shorten(&of.value);
                let message = format!("`{shown}` is no id of a run");
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
    /// What a million tokens of a model cost.
    pub(crate) struct PriceDoc {
        /// A million tokens read, in cents.
        required "input_cents_per_mtok" input_cents_per_mtok: Money,
        /// A million tokens written, thought included, in cents.
        required "output_cents_per_mtok" output_cents_per_mtok: Money,
        /// A million tokens read that the provider had kept, in cents; as any others without it.
        optional "cached_input_cents_per_mtok" cached_input_cents_per_mtok: Money,
        /// Longest answer, where neither step nor agent bounds it, in tokens.
        optional "max_output_tokens" max_output_tokens: WholeNumber<1, 100_000_000>,
    }
}

document! {
    /// Policies: their text, or the file it is in.
    pub(crate) struct PolicyDoc {
        /// The file, relative to this one.
        optional "file" file: Spanned<String>,
        /// The policies themselves.
        optional "text" text: String,
        /// Which set they belong to (active).
        optional "set" set: PolicySet,
    }
}

/// Policies that stand in one place.
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
    /// Where a lens is.
    pub(crate) struct LensFileDoc {
        /// The file, relative to this one.
        required "file" file: String,
    }
}

/// A lens: here, or in a file.
#[derive(Debug, Clone)]
pub(crate) struct LensOrFile;

impl Read for LensOrFile {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<LensOrFile> {
        if node.get("file").is_some() {
            LensFileDoc::read(node, cx)?;
            return Some(LensOrFile);
        }
        // Lenses are often made by programs, which write them their own way.
        let strict = std::mem::replace(&mut cx.spelling, Spelling::Either);
        let lens = LensDoc::read(node, cx);
        cx.spelling = strict;
        lens.map(|_| LensOrFile)
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [LensFileDoc::schema(defs), LensDoc::schema(defs)] })
    }
}
