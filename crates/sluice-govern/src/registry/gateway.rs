//! Gateways: where agents do their work.

use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};

/// A capability that stands for all of them.
pub const ANYTHING: &str = "*";

/// Providers of gateways in this process. The bridge behind a gateway with a URL has
/// adapters with its own names.
pub const PROVIDERS: [&str; 7] = ["anthropic", "google", "http", "mcp", "mock", "openai", "shell"];

/// A gateway, where agents do their work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Provider: `mock`, `shell`, `openai`, …; empty: that of the agent.
    pub provider: String,
    /// Environment: `local`, `dev`, `production`, …
    pub environment: String,
    /// URL of the bridge; absent means in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// URL of the provider's API, for a gateway in this process; absent means the
    /// provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Reference to the key that Sluice sends to the provider or the bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretRef>,
    /// Whether the operator wrote the variable or file that `key` names. Only Sluice
    /// sets it: a key of the machine works in no other row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// Tool servers that it may offer to models, by the operator's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_servers: Vec<String>,
    /// Whether its callbacks may omit the dispatch they belong to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub legacy_callback: bool,
    /// SHA-256 of its token, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<String>,
    /// The process that registered it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Capabilities that it offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Agents below this trust level may not use it.
    pub min_trust_level: u8,
    /// Cheaper gateways have lower ranks.
    pub cost_rank: u32,
    /// Whether it is the organisation's default.
    pub default: bool,
    /// Whether an operator paused it.
    pub paused: bool,
    /// The agents deployed on it; empty means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl Default for Gateway {
    fn default() -> Gateway {
        Gateway {
            name: None,
            provider: String::new(),
            environment: "local".to_owned(),
            url: None,
            base_url: None,
            key: None,
            operator_secret: false,
            tool_servers: Vec::new(),
            legacy_callback: false,
            token_sha256: None,
            instance_id: None,
            capabilities: Vec::new(),
            min_trust_level: 1,
            cost_rank: 0,
            default: false,
            paused: false,
            agents: Vec::new(),
        }
    }
}

/// Health of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It works.
    #[default]
    Healthy,
    /// It works, but worse than usual.
    Degraded,
    /// It does not work.
    Offline,
}

impl Health {
    /// The keyword on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Offline => "offline",
        }
    }
}
