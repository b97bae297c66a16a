//! Every bound of the server, in one place. Those an operator may change are in
//! [`crate::app::Settings`], with these as what they are when nothing is said.

use crate::places::Shares;

/// Longest body of a request, in bytes.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;
/// Longest query or path, in bytes.
pub const URI_BYTES_MAX: usize = 8 * 1024;
/// Deepest nesting of a JSON body.
pub const JSON_DEPTH_MAX: usize = 64;
/// How long a request may take until it is answered.
pub const REQUEST_MS: u64 = 30_000;
/// How long a client may take to send the head of a request.
pub const HEAD_MS: u64 = 10_000;
/// How long a signed-in connection may stay open without a request.
pub const IDLE_MS: u64 = 120_000;
/// How often the server asks the other end of an HTTP/2 connection whether it is there.
pub const PING_MS: u64 = 20_000;
/// How long the other end may take to answer.
pub const PING_ANSWER_MS: u64 = 10_000;
/// Longest head of an HTTP/1 request, in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most connections at once.
pub const CONNECTIONS: usize = 4096;
/// Connections that wait to be taken, in the system's own queue.
pub const BACKLOG: u32 = 4096;
/// What one token, one organisation and all clients without a token may have of all
/// connections, requests, streams, calls of agents and bytes of bodies, in percent.
pub const SHARES: Shares = Shares { token: 25, organisation: 75, strangers: 12 };
/// Most bytes of bodies that are being read.
pub const BODY_MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// From how many bytes on a document that is to be started is checked apart from
/// other requests.
pub const DOCUMENT_BYTES_LIGHT: usize = 8 * 1024;
/// Most requests that are worked on at once; more are told to come again.
pub const IN_FLIGHT: usize = 512;
/// Requests a second for each token.
pub const RATE_PER_SECOND: u32 = 200;
/// Requests at once for each token, beyond its rate.
pub const RATE_BURST: u32 = 400;
/// Requests a second for each gateway; twice as many at once.
pub const GATEWAY_RATE_PER_SECOND: u32 = 1000;
/// New processes behind one gateway that are noted in a minute.
pub const INSTANCES_PER_MINUTE: u32 = 20;
/// Sessions that one token may open in a minute.
pub const SESSIONS_PER_MINUTE: u32 = 60;
/// Sessions of one token at once; one more ends the oldest.
pub const SESSIONS_MAX: usize = 20;
/// How long refusals of one client are counted before they become one entry.
pub const REFUSALS_FOLD_MS: u64 = 60_000;
/// How often the server looks after tokens that streams are read with.
pub const LOOK_AFTER_MS: u64 = 500;
/// Failed sign-ins a minute for each address, before more are refused unseen.
pub const STRANGERS_PER_MINUTE: u32 = 60;
/// Most addresses that are remembered because their tries are used up.
pub const USED_UP_MAX: usize = 10_000;
/// Most live streams at once.
pub const STREAMS: usize = 4096;
/// How long one who reads a stream may not take anything before being dropped.
pub const SLOW_READER_MS: u64 = 30_000;
/// How often a stream on which nothing happens says that it lives.
pub const HEARTBEAT_MS: u64 = 15_000;
/// Bytes of a stream that are written at once.
pub const STREAM_CHUNK_BYTES: usize = 64 * 1024;
/// Most rows of a page.
pub const PAGE_MAX: u16 = 500;
/// Rows of a page when nobody says.
pub const PAGE: u16 = 50;
/// Most decisions of a forecast that are told gate by gate, beside those that stop or ask.
pub const FORECAST_DECISIONS_MAX: usize = 500;
/// How long what is under way may take to end when the server stops.
pub const DRAIN_MS: u64 = 10_000;
/// How long a session lasts.
pub const SESSION_MS: u64 = 12 * 60 * 60 * 1000;
/// How stale what is known of tokens may be when another process changes them.
pub const IDENTITIES_STALE_MS: u64 = 250;
/// Most workflows that are kept ready to start.
pub const STARTS_MAX: usize = 256;
/// Most organisations that one process serves.
pub const ORGANISATIONS_MAX: usize = 64;
/// How far from now a request to a hook may have been signed, in seconds.
pub const HOOK_WINDOW_S: u64 = 300;
/// Most signatures of one request that are looked at.
pub const SIGNATURES_MAX: usize = 4;
/// Most webhooks of an organisation that are sent to; others are told to be too many.
pub const WEBHOOKS_MAX: usize = 64;
/// How often it is looked whether webhooks were set or removed.
pub const WEBHOOKS_LOOK_MS: u64 = 1000;
/// Deliveries of a webhook that may wait before it goes no further along the feed.
pub const DELIVERIES_WAITING_MAX: u64 = 512;
/// Deliveries of a webhook that are sent at once.
pub const DELIVERIES_AT_ONCE: usize = 8;
/// Frames a webhook passes, none of them for it, before its place is noted.
pub const PLACES_UNNOTED_MAX: u64 = 4096;
/// Events of a webhook that are kept at hand for their first try, in bytes.
pub const FRESH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often a delivery is tried.
pub const DELIVERY_TRIES: u32 = 8;
/// How long after the first try the second comes; then three times as long each time.
pub const DELIVERY_RETRY_MS: u64 = 10_000;
/// The longest wait between two tries.
pub const DELIVERY_RETRY_MS_MAX: u64 = 30 * 60 * 1000;
/// How long a receiver may take to answer.
pub const DELIVERY_MS: u64 = 10_000;
/// How long after that a delivery that nobody has noted the end of is tried again.
pub const DELIVERY_SLACK_MS: u64 = 30_000;
/// Longest answer of a receiver that is read, in bytes. What it says does not matter.
pub const DELIVERY_ANSWER_BYTES: usize = 64 * 1024;
/// How long tokens live at most, if they are to end at all: ten years.
pub const TOKEN_MS_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1000;
/// Most budgets of an organisation that metrics tell of.
pub const METRIC_BUDGETS_MAX: usize = 200;
/// Spans that wait to be sent; more are lost, and counted.
pub const SPANS_WAITING_MAX: usize = 8192;
/// Spans that are sent at once.
pub const SPANS_AT_ONCE: usize = 512;
/// How long spans may wait for others to be sent with.
pub const SPANS_WAIT_MS: u64 = 1000;
/// How long a collector may take to answer.
pub const SPANS_SEND_MS: u64 = 10_000;
/// Longest answer of a collector that is read, in bytes.
pub const SPANS_ANSWER_BYTES: usize = 64 * 1024;
/// Dispatches whose beginning is remembered until they end.
pub const SPANS_OPEN_MAX: usize = 65_536;
/// Most calls of agents over MCP that are worked on at once; more are told to come again.
pub const MCP_AT_ONCE: usize = 256;
/// Longest result of a tool, in bytes of JSON; longer ones are shortened, and say so.
pub const MCP_RESULT_BYTES_MAX: usize = 128 * 1024;
/// Longest that a tool waits for a run, in seconds: clients give up after a minute.
pub const MCP_WATCH_SECONDS_MAX: u64 = 50;
/// How long a tool waits for a run when nobody says, in seconds.
pub const MCP_WATCH_SECONDS: u64 = 20;
/// Most events that a tool answers at once.
pub const MCP_EVENTS_MAX: u16 = 200;
/// Bytes of an event that count when a tool has to stop before too many.
pub const MCP_EVENT_BYTES: usize = 16 * 1024;
/// Events that a tool answers at once when nobody says.
pub const MCP_EVENTS: u16 = 50;
/// Rows that a tool lists when nobody says.
pub const MCP_PAGE: u16 = 20;
/// Most places of a result that are named as shortened.
pub const MCP_CUTS_NAMED: usize = 16;

/// How often workspaces of runs that ended are looked for, in milliseconds.
pub const WORKSPACES_LOOK_MS: u64 = 600_000;

/// How long an answer to `/readyz` counts, in milliseconds.
pub const READY_AGE_MS: u64 = 1000;
/// How long a store may take to show that it is ready, in milliseconds.
pub const READY_MS: u64 = 2000;
