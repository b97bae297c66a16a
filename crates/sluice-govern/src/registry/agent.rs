//! Agents, which do the work of steps, and their limits.

use super::role::SECONDS;
use super::row::{Form, row};
use crate::choice::choices;
use crate::money::Money;

/// Duration of a trial unless it is extended: sixty days.
pub const POC_MS: u64 = 60 * 24 * 60 * 60 * 1000;

pub(super) const TRUST_LEVEL: Form = Form::Number(1, 10);
const COUNT: Form = Form::Number(1, 1_000_000);
const WINDOW: Form = Form::Number(1, 31_622_400);

row! {
    /// What an agent can do, may do and costs.
    pub struct Agent, "AgentDoc", default {
        /// The name for people.
        optional name: Option<String>,
        /// Whether it may execute steps; unchanged if not set.
        kept status: AgentStatus,
        /// Its lifecycle phase (production).
        stored phase: Phase,
        /// Start of the phase, milliseconds since 1970; set when the row is written.
        maintained phase_since_ms: Option<u64>,
        /// End of an extended trial.
        maintained poc_until_ms: Option<u64>,
        /// Its trust level, 1 to 10 (5).
        stored trust_level: u8 as TRUST_LEVEL = 5,
        /// The maximum number of its steps in flight, over all runs.
        optional max_concurrent_steps: Option<u32> as COUNT,
        /// The maximum number of dispatches in a sliding window.
        optional rate: Option<Rate>,
        /// Its budget for a calendar month, in cents.
        optional budget_monthly_cents: Option<Money>,
        /// Capabilities that its gateway must have.
        optional capabilities: Vec<String>,
        /// Where its steps are executed.
        optional execution_target: Option<ExecutionTarget>,
        /// The gateway it is pinned to.
        optional gateway: Option<String>,
        /// Its model, unless a step names one.
        optional model: Option<String>,
        /// Its system prompt.
        optional system_prompt: Option<String>,
        /// Tools it may use.
        optional tools: Tools,
        /// Its memory profile.
        optional memory: Option<String>,
        /// Providers in order of preference, for routing.
        optional provider_preferences: Vec<String>,
        /// The maximum cost of a dispatch without a price or a limit of the step, in
        /// cents.
        optional max_cost_cents: Option<Money>,
        /// How long a step waits at a gate that delays it, in seconds (3600).
        optional queue_timeout_s: Option<u64> as SECONDS,
        /// Whether its steps in a run continue one provider session: `new` (the
        /// default) or `continue`.
        optional session: SessionMode,
        /// Where the data that it adds to its inputs came from, by name; unknown if neither
        /// it nor its gateway declares it.
        optional origin: Option<Vec<String>> as Form::FlowLabels,
        /// Secrets that its outputs contain, by name, besides those of its inputs.
        optional sensitive: Vec<String> as Form::FlowLabels,
    }
}

impl Agent {
    /// Whether it works only in the engine's process, so that no gateway with a URL
    /// does its work.
    pub(crate) fn is_native(&self) -> bool {
        self.execution_target == Some(ExecutionTarget::Native)
    }

    /// The phase at a time: an expired trial has ended.
    pub fn phase_at(&self, now_ms: u64) -> Phase {
        match (self.phase, self.phase_since_ms) {
            (Phase::Poc, Some(since_ms)) => {
                let ends_ms = since_ms.saturating_add(POC_MS).max(self.poc_until_ms.unwrap_or(0));
                if now_ms >= ends_ms { Phase::Sunset } else { Phase::Poc }
            }
            (phase, _) => phase,
        }
    }
}

choices! {
    /// Where an agent's steps are executed.
    pub enum ExecutionTarget, "an execution target" {
        /// Only by gateways without a URL.
        Native = "native",
        /// By any gateway.
        Cloud = "cloud",
    }
}

choices! {
    /// Provider sessions of an agent's dispatches.
    #[derive(Default)]
    pub enum SessionMode, "a use of sessions" {
        /// Each dispatch begins a session.
        #[default]
        New = "new",
        /// A dispatch continues the agent's last session in the run, at the same gateway.
        Continue = "continue",
    }
}

choices! {
    /// Whether steps may be sent to an agent.
    #[derive(Default)]
    pub enum AgentStatus, "a status of an agent" {
        /// May work.
        #[default]
        Idle = "idle",
        /// Is working.
        Running = "running",
        /// Paused by an operator.
        Paused = "paused",
        /// Terminated by an operator.
        Terminated = "terminated",
        /// Broken.
        Error = "error",
        /// Replaced by a different agent.
        Deprecated = "deprecated",
    }
}

choices! {
    /// Lifecycle phase of an agent.
    #[derive(Default)]
    pub enum Phase, "a phase of an agent" {
        /// Trial: some gates only observe.
        Poc = "poc",
        /// Last stage before production.
        Staging = "staging",
        /// Productive use.
        #[default]
        Production = "production",
        /// End of life.
        Sunset = "sunset",
    }
}

row! {
    /// The maximum number of dispatches in a sliding window.
    #[derive(Copy)] #[derive(Eq)]
    pub struct Rate, "RateDoc" {
        /// The number of dispatches.
        required limit: u32 as COUNT,
        /// The length of the window in seconds.
        required window_s: u32 as WINDOW,
    }
}

row! {
    /// Tools an agent may use.
    #[derive(Eq)]
    pub struct Tools, "ToolsDoc", default {
        /// Only these tools; by default any.
        optional allow: Vec<String>,
        /// Never these tools.
        optional deny: Vec<String>,
        /// Tools that change nothing.
        optional read_only: Vec<String>,
    }
}
