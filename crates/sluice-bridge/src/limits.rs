//! All limits of the bridge.
//!
//! INVARIANT: exceeding a limit is a clear error, never a hang, a panic or memory that grows
//! with what a remote peer sends.

use sluice_core::money::Money;

/// Limit of one scripted answer's cost: a million dollars. A larger amount is a typing error.
pub(crate) const MOCK_COST_MAX: Money = Money::from_micro_cents(1_000_000 * 100_000_000);
/// Limit of one scripted answer's token counts.
pub(crate) const MOCK_TOKENS_MAX: u64 = 1_000_000_000;

/// Limit of a command's standard output, in bytes.
pub(crate) const STDOUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Limit of a command's standard error, in bytes.
pub(crate) const STDERR_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Limit of one logged line of standard error, in bytes; longer lines are split.
pub const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the end of standard error that a failed command's error shows.
pub(crate) const STDERR_TAIL_BYTES_MAX: usize = 2 * 1024;
/// Size of one read from a command, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 16 * 1024;
/// Linux's limit of one argument or environment variable, name and closing zero included.
pub(crate) const ARGUMENT_BYTES_MAX: usize = 128 * 1024;
/// First wait before a command is started again when the machine has no file handle or process
/// left; each wait doubles.
pub(crate) const SPAWN_RETRY_MS: u64 = 10;
/// Limit of one such wait.
pub(crate) const SPAWN_RETRY_MS_MAX: u64 = 500;
/// Limit of all such waits of one command.
pub(crate) const SPAWN_WAIT_MS_MAX: u64 = 10 * 60 * 1000;
/// Time that a new connection has to send its request before it may be closed to make room.
pub const CONNECTION_GRACE_MS: u64 = 100;

/// Limit of a word list, in bytes.
pub(crate) const WORD_LIST_BYTES_MAX: usize = 1024 * 1024;
/// Limit of phrases in a word list.
pub(crate) const PHRASES_MAX: usize = 10_000;
/// Limit of a moderator's response, in bytes.
pub(crate) const VERDICT_BYTES_MAX: usize = 64 * 1024;
/// Time limit of a remote moderator's response.
pub(crate) const MODERATOR_ANSWER_MS: u64 = 10_000;

/// Limit of entries in the allow list of non-public destinations.
pub(crate) const ALLOWED_MAX: usize = 1_000;
/// Limit of the addresses of one host name that are used.
pub(crate) const ADDRESSES_MAX: usize = 16;
/// Limit of redirects that one request follows.
pub(crate) const REDIRECTS_MAX: usize = 5;
/// Time limit of opening an outbound connection.
pub const CONNECT_MS: u64 = 3_000;
/// Limit of an outbound request's body, in bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Limit of connection pools, one for each port.
pub(crate) const PORTS_MAX: usize = 32;
/// Limit of idle connections to one host.
pub(crate) const POOL_IDLE_MAX: usize = 4;
/// Time that an idle connection stays open.
pub(crate) const POOL_IDLE_MS: u64 = 30_000;

/// Limit of a secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Secrets shorter than this are not redacted, in bytes: they would match ordinary words.
pub(crate) const SCRUBBED_BYTES_MIN: usize = 8;
/// Secrets up to this length are also redacted in their base64 and hexadecimal forms, in bytes.
pub(crate) const ENCODED_BYTES_MAX: usize = 4096;
/// Limit of known secrets; further ones are not read.
pub const SECRETS_MAX: usize = 4_000;
/// Limit of all known secrets together, in bytes.
pub(crate) const SECRETS_BYTES_MAX: usize = 1024 * 1024;
/// Number of former values of one variable or file that are still redacted.
pub(crate) const SECRET_VALUES_MAX: usize = 16;

/// Time that a cancelled command has to end by itself.
pub const GRACE_MS: u64 = 2_000;
/// Time that an ended command's pipes may be silent before they are closed: a process that left
/// the group can hold them open for ever.
pub const SILENCE_MS: u64 = 500;
/// Time that a killed survivor of an earlier process has to disappear.
pub(crate) const SURVIVOR_WAIT_MS: u64 = 5_000;
/// Poll interval of that wait.
pub(crate) const SURVIVOR_LOOK_MS: u64 = 10;

/// Limit of one MCP message, in bytes.
pub(crate) const MCP_MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Time limit of starting and initialising a tool server.
pub(crate) const MCP_START_MS: u64 = 30_000;
/// Time limit of listing a server's tools.
pub(crate) const MCP_LIST_MS: u64 = 30_000;
/// Time limit of a tool call; the step's own limit may be shorter.
pub(crate) const MCP_CALL_MS: u64 = 600_000;
/// Time limit of sending a notification.
pub(crate) const MCP_NOTE_MS: u64 = 5_000;
/// Limit of concurrent calls to one tool server.
pub(crate) const MCP_CALLS_MAX: usize = 256;
/// Limit of messages queued for a tool server.
pub(crate) const MCP_QUEUE_MAX: usize = 64;
/// Limit of pages of a tool list.
pub(crate) const MCP_PAGES_MAX: usize = 100;
/// Limit of one server's tools.
pub(crate) const MCP_TOOLS_MAX: usize = 1_000;
/// Limit of a tool's name, in bytes.
pub(crate) const MCP_NAME_BYTES_MAX: usize = 128;
/// Limit of a tool's description, in bytes; the rest is cut off.
pub const MCP_DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Time that a tool list is cached if the server does not announce changes.
pub(crate) const MCP_LIST_AGE_MS: u64 = 300_000;
/// Bytes of a server process's standard error that are logged.
pub(crate) const MCP_STDERR_BYTES_MAX: usize = 1024 * 1024;
/// Limit of a tool's answer, in bytes; the rest is cut off.
pub const TOOL_TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Limit of a recording, in bytes.
pub(crate) const RECORDING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Limit of reported differences in one request, and of reported requests.
pub const DIFFERENCES_MAX: usize = 20;
/// Characters of a value that a reported difference shows.
pub(crate) const DIFFERENCE_CHARS_MAX: usize = 120;

/// Limit of a step id, or the name of a workflow or agent, in bytes.
pub(crate) const STEP_BYTES_MAX: usize = 1024;
/// Limit of the name of a provider or model, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Limit of a session reference, in bytes.
pub(crate) const SESSION_BYTES_MAX: usize = 16 * 1024;
/// Limit of a callback URL, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 4 * 1024;
/// Limit of a dispatch token, in bytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 1024;
/// Limit of a dispatch's tools.
pub(crate) const TOOLS_MAX: usize = 10_000;
/// Limit of a dispatch's environment variables.
pub(crate) const ENV_MAX: usize = 10_000;
/// Limit of a dispatch's timeout: thirty days.
pub(crate) const TIMEOUT_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Limit of an error message, in bytes; the rest is cut off.
pub(crate) const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Limit of a result's body, in bytes.
pub const CALLBACK_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Limit of a dispatch's body, in bytes.
pub(crate) const DISPATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Limit of a spool file, in bytes: a dispatch or a result with its record.
pub(crate) const SPOOL_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Limit of changes queued for the spool's writer.
pub(crate) const SPOOL_QUEUE_MAX: usize = 256;
/// Limit of changes that share one sync of the spool's directory.
pub(crate) const SPOOL_BATCH_MAX: usize = 64;
/// Limit of the dispatches that a bridge knows, ended ones included.
pub(crate) const KNOWN_MAX: usize = 400_000;
/// Limit of running dispatches.
pub(crate) const RUNNING_MAX: usize = 2_048;
/// Limit of connections to a bridge.
pub const CONNECTIONS_MAX: usize = 8_192;
/// Time limit of a request's head. Longer than a client pools an idle connection, so that the
/// bridge does not close one that is about to be used.
pub const HEAD_MS: u64 = POOL_IDLE_MS + 5_000;
/// Time limit of a blocked write to a client.
pub const SLOW_READER_MS: u64 = 30_000;
/// Time limit of a request's body.
pub(crate) const BODY_MS: u64 = 60_000;
/// Limit of a cancel request, in bytes.
pub(crate) const CANCEL_BYTES_MAX: usize = 16 * 1024;
/// Time that cancelled work has to end by itself.
pub(crate) const CANCEL_GRACE_MS: u64 = 3_000;
/// Time that running work has to finish when a bridge stops.
pub const DRAIN_MS: u64 = 10_000;
/// Time that a delivered result stays in the spool.
pub(crate) const TOMBSTONE_MS: u64 = 24 * 3_600_000;
/// Time that a result given up stays in the spool.
pub(crate) const GIVEN_UP_KEPT_MS: u64 = 7 * 24 * 3_600_000;
/// Interval of removing expired records.
pub const TIDY_MS: u64 = 600_000;
/// Time that the adapters' health is cached.
pub(crate) const HEALTH_KEPT_MS: u64 = 5_000;

/// Limit of concurrent deliveries.
pub(crate) const DELIVERIES_MAX: usize = 64;
/// Age at which a result is no longer delivered.
pub const DELIVERY_MS: u64 = 24 * 3_600_000;
/// Time limit of one delivery attempt.
pub(crate) const DELIVERY_TRY_MS: u64 = 30_000;
/// Limit of parts in one batch.
pub(crate) const PARTS_MAX: usize = 1_000;
/// Limit of one dispatch's parts.
pub(crate) const PARTS_NUMBER_MAX: u64 = 1_000_000;
/// Limit of the text in one batch of parts, in bytes.
pub(crate) const PARTS_BATCH_BYTES_MAX: usize = 256 * 1024;
/// Limit of a batch's body, in bytes: escaping may lengthen every byte of text.
pub const PARTS_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Limit of one dispatch's queued text, in bytes. Beyond it parts are dropped: the result has
/// the whole text.
pub(crate) const PARTS_WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Time that parts are collected before a batch is sent.
pub(crate) const PARTS_EVERY_MS: u64 = 250;
/// Time limit of one attempt to send a batch.
pub(crate) const PARTS_TRY_MS: u64 = 10_000;
/// Time that an ended dispatch waits for its last parts before they are stored with the result.
pub(crate) const PARTS_FLUSH_MS: u64 = 2_000;
/// Limit of the response to a delivery, in bytes.
pub(crate) const DELIVERY_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time that a waiting connection has to receive a result before it is delivered by callback.
pub(crate) const HAND_OVER_MS: u64 = 10_000;

/// Interval of heartbeats.
pub const HEARTBEAT_MS: u64 = 15_000;
/// Time limit of one heartbeat.
pub(crate) const HEARTBEAT_TRY_MS: u64 = 10_000;
/// Limit of the response to a heartbeat, in bytes.
pub(crate) const HEARTBEAT_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Time limit of the engine's response to a tool request.
pub(crate) const TOOL_ASK_MS: u64 = 10_000;
/// Pause between tool requests.
pub(crate) const TOOL_PAUSE_MS: u64 = 1_000;
/// Number of failed tool requests after which the call is denied.
pub(crate) const TOOL_TRIES: u32 = 3;
/// Limit of the response to a tool request, in bytes.
pub(crate) const TOOL_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Queue length of a subscriber of all events.
pub(crate) const EVENTS_ALL_MAX: usize = 4_096;
/// Queue length of a subscriber of one dispatch.
pub(crate) const EVENTS_ONE_MAX: usize = 256;
/// Limit of event subscribers.
pub(crate) const EVENT_READERS_MAX: usize = 4_096;
/// Interval of keep-alive messages in an idle event stream.
pub(crate) const EVENTS_BEAT_MS: u64 = 15_000;

/// Pauses before a dispatch that may not have arrived is sent again.
pub(crate) const REMOTE_PAUSES_MS: [u64; 3] = [1_000, 4_000, 16_000];
/// Timeout up to which a result is awaited on the connection of its dispatch.
pub(crate) const SYNC_TIMEOUT_MS_MAX: u64 = 270_000;
/// Additional time for a result to arrive after its timeout.
pub(crate) const SYNC_MARGIN_MS: u64 = 15_000;
/// Time limit of a bridge's response to a dispatch.
pub(crate) const DISPATCH_TRY_MS: u64 = 30_000;
/// Number of attempts to cancel a dispatch.
pub(crate) const RECALL_TRIES: u32 = 3;
/// Time that a bridge has to stop a cancelled dispatch and report its cost.
pub(crate) const REMOTE_GRACE_MS: u64 = 5_000;
/// Time limit of a bridge's response to a health check.
pub(crate) const HEALTH_TRY_MS: u64 = 5_000;
/// Limit of that response, in bytes.
pub(crate) const HEALTH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time limit of opening a bridge's event stream.
pub(crate) const FOLLOW_OPEN_MS: u64 = 1_000;
/// Time that events may arrive after the result.
pub(crate) const FOLLOW_DRAIN_MS: u64 = 1_000;
/// Limit of one dispatch's event stream, in bytes.
pub(crate) const FOLLOW_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Limit of one of its events, in bytes.
pub(crate) const FOLLOW_EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a remote error's title that a message repeats.
pub(crate) const TITLE_BYTES_MAX: usize = 200;
/// Bytes of an error response that are recorded.
pub(crate) const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Limit of one line of an event stream, in bytes: a line may hold an image.
pub(crate) const EVENT_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Limit of one event of a stream, in bytes.
pub(crate) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Limit of a provider's response for one turn, in bytes.
pub(crate) const TURN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Limit of one turn's text, in bytes.
pub(crate) const TURN_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Limit of the arguments of all tool calls of one turn together, in bytes.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;
/// Limit of provider-specific content that the next turn repeats, in bytes: a model's
/// reasoning, for example.
pub(crate) const ECHO_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Limit of pieces (texts, calls, reasoning) in one turn.
pub(crate) const TURN_PIECES_MAX: usize = 1_024;
/// Limit of one dispatch's timeout: thirty days.
pub(crate) const DISPATCH_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Limit of a dispatch's turns.
pub(crate) const TURNS_MAX: u32 = 16;
/// Limit of a dispatch's tool calls.
pub const TOOL_CALLS_MAX: usize = 64;
/// Limit of the tools offered to a model.
pub(crate) const TOOLS_OFFERED_MAX: usize = 128;
/// Limit of a tool name that every provider accepts, in bytes.
pub(crate) const TOOL_NAME_BYTES_MAX: usize = 64;
/// Limit of a call id that is kept as the model wrote it, in bytes.
pub(crate) const CALL_ID_BYTES_MAX: usize = 128;
/// Limit of a tool's answer as a model sees it, in bytes.
pub(crate) const TOOL_RESULT_BYTES_MAX: usize = 64 * 1024;
/// Time limit of listing a server's tools for a model.
pub(crate) const TOOL_LIST_MS: u64 = 10_000;
/// Time limit of a tool call by a model.
pub(crate) const TOOL_CALL_MS: u64 = 120_000;
/// Output limit for providers that require one, in tokens.
pub(crate) const OUTPUT_TOKENS_DEFAULT: u64 = 4_096;
/// Smallest output limit that is still worth a request when little budget is left, in tokens.
pub(crate) const OUTPUT_TOKENS_LEAST: u64 = 64;
/// Bytes of a provider's error response that are read.
pub(crate) const COMPLAINT_READ_BYTES_MAX: usize = 64 * 1024;
/// Time limit of reading it.
pub(crate) const COMPLAINT_MS: u64 = 2_000;
/// Bytes of it that a message shows.
pub(crate) const COMPLAINT_BYTES_MAX: usize = 4 * 1024;
/// Limit of a provider's `Retry-After`.
pub(crate) const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Time to read the end of a complete response, so that its connection can be reused.
pub(crate) const LAST_BYTES_MS: u64 = 50;
/// Time limit of a provider's health check.
pub(crate) const HEALTH_MS: u64 = 5_000;
/// Limit of a stored conversation, in bytes.
pub(crate) const CONVERSATION_BYTES_MAX: usize = 256 * 1024;
/// Limit of one message of a stored conversation, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Limit of a stored artefact, in bytes.
pub(crate) const ARTEFACT_BYTES_MAX: usize = 1024 * 1024;
/// Limit of a file that is streamed as a part, in bytes. A larger one comes with the answer.
pub(crate) const MEDIA_PART_BYTES_MAX: usize = 256 * 1024;
/// Limit of a streamed file's URL, in bytes: the largest file in base64.
pub(crate) const MEDIA_URL_BYTES_MAX: usize = 512 * 1024;
/// Limit of one dispatch's artefacts.
pub(crate) const ARTEFACTS_MAX: usize = 64;

/// Time limit of a call in a conformance suite.
pub(crate) const CONFORMANCE_CALL_MS: u64 = 30_000;
/// Time that a cancelled, dropped or abandoned call has to end.
pub(crate) const CONFORMANCE_STOP_MS: u64 = 1_000;
/// Delay before a call is cancelled or dropped.
pub(crate) const CONFORMANCE_BEGIN_MS: u64 = 200;
/// Time that started work has to become visible from outside.
pub(crate) const CONFORMANCE_SEEN_MS: u64 = 5_000;
/// Timeout of a call that is meant to exceed it.
pub(crate) const CONFORMANCE_TIMEOUT_MS: u64 = 300;
/// Poll interval of the suites.
pub(crate) const CONFORMANCE_LOOK_MS: u64 = 5;
/// Number of concurrent calls in a case.
pub(crate) const CONFORMANCE_AT_ONCE: usize = 8;
/// Size of a long message, in bytes.
pub(crate) const CONFORMANCE_MESSAGE_BYTES: usize = 1024 * 1024;
/// Time limit of a gateway's response.
pub(crate) const CONFORMANCE_ANSWER_MS: u64 = 10_000;
/// Time limit of a result.
pub(crate) const CONFORMANCE_RESULT_MS: u64 = 15_000;
/// Time that a case waits to see that nothing more arrives.
pub(crate) const CONFORMANCE_QUIET_MS: u64 = 600;
/// Timeout of a dispatch that is sent twice.
pub(crate) const CONFORMANCE_ONCE_MS: u64 = 1_000;
/// Limit of stored results.
pub(crate) const CONFORMANCE_RESULTS_MAX: usize = 10_000;
/// Limit of a failed case's explanation, in bytes.
pub(crate) const CONFORMANCE_WHY_BYTES_MAX: usize = 2_048;

/// Limit of the file of accepted tool definitions, in bytes.
pub(crate) const PINS_BYTES_MAX: usize = 64 * 1024 * 1024;
