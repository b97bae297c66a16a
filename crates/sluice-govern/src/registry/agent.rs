//! Agents: who does work, and how much of it.

use crate::money::Money;
use serde::{Deserialize, Serialize};

/// How long a trial lasts unless it is extended: sixty days.
pub const POC_MS: u64 = 60 * 24 * 60 * 60 * 1000;

/// The execution target of agents that work in the engine's process alone.
const NATIVE: &str = "native";

/// Who does work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// What people read; the row's name is what documents name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it may work.
    pub status: AgentStatus,
    /// How far it has come.
    pub phase: Phase,
    /// When the phase began, milliseconds since 1970; set when the row is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_since_ms: Option<u64>,
    /// Until when a trial was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poc_until_ms: Option<u64>,
    /// How far it is trusted, 1 to 10.
    pub trust_level: u8,
    /// Most steps it does at once, over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_steps: Option<u32>,
    /// Most dispatches in a sliding window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Most money in a calendar month (UTC).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::money::cents::option")]
    pub budget_monthly_cents: Option<Money>,
    /// What its gateway must offer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// `native`: only gateways without a URL do its work. `cloud`: any may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_target: Option<String>,
    /// The gateway it is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// The model it uses unless a step names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tools.
    #[serde(skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// Its memory profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Providers in order of preference, for routing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_preferences: Vec<String>,
    /// Most a dispatch may cost where no price and no step says.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::money::cents::option")]
    pub max_cost_cents: Option<Money>,
    /// How long a step waits when a gate says: not now. In seconds; an hour if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_timeout_s: Option<u64>,
    /// Whether its steps in a run are one conversation.
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
    /// Whether it works in the engine's process alone: no gateway with a URL does
    /// its work.
    pub fn is_native(&self) -> bool {
        self.execution_target.as_deref() == Some(NATIVE)
    }

    /// The phase at a time: a trial that has run out is over.
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

/// Which session of its provider a dispatch of an agent uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// Each dispatch begins a session.
    #[default]
    New,
    /// A dispatch continues the last session that the agent had in the run, at the
    /// same gateway.
    Continue,
}

impl SessionMode {
    fn is_new(&self) -> bool {
        *self == SessionMode::New
    }
}

/// Whether an agent may work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It may.
    #[default]
    Idle,
    /// It does.
    Running,
    /// An operator stopped it for a while.
    Paused,
    /// An operator stopped it for good.
    Terminated,
    /// It is broken.
    Error,
    /// Another one should be used.
    Deprecated,
}

impl AgentStatus {
    /// The word on every wire.
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

/// How far an agent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A trial: some gates only observe.
    Poc,
    /// Almost there.
    Staging,
    /// In earnest.
    #[default]
    Production,
    /// At its end.
    Sunset,
}

impl Phase {
    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Poc => "poc",
            Phase::Staging => "staging",
            Phase::Production => "production",
            Phase::Sunset => "sunset",
        }
    }
}

/// Most dispatches in a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many.
    pub limit: u32,
    /// In how many seconds.
    pub window_s: u32,
}

/// Tools an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Only these; none named means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Never these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Those that change nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
}

impl Tools {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty() && self.read_only.is_empty()
    }
}
