//! Every limit of the server. Those that an operator may change are in
//! [`crate::app::Settings`], with these values as defaults.

use crate::capacity::Shares;

/// Maximum size of a request body, in bytes.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;
/// Maximum length of a query or path, in bytes.
pub(crate) const URI_BYTES_MAX: usize = 8 * 1024;
/// Maximum nesting of a JSON body.
pub(crate) const JSON_DEPTH_MAX: usize = 64;
/// Maximum time until a request is answered.
pub(crate) const REQUEST_MS: u64 = 30_000;
/// How long a client may take to send the head of a request.
pub const HEAD_MS: u64 = 10_000;
/// How long a signed-in connection may stay open without a request.
pub const IDLE_MS: u64 = 120_000;
/// Interval of keep-alive pings on an HTTP/2 connection.
pub(crate) const PING_MS: u64 = 20_000;
/// How long the client may take to answer a ping.
pub(crate) const PING_ANSWER_MS: u64 = 10_000;
/// Maximum size of the head of an HTTP/1 request, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of concurrent connections.
pub const CONNECTIONS: usize = 4096;
/// Length of the operating system's queue of connections that are not accepted yet.
pub const BACKLOG: u32 = 4096;
/// Shares of connections, requests, streams, MCP calls and body bytes that one token, one
/// organisation and all clients without a token may use, in percent.
pub(crate) const SHARES: Shares = Shares { token: 25, organisation: 75, strangers: 12 };
/// Maximum total size of request bodies that are being read.
pub(crate) const BODY_MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// Documents of at least this size are checked on separate threads when they are started.
pub(crate) const DOCUMENT_BYTES_LIGHT: usize = 8 * 1024;
/// Maximum number of requests in progress; further ones get 503.
pub(crate) const IN_FLIGHT: usize = 512;
/// Requests a second for each token.
pub(crate) const RATE_PER_SECOND: u32 = 200;
/// Burst of requests for each token, beyond its rate.
pub(crate) const RATE_BURST: u32 = 400;
/// Requests a second for each gateway; the burst is twice as large.
pub(crate) const GATEWAY_RATE_PER_SECOND: u32 = 1000;
/// New processes behind one gateway that are recorded in a minute.
pub(crate) const INSTANCES_PER_MINUTE: u32 = 20;
/// Sessions that one token may open in a minute.
pub(crate) const SESSIONS_PER_MINUTE: u32 = 60;
/// Concurrent sessions of one token; a further one ends the oldest.
pub(crate) const SESSIONS_MAX: usize = 20;
/// How long repeated refusals of one client are counted before they become one audit entry.
pub(crate) const REFUSALS_FOLD_MS: u64 = 60_000;
/// Interval of the periodic tasks: token changes and repeated refusals.
pub(crate) const LOOK_AFTER_MS: u64 = 500;
/// Failed sign-ins a minute for each address, before more are refused without a lookup.
pub(crate) const STRANGERS_PER_MINUTE: u32 = 60;
/// Maximum number of addresses that are remembered as having used up their sign-ins.
pub(crate) const USED_UP_MAX: usize = 10_000;
/// Maximum number of concurrent event streams.
pub(crate) const STREAMS: usize = 4096;
/// How long a reader of a stream may read nothing before the server closes the stream.
pub const SLOW_READER_MS: u64 = 30_000;
/// Interval of heartbeats on a stream without events.
pub const HEARTBEAT_MS: u64 = 15_000;
/// Bytes of a stream per write.
pub(crate) const STREAM_CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of rows in a page.
pub const PAGE_MAX: u16 = 500;
/// Default number of rows in a page.
pub const PAGE: u16 = 50;
/// Maximum number of decisions in a forecast, besides those that block or hold a step.
pub(crate) const FORECAST_DECISIONS_MAX: usize = 500;
/// How long requests in progress may take to finish when the server stops.
pub const DRAIN_MS: u64 = 10_000;
/// How long a session lasts.
pub(crate) const SESSION_MS: u64 = 12 * 60 * 60 * 1000;
/// Maximum age of the token cache when another process changes tokens.
pub(crate) const IDENTITIES_STALE_MS: u64 = 250;
/// Maximum number of workflows that are cached ready to start.
pub(crate) const STARTS_MAX: usize = 256;
/// Maximum number of organisations that one process serves.
pub const ORGANISATIONS_MAX: usize = 64;
/// Maximum age of the signature of a request to an inbound webhook, in seconds.
pub(crate) const HOOK_WINDOW_S: u64 = 300;
/// Maximum number of signatures of one request that are checked.
pub(crate) const SIGNATURES_MAX: usize = 4;
/// Maximum number of outbound webhooks of an organisation; further ones are reported as an error.
pub(crate) const WEBHOOKS_MAX: usize = 64;
/// Interval at which webhooks are checked for changes.
pub(crate) const WEBHOOKS_LOOK_MS: u64 = 1000;
/// Maximum queue of a webhook before it stops reading the feed.
pub(crate) const DELIVERIES_WAITING_MAX: u64 = 512;
/// Concurrent deliveries of a webhook.
pub(crate) const DELIVERIES_AT_ONCE: usize = 8;
/// Frames without events for a webhook after which its feed position is stored.
pub(crate) const PLACES_UNNOTED_MAX: u64 = 4096;
/// Maximum size of events that a webhook keeps in memory for their first attempt, in bytes.
pub(crate) const FRESH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of attempts for a delivery.
pub(crate) const DELIVERY_TRIES: u32 = 8;
/// Delay between the first attempt and the second; each further delay is three times as long.
pub(crate) const DELIVERY_RETRY_MS: u64 = 10_000;
/// Maximum delay between two attempts.
pub(crate) const DELIVERY_RETRY_MS_MAX: u64 = 30 * 60 * 1000;
/// How long a receiver may take to answer.
pub const DELIVERY_MS: u64 = 10_000;
/// How long after that a delivery without a recorded result is attempted again.
pub(crate) const DELIVERY_SLACK_MS: u64 = 30_000;
/// Maximum size of a receiver's response that is read, in bytes. Its content is ignored.
pub(crate) const DELIVERY_ANSWER_BYTES: usize = 64 * 1024;
/// Maximum lifetime of a token that expires: ten years.
pub(crate) const TOKEN_MS_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1000;
/// Maximum number of budgets of an organisation that metrics report.
pub(crate) const METRIC_BUDGETS_MAX: usize = 200;
/// Maximum queue of spans; further ones are dropped and counted.
pub(crate) const SPANS_WAITING_MAX: usize = 8192;
/// Spans per export request.
pub(crate) const SPANS_AT_ONCE: usize = 512;
/// How long a span may wait for a batch to fill.
pub(crate) const SPANS_WAIT_MS: u64 = 1000;
/// How long a collector may take to answer.
pub(crate) const SPANS_SEND_MS: u64 = 10_000;
/// Maximum size of a collector's response that is read, in bytes.
pub(crate) const SPANS_ANSWER_BYTES: usize = 64 * 1024;
/// Maximum number of open dispatches whose start is remembered.
pub(crate) const SPANS_OPEN_MAX: usize = 65_536;
/// Maximum number of concurrent MCP calls; further ones get 503.
pub(crate) const MCP_AT_ONCE: usize = 256;
/// Maximum size of a tool result, in bytes of JSON; longer ones are shortened and marked.
pub(crate) const MCP_RESULT_BYTES_MAX: usize = 128 * 1024;
/// Maximum time that a tool waits for a run, in seconds: clients time out after a minute.
pub(crate) const MCP_WATCH_SECONDS_MAX: u64 = 50;
/// Default time that a tool waits for a run, in seconds.
pub(crate) const MCP_WATCH_SECONDS: u64 = 20;
/// Maximum number of events in a tool result.
pub(crate) const MCP_EVENTS_MAX: u16 = 200;
/// Bytes of an event that are charged to the size of a tool result.
pub(crate) const MCP_EVENT_BYTES: usize = 16 * 1024;
/// Default number of events in a tool result.
pub(crate) const MCP_EVENTS: u16 = 50;
/// Default number of rows that a tool lists.
pub(crate) const MCP_PAGE: u16 = 20;
/// Maximum number of shortened values that a tool result names.
pub(crate) const MCP_CUTS_NAMED: usize = 16;

/// Interval at which workspaces of ended runs are removed, in milliseconds.
pub(crate) const WORKSPACES_LOOK_MS: u64 = 600_000;

/// How long a result of `/readyz` is cached, in milliseconds.
pub(crate) const READY_AGE_MS: u64 = 1000;
/// How long a store may take to show that it is ready, in milliseconds.
pub(crate) const READY_MS: u64 = 2000;
