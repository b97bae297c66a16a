//! Gateways: where work is done.

use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};

/// A capability that stands for all of them.
pub const ANYTHING: &str = "*";

/// What a gateway in this process can speak to. What one with a URL does is its
/// bridge's to say: adapters there have names of their own.
pub const PROVIDERS: [&str; 7] = ["anthropic", "google", "http", "mcp", "mock", "openai", "shell"];

/// Where work is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// What people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it speaks to: `mock`, `shell`, `openai`, …; empty: whatever the agent is.
    pub provider: String,
    /// The environment it stands in: `local`, `dev`, `production`, …
    pub environment: String,
    /// Where it is; absent means in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where the API of its provider is, for one in this process; absent means
    /// where that provider is known to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where the key is kept that its provider, or the bridge behind it, is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretRef>,
    /// Whether the operator wrote the variable or file that `key` names. Set by Sluice
    /// alone: a key of the machine works in no other row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub operator_secret: bool,
    /// Servers of tools that it may offer to models, by the operator's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_servers: Vec<String>,
    /// Whether its callbacks may leave out which dispatch they are of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub legacy_callback: bool,
    /// SHA-256 of its token, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<String>,
    /// The process that registered it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// What it offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Agents below this trust level may not use it.
    pub min_trust_level: u8,
    /// Cheaper gateways have lower ranks.
    pub cost_rank: u32,
    /// Whether it is the organisation's default.
    pub default: bool,
    /// Whether an operator stopped it for a while.
    pub paused: bool,
    /// The agents deployed on it; none named means any.
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

/// Whether a gateway can do work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It can.
    #[default]
    Healthy,
    /// It can, but worse than usual.
    Degraded,
    /// It cannot.
    Offline,
}

impl Health {
    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Offline => "offline",
        }
    }
}
