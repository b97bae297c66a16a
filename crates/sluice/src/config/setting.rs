//! The one table of settings. Everything else about them is made from it.

use sluice_core::duration;
use sluice_core::limits::DURATION_MS_MAX;

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Path,
    /// Files or directories.
    Paths,
    /// A file, or the address of somebody.
    PathOrUrl,
    Text,
    /// An address and a port to listen on.
    Address,
    /// An `http://` or `https://` address.
    Url,
    /// A reference to a secret, or the secret itself.
    Secret,
    Words,
    Number {
        min: u64,
        max: u64,
    },
    /// A span of time such as `2d`, bounded in milliseconds.
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    Switch,
    Choice(&'static [&'static str]),
}

impl Kind {
    /// For people.
    pub(crate) fn takes(self) -> String {
        match self {
            Kind::Path => "a path".to_owned(),
            Kind::Paths => "a list of paths".to_owned(),
            Kind::PathOrUrl => {
                "a path or an address such as `https://example.com/judge`".to_owned()
            }
            Kind::Text => "a text".to_owned(),
            Kind::Address => "an address and a port, such as `127.0.0.1:7400`".to_owned(),
            Kind::Url => "an address such as `http://127.0.0.1:7400`".to_owned(),
            Kind::Secret => "`env:NAME`, `file:PATH`, or the secret itself".to_owned(),
            Kind::Words => "a list of texts".to_owned(),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Duration { min_ms, max_ms } => {
                let (least, most) = (duration::format(min_ms), duration::format(max_ms));
                format!("a duration from `{least}` to `{most}`")
            }
            Kind::Switch => "`true` or `false`".to_owned(),
            Kind::Choice(words) => format!("one of: {}", words.join(", ")),
        }
    }
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// As a file writes it; a dot leads into a table.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// As a variable would write it.
    pub(crate) default: Option<&'static str>,
    /// The flag that is stronger than it, where commands have one.
    pub(crate) flag: Option<&'static str>,
    /// One line for people.
    pub(crate) about: &'static str,
}

impl Setting {
    /// The variable of the environment.
    pub(crate) fn variable(&self) -> String {
        format!("{}{}", super::PREFIX, self.name.replace('.', "_").to_ascii_uppercase())
    }
}

/// Declares the settings: a name to ask by, and its row of the table.
macro_rules! settings {
    ($($ask:ident $name:literal, $kind:expr, $default:expr, $flag:expr, $about:literal;)*) => {
        /// A setting, to ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Name { $($ask),* }

        /// All of them.
        pub(crate) const SETTINGS: &[Setting] = &[
            $(Setting {
                name: $name, kind: $kind, default: $default, flag: $flag, about: $about,
            }),*
        ];
    };
}

/// A span of time that people are given.
const WAIT: Kind = Kind::Duration { min_ms: 1000, max_ms: DURATION_MS_MAX };
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

settings! {
    Data "data", Kind::Path, Some(".sluice"), Some("data"),
        "where runs are kept";
    DatabaseUrl "database_url", Kind::Secret, None, Some("database-url"),
        "the PostgreSQL database that nodes share, instead of a file in the data directory";
    Url "url", Kind::Url, None, Some("url"),
        "the server that commands talk to, instead of a data directory";
    Token "token", Kind::Secret, None, None,
        "what the server knows the caller by";
    Agent "agent", Kind::Text, None, Some("agent"),
        "who does steps that name neither an agent nor a bound role";
    DefaultModel "default_model", Kind::Text, None, None,
        "the model of steps for which neither the caller, the document nor the agent names one";
    Policies "policies", Kind::Paths, None, Some("policies"),
        "policies that runs here are under, instead of the registry's";
    Moderation "moderation", Kind::PathOrUrl, None, Some("moderation"),
        "who judges texts: a word list, or an address";
    ModerationToken "moderation_token", Kind::Secret, None, None,
        "what a moderator at an address knows the caller by; a reference, never the token itself";
    SealFile "seal_file", Kind::Path, None, Some("seal-file"),
        "where every seal is copied to; those of another organisation NAME to FILE.NAME";
    Listen "listen", Kind::Address, Some("127.0.0.1:7400"), Some("listen"),
        "where `sluice serve` listens";
    PublicUrl "public_url", Kind::Url, None, None,
        "where gateways elsewhere reach `sluice serve`; by default where it listens";
    AllowRemote "allow_remote", Kind::Switch, Some("false"), Some("allow-remote"),
        "let `sluice serve` listen beyond this machine; put TLS in front of it";
    SecureCookies "secure_cookies", Kind::Switch, Some("false"), Some("secure-cookies"),
        "whether cookies are sent over TLS only";
    CorsOrigins "cors_origins", Kind::Words, Some(""), Some("cors-origin"),
        "pages of other origins that may ask the server";
    Hosts "hosts", Kind::Words, Some(""), None,
        "names, beside those of this machine, under which agents reach `/mcp`";
    OutboundAllow "outbound.allow", Kind::Words, Some(""), None,
        "hosts, addresses and networks that may be called though they are private";
    OtelEndpoint "otel.endpoint", Kind::Url, None, None,
        "where traces are sent, over OTLP/HTTP";
    LeaseMs "lease_ms", Kind::Number { min: 1000, max: 600_000 }, Some("10000"), None,
        "how long a node counts as alive after it last said so; then others take up its runs";
    ApprovalsExpiresIn "approvals.expires_in", WAIT, Some("7d"), None,
        "how long an approval stays open, unless its step says `expires_in`";
    ApprovalsRemindNormal "approvals.remind_normal", WAIT, Some("1h"), None,
        "when the first reminder of an open approval is written, with level `normal`";
    ApprovalsRemindElevated "approvals.remind_elevated", WAIT, Some("24h"), None,
        "when the second reminder is written, with level `elevated`";
    ApprovalsRemindCritical "approvals.remind_critical", WAIT, Some("72h"), None,
        "when the last reminder is written, with level `critical`";
    QueueTimeout "queue_timeout", WAIT, Some("1h"), None,
        "how long a step waits at a gate that may open, unless its agent says `queue_timeout_s`";
    WorkspacesKeep "workspaces.keep", WAIT, Some("7d"), None,
        "how long the files that shell steps made are kept after their run has ended";
    LogLevel "log.level", Kind::Choice(&["error", "warn", "info", "debug"]), Some("info"), None,
        "how much `sluice serve` logs";
    LogFormat "log.format", Kind::Choice(&["text", "json"]), Some("text"), None,
        "how it logs";
    RecursionDepth "limits.recursion_depth", Kind::Number { min: 0, max: 20 }, Some("5"), None,
        "how many runs may be above a run; a caller can only lower it";
    BodyBytes "limits.body_bytes", Kind::Number { min: KIB, max: 64 * MIB }, Some("2097152"), None,
        "longest body of a request";
    RequestTimeoutMs "limits.request_timeout_ms", Kind::Number { min: 100, max: 600_000 },
        Some("30000"), None,
        "how long a request may take, streams apart";
    RatePerSecond "limits.rate_per_second", Kind::Number { min: 1, max: 1_000_000 },
        Some("200"), None,
        "requests of one token in a second, in the long run";
    RateBurst "limits.rate_burst", Kind::Number { min: 1, max: 1_000_000 }, Some("400"), None,
        "requests of one token at once";
    InFlightMax "limits.in_flight_max", Kind::Number { min: 1, max: 1_000_000 }, Some("512"), None,
        "requests that are worked on at once; more are told to come again";
    ConnectionsMax "limits.connections_max", Kind::Number { min: 1, max: 1_000_000 },
        Some("4096"), None,
        "connections at once, at most half of the file handles; a new one ends the oldest idle one";
    ReadersMax "limits.readers_max", Kind::Number { min: 1, max: 1_000_000 }, Some("4096"), None,
        "streams of events at once";
    McpCallsMax "limits.mcp_calls_max", Kind::Number { min: 1, max: 1_000_000 }, Some("256"), None,
        "calls of agents over MCP at once";
    BodyMemoryBytes "limits.body_memory_bytes", Kind::Number { min: MIB, max: 64 * KIB * MIB },
        Some("268435456"), None,
        "bytes of bodies that are being read at once";
    TokenPercent "limits.token_percent", Kind::Number { min: 1, max: 100 }, Some("25"), None,
        "what one token or gateway may have of connections, requests, streams, MCP calls and body memory";
    OrganisationPercent "limits.organisation_percent", Kind::Number { min: 1, max: 100 },
        Some("75"), None,
        "what one organisation may have of them";
    StrangersPercent "limits.strangers_percent", Kind::Number { min: 1, max: 100 },
        Some("12"), None,
        "what all clients without a token may have of requests and body memory; one address has half of it";
    GatewayRatePerSecond "limits.gateway_rate_per_second", Kind::Number { min: 1, max: 1_000_000 },
        Some("1000"), None,
        "requests of one gateway in a second; twice as many at once";
    SessionsMax "limits.sessions_max", Kind::Number { min: 1, max: 1000 }, Some("20"), None,
        "sessions of one token; one more ends the oldest";
    DrainMs "limits.drain_ms", Kind::Number { min: 0, max: 600_000 }, Some("10000"), None,
        "how long requests may take to end when the server stops, and runs to be handed over";
}
