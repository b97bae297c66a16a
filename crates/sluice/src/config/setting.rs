//! The only table of settings; flags, variables, help and the guide follow it.

use sluice_core::duration;
use sluice_core::limits::DURATION_MS_MAX;

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Path,
    /// Files or directories.
    Paths,
    /// A file, or a URL.
    PathOrUrl,
    Text,
    /// An address and a port to listen on.
    Address,
    /// An `http://` or `https://` URL.
    Url,
    /// A reference to a secret, or the secret itself.
    Secret,
    Words,
    Number {
        min: u64,
        max: u64,
    },
    /// A duration such as `2d`, bounded in milliseconds.
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    /// The same, or `off`.
    DurationOrOff {
        min_ms: u64,
        max_ms: u64,
    },
    Switch,
    Choice(&'static [&'static str]),
}

impl SettingKind {
    pub(crate) fn takes(self) -> String {
        match self {
            SettingKind::Path => "a path".to_owned(),
            SettingKind::Paths => "a list of paths".to_owned(),
            SettingKind::PathOrUrl => {
                "a path or an address such as `https://example.com/judge`".to_owned()
            }
            SettingKind::Text => "a text".to_owned(),
            SettingKind::Address => "an address and a port, such as `127.0.0.1:7400`".to_owned(),
            SettingKind::Url => "an address such as `http://127.0.0.1:7400`".to_owned(),
            SettingKind::Secret => "`env:NAME`, `file:PATH`, or the secret itself".to_owned(),
            SettingKind::Words => "a list of texts".to_owned(),
            SettingKind::Number { min, max } => format!("a number from {min} to {max}"),
            SettingKind::Duration { min_ms, max_ms } => {
                let (least, most) = (duration::format(min_ms), duration::format(max_ms));
                format!("a duration from `{least}` to `{most}`")
            }
            SettingKind::DurationOrOff { min_ms, max_ms } => {
                format!("{}, or `off`", SettingKind::Duration { min_ms, max_ms }.takes())
            }
            SettingKind::Switch => "`true` or `false`".to_owned(),
            SettingKind::Choice(words) => format!("one of: {}", words.join(", ")),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Setting {
    /// The name in a file; a dot separates a table.
    pub(crate) name: &'static str,
    pub(crate) kind: SettingKind,
    /// The default, as a variable would set it.
    pub(crate) default: Option<&'static str>,
    /// The flag that overrides it, if commands have one.
    pub(crate) flag: Option<&'static str>,
    /// One line of help.
    pub(crate) about: &'static str,
}

impl Setting {
    /// The name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("{}{}", super::PREFIX, self.name.replace('.', "_").to_ascii_uppercase())
    }
}

/// Declares the settings: an enum of names, and the table.
macro_rules! settings {
    ($($ask:ident $name:literal, $kind:expr, $default:expr, $flag:expr, $about:literal;)*) => {
        /// The name of a setting in code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Name { $($ask),* }

        pub(crate) const SETTINGS: &[Setting] = &[
            $(Setting {
                name: $name, kind: $kind, default: $default, flag: $flag, about: $about,
            }),*
        ];
    };
}

/// A time limit for people.
const WAIT: SettingKind = SettingKind::Duration { min_ms: 1000, max_ms: DURATION_MS_MAX };
/// A time limit for people that can be switched off.
const WAIT_OR_OFF: SettingKind =
    SettingKind::DurationOrOff { min_ms: 1000, max_ms: DURATION_MS_MAX };
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

settings! {
    Data "data", SettingKind::Path, Some(".sluice"), Some("data"),
        "the data directory";
    DatabaseUrl "database_url", SettingKind::Secret, None, Some("database-url"),
        "the PostgreSQL database that nodes share, instead of a file in the data directory";
    Url "url", SettingKind::Url, None, Some("url"),
        "the server that commands call, instead of a data directory";
    Token "token", SettingKind::Secret, None, None,
        "the token that commands send to the server";
    Agent "agent", SettingKind::Text, None, Some("agent"),
        "the agent of steps that name neither an agent nor a bound role";
    DefaultModel "default_model", SettingKind::Text, None, None,
        "the model of steps for which neither the caller, the document nor the agent names one";
    Policies "policies", SettingKind::Paths, None, Some("policies"),
        "policies for runs in this process, instead of the registered ones";
    Moderation "moderation", SettingKind::PathOrUrl, None, Some("moderation"),
        "the moderator: a word list, or a URL";
    ModerationToken "moderation_token", SettingKind::Secret, None, None,
        "the token for an HTTP moderator; a reference, never the token itself";
    SealFile "seal_file", SettingKind::Path, None, Some("seal-file"),
        "the file that every seal is appended to; seals of another organisation NAME go to FILE.NAME";
    Listen "listen", SettingKind::Address, Some("127.0.0.1:7400"), Some("listen"),
        "where `sluice serve` listens";
    PublicUrl "public_url", SettingKind::Url, None, None,
        "the URL by which remote gateways reach `sluice serve`; by default where it listens";
    AllowRemote "allow_remote", SettingKind::Switch, Some("false"), Some("allow-remote"),
        "let `sluice serve` listen beyond this machine; put TLS in front of it";
    SecureCookies "secure_cookies", SettingKind::Switch, Some("false"), Some("secure-cookies"),
        "whether cookies are sent over TLS only";
    CorsOrigins "cors_origins", SettingKind::Words, Some(""), Some("cors-origin"),
        "other origins whose pages may call the server";
    Hosts "hosts", SettingKind::Words, Some(""), None,
        "further host names under which agents reach `/mcp`";
    OutboundAllow "outbound.allow", SettingKind::Words, Some(""), None,
        "hosts, addresses and networks that may be called though they are private";
    OtelEndpoint "otel.endpoint", SettingKind::Url, None, None,
        "where traces are sent, over OTLP/HTTP";
    LeaseMs "lease_ms", SettingKind::Number { min: 1000, max: 600_000 }, Some("10000"), None,
        "how long a lease lasts without a heartbeat; then other nodes claim the runs";
    ApprovalsExpiresIn "approvals.expires_in", WAIT, Some("7d"), None,
        "how long an approval stays open, unless its step sets `expires_in`";
    ApprovalsRemindNormal "approvals.remind_normal", WAIT_OR_OFF, Some("1h"), None,
        "when the first reminder of an open approval is written, with level `normal`";
    ApprovalsRemindElevated "approvals.remind_elevated", WAIT_OR_OFF, Some("24h"), None,
        "when the second reminder is written, with level `elevated`";
    ApprovalsRemindCritical "approvals.remind_critical", WAIT_OR_OFF, Some("72h"), None,
        "when the last reminder is written, with level `critical`";
    QueueTimeout "queue_timeout", WAIT, Some("1h"), None,
        "how long a step waits at a gate that may open, unless its agent sets `queue_timeout_s`";
    WorkspacesKeep "workspaces.keep", WAIT, Some("7d"), None,
        "how long the files that shell steps made are kept after their run has ended";
    LogLevel "log.level", SettingKind::Choice(&["error", "warn", "info", "debug"]), Some("info"), None,
        "how much `sluice serve` logs";
    LogFormat "log.format", SettingKind::Choice(&["text", "json"]), Some("text"), None,
        "how it logs";
    RecursionDepth "limits.recursion_depth", SettingKind::Number { min: 0, max: 20 }, Some("5"), None,
        "the greatest depth of nested runs; a caller can only lower it";
    BodyBytes "limits.body_bytes", SettingKind::Number { min: KIB, max: 64 * MIB }, Some("2097152"), None,
        "longest body of a request";
    RequestTimeoutMs "limits.request_timeout_ms", SettingKind::Number { min: 100, max: 600_000 },
        Some("30000"), None,
        "how long a request may take, streams apart";
    RatePerSecond "limits.rate_per_second", SettingKind::Number { min: 1, max: 1_000_000 },
        Some("200"), None,
        "requests of one token in a second, in the long run";
    RateBurst "limits.rate_burst", SettingKind::Number { min: 1, max: 1_000_000 }, Some("400"), None,
        "requests of one token at once";
    InFlightMax "limits.in_flight_max", SettingKind::Number { min: 1, max: 1_000_000 }, Some("512"), None,
        "concurrent requests; further ones are refused with `overloaded`";
    ConnectionsMax "limits.connections_max", SettingKind::Number { min: 1, max: 1_000_000 },
        Some("4096"), None,
        "connections at once, at most half of the file handles; a new one ends the oldest idle one";
    ReadersMax "limits.readers_max", SettingKind::Number { min: 1, max: 1_000_000 }, Some("4096"), None,
        "streams of events at once";
    McpCallsMax "limits.mcp_calls_max", SettingKind::Number { min: 1, max: 1_000_000 }, Some("256"), None,
        "calls of agents over MCP at once";
    BodyMemoryBytes "limits.body_memory_bytes", SettingKind::Number { min: MIB, max: 64 * KIB * MIB },
        Some("268435456"), None,
        "bytes of bodies that are being read at once";
    TokenPercent "limits.token_percent", SettingKind::Number { min: 1, max: 100 }, Some("25"), None,
        "the share of one token or gateway in connections, requests, streams, MCP calls and body memory";
    OrganisationPercent "limits.organisation_percent", SettingKind::Number { min: 1, max: 100 },
        Some("75"), None,
        "the share of one organisation in the same";
    StrangersPercent "limits.strangers_percent", SettingKind::Number { min: 1, max: 100 },
        Some("12"), None,
        "the share of all clients without a token in requests and body memory; one address has half of it";
    GatewayRatePerSecond "limits.gateway_rate_per_second", SettingKind::Number { min: 1, max: 1_000_000 },
        Some("1000"), None,
        "requests of one gateway in a second; twice as many at once";
    SessionsMax "limits.sessions_max", SettingKind::Number { min: 1, max: 1000 }, Some("20"), None,
        "sessions of one token; one more ends the oldest";
    DrainMs "limits.drain_ms", SettingKind::Number { min: 0, max: 600_000 }, Some("10000"), None,
        "how long requests may take to end when the server stops, and runs to be released";
}
