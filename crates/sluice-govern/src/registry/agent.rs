//! Agents, which do the work of steps, and their limits.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// Duration of a trial unless it is extended: sixty days.
pub const POC_MS: u64 = 60 * 24 * 60 * 60 * 1000;

/// The execution target of agents that work only in the engine's process.
const NATIVE: &str = "native";

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Display name; documents use the name of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Status of the agent.
    pub status: AgentStatus,
    /// Lifecycle phase.
    pub phase: Phase,
    /// Start of the phase, milliseconds since 1970; set when the row is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_since_ms: Option<u64>,
    /// End of an extended trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poc_until_ms: Option<u64>,
    /// Trust level, 1 to 10.
    pub trust_level: u8,
    /// Largest number of concurrent steps, over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_steps: Option<u32>,
    /// Largest number of dispatches in a sliding window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Budget per calendar month (UTC).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::money::cents::option")]
    pub budget_monthly_cents: Option<Money>,
    /// Capabilities that its gateway must offer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// `native`: only gateways without a URL do its work. `cloud`: any gateway may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_target: Option<String>,
    /// The gateway it is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Default model; a step can name a different one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// System prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tools that it may use.
    #[serde(skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// Memory profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Providers in order of preference, for routing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_preferences: Vec<String>,
    /// Cost ceiling of a dispatch, if neither a price nor the step sets one.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::money::cents::option")]
    pub max_cost_cents: Option<Money>,
    /// How long a step waits at a retryable gate, in seconds; default: an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_timeout_s: Option<u64>,
    /// Whether its steps in a run share one conversation.
    #[serde(skip_serializing_if = "SessionMode::is_new")]
    pub session: SessionMode,
}

impl Default for Agent {
    fn default() -> Agent {
        Agent {
            name: None,
            status: AgentStatus::Idle,
            phase: Phase::Production,
            phase_since_ms: None,
            poc_until_ms: None,
            trust_level: 5,
            max_concurrent_steps: None,
            rate: None,
            budget_monthly_cents: None,
            capabilities: Vec::new(),
            execution_target: None,
            gateway: None,
            model: None,
            system_prompt: None,
            tools: Tools::default(),
            memory: None,
            provider_preferences: Vec::new(),
            max_cost_cents: None,
            queue_timeout_s: None,
            session: SessionMode::New,
        }
    }
}

impl Agent {
    /// Whether it works only in the engine's process, so that no gateway with a URL
    /// does its work.
    pub(crate) fn is_native(&self) -> bool {
        self.execution_target.as_deref() == Some(NATIVE)
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

/// Provider sessions of an agent's dispatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// Each dispatch begins a session.
    #[default]
    New,
    /// A dispatch continues the agent's last session in the run, at the same gateway.
    Continue,
}

impl SessionMode {
    fn is_new(&self) -> bool {
        *self == SessionMode::New
    }
}

/// Status of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// May work.
    #[default]
    Idle,
    /// Is working.
    Running,
    /// Paused by an operator.
    Paused,
    /// Terminated by an operator.
    Terminated,
    /// Broken.
    Error,
    /// Replaced by a different agent.
    Deprecated,
}

impl AgentStatus {
    /// The keyword on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            AgentStatus::Idle => "idle",
            AgentStatus::Running => "running",
            AgentStatus::Paused => "paused",
            AgentStatus::Terminated => "terminated",
            AgentStatus::Error => "error",
            AgentStatus::Deprecated => "deprecated",
        }
    }
}

/// Lifecycle phase of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Trial: some gates only observe.
    Poc,
    /// Last stage before production.
    Staging,
    /// Productive use.
    #[default]
    Production,
    /// End of life.
    Sunset,
}

impl Phase {
    /// The keyword on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Poc => "poc",
            Phase::Staging => "staging",
            Phase::Production => "production",
            Phase::Sunset => "sunset",
        }
    }
}

/// Largest number of dispatches in a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Number of dispatches.
    pub limit: u32,
    /// Window in seconds.
    pub window_s: u32,
}

/// Tools of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Only these tools; empty means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Forbidden tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Tools that only read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
}

impl Tools {
    /// Whether no list is set.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty() && self.read_only.is_empty()
    }
}
