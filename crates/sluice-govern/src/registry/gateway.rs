//! Gateways: where agents do their work.

use super::agent::TRUST_LEVEL;
use super::row::{Form, row};
use crate::choice::choices;
use crate::facts::SendsTo;
use crate::secret::SecretRef;

/// A capability that stands for all of them.
pub const ANYTHING: &str = "*";

/// Providers of gateways in this process. The bridge behind a gateway with a URL has
/// adapters with its own names.
pub const PROVIDERS: [&str; 7] = ["anthropic", "google", "http", "mcp", "mock", "openai", "shell"];

const RANK: Form = Form::Number(0, 1_000_000);

row! {
    /// A gateway, where steps are executed.
    pub struct Gateway, "GatewayDoc", default {
        /// The name for people.
        optional name: Option<String>,
        /// Its provider: `mock`, `shell`, `openai`, …; by default that of the agent.
        stored provider: String,
        /// Its environment (local).
        stored environment: String = "local".to_owned(),
        /// The URL of its bridge; without it, this process executes the steps.
        optional url: Option<String> as Form::GatewayUrl,
        /// The base URL of its provider's API, if this process calls it.
        optional base_url: Option<String> as Form::GatewayUrl,
        /// The key for its provider or its bridge: `secret:NAME`; `env:NAME` or
        /// `file:PATH` in the operator's own rows.
        optional key: Option<SecretRef>,
        /// Whether the operator wrote the variable or file that `key` names. Only Sluice
        /// sets it: a key of the machine works in no other row.
        maintained operator_secret: bool,
        /// Tool servers that it may offer to models, by the operator's names.
        optional tool_servers: Vec<String>,
        /// Whether its callbacks may omit the dispatch number (false).
        optional legacy_callback: bool,
        /// SHA-256 of its token, in hexadecimal.
        maintained token_sha256: Option<String>,
        /// The process that registered it last.
        maintained instance_id: Option<String>,
        /// Its capabilities.
        optional capabilities: Vec<String>,
        /// Agents below this trust level may not use it (1).
        stored min_trust_level: u8 as TRUST_LEVEL = 1,
        /// Cheaper gateways have lower ranks (0).
        stored cost_rank: u32 as RANK,
        /// Whether it is the organisation's default (false).
        stored default: bool,
        /// Whether it is paused; unchanged if not set.
        kept paused: bool,
        /// The agents deployed on it; by default any.
        optional agents: Vec<String>,
        /// Where the data that it adds to its inputs came from, by name; unknown if neither
        /// it nor the agent declares it.
        optional origin: Option<Vec<String>> as Form::FlowLabels,
        /// Secrets that the data that it adds to its inputs contains, by name.
        optional sensitive: Vec<String> as Form::FlowLabels,
        /// Where it sends what it is given: `external` (default), `internal` or `none`.
        optional sends_to: Option<SendsTo>,
    }
}

choices! {
    /// Health of a gateway.
    #[derive(Default)]
    pub enum Health, "a health of a gateway" {
        /// It works.
        #[default]
        Healthy = "healthy",
        /// It works, but worse than usual.
        Degraded = "degraded",
        /// It does not work.
        Offline = "offline",
    }
}
