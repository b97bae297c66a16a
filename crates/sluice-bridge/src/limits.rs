//! Every bound of the bridge, in one place.
//!
//! INVARIANT: passing a bound is a clear error, never a hang, a panic or memory
//! that grows with what a stranger sent.

use sluice_core::money::Money;

/// Most that one scripted answer may cost: a million dollars. More is a slip
/// of the keyboard.
pub const MOCK_COST_MAX: Money = Money::from_micro_cents(1_000_000 * 100_000_000);
/// Most tokens of one kind in one scripted answer.
pub const MOCK_TOKENS_MAX: u64 = 1_000_000_000;

/// Longest standard output of a command, in bytes.
pub const STDOUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest standard error of a command, in bytes.
pub const STDERR_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest line of standard error that is logged in one piece, in bytes.
pub const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// How much of the end of standard error is told when a command fails, in bytes.
pub const STDERR_TAIL_BYTES_MAX: usize = 2 * 1024;
/// Bytes read from a command at once.
pub const READ_BYTES_MAX: usize = 16 * 1024;
/// Longest argument or environment variable that Linux hands to a process, its
/// name and the closing zero counted.
pub const ARGUMENT_BYTES_MAX: usize = 128 * 1024;
/// How long a command waits before it is started again, when the machine has no file
/// handle or process left; then twice as long each time.
pub const SPAWN_RETRY_MS: u64 = 10;
/// Longest such wait.
pub const SPAWN_RETRY_MS_MAX: u64 = 500;
/// How long a command waits altogether, unless its step ends before.
pub const SPAWN_WAIT_MS_MAX: u64 = 10 * 60 * 1000;
/// How long a new connection has to send its request before it makes room for another.
pub const CONNECTION_GRACE_MS: u64 = 100;

/// Longest word list, in bytes.
pub const WORD_LIST_BYTES_MAX: usize = 1024 * 1024;
/// Most phrases in a word list.
pub const PHRASES_MAX: usize = 10_000;
/// Longest answer of a moderator that is read, in bytes.
pub const VERDICT_BYTES_MAX: usize = 64 * 1024;
/// How long a moderator elsewhere may take to answer.
pub const MODERATOR_ANSWER_MS: u64 = 10_000;

/// Most entries on the list of what may be called beside the public network.
pub const ALLOWED_MAX: usize = 1_000;
/// Most addresses of one name that are looked at.
pub const ADDRESSES_MAX: usize = 16;
/// How often one is sent on before it is an error.
pub const REDIRECTS_MAX: usize = 5;
/// How long somebody elsewhere may take to be reached.
pub const CONNECT_MS: u64 = 3_000;
/// Longest body that is sent to somebody elsewhere, in bytes.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most ports to which connections are kept for the next call.
pub const PORTS_MAX: usize = 32;
/// Most idle connections to one host.
pub const POOL_IDLE_MAX: usize = 4;
/// How long a connection stays open for the next call.
pub const POOL_IDLE_MS: u64 = 30_000;

/// Longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Shortest secret that is looked for in texts, in bytes: shorter ones would take
/// words out of them.
pub const SCRUBBED_BYTES_MIN: usize = 8;
/// Longest secret that is also looked for as base64 and in hexadecimal, in bytes.
pub const ENCODED_BYTES_MAX: usize = 4096;
/// Most secrets that are known at once; more are not read.
pub const SECRETS_MAX: usize = 4_000;
/// Most bytes of all known secrets together.
pub const SECRETS_BYTES_MAX: usize = 1024 * 1024;
/// How many values of one variable or file stay known after it was changed.
pub const SECRET_VALUES_MAX: usize = 16;

/// How long a cancelled command may take to end by itself.
pub const GRACE_MS: u64 = 2_000;
/// How long an ended command's pipes may be silent before they are given up: a
/// process that left the group can hold them open for ever.
pub const SILENCE_MS: u64 = 500;
/// How long a killed survivor of an earlier life may take to be gone.
pub const SURVIVOR_WAIT_MS: u64 = 5_000;
/// How often that is looked at.
pub const SURVIVOR_LOOK_MS: u64 = 10;

/// Longest message of a server of tools, in bytes.
pub const MCP_MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a server of tools may take to start and to greet.
pub const MCP_START_MS: u64 = 30_000;
/// How long a server of tools may take to say what it has.
pub const MCP_LIST_MS: u64 = 30_000;
/// How long a tool may take, unless its step ends sooner.
pub const MCP_CALL_MS: u64 = 600_000;
/// How long a server of tools may take to hear something that it need not answer.
pub const MCP_NOTE_MS: u64 = 5_000;
/// Most calls of one server of tools at once.
pub const MCP_CALLS_MAX: usize = 256;
/// Most messages that wait to be written to a server of tools.
pub const MCP_QUEUE_MAX: usize = 64;
/// Most pages of a list of tools.
pub const MCP_PAGES_MAX: usize = 100;
/// Most tools of one server.
pub const MCP_TOOLS_MAX: usize = 1_000;
/// Longest name of a tool, in bytes.
pub const MCP_NAME_BYTES_MAX: usize = 128;
/// Most that is kept of a tool's description, in bytes.
pub const MCP_DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// How long a list of tools is believed where nobody tells of changes.
pub const MCP_LIST_AGE_MS: u64 = 300_000;
/// How much of a server's standard error is logged in one life of it, in bytes.
pub const MCP_STDERR_BYTES_MAX: usize = 1024 * 1024;
/// Most that is kept of a tool's answer, in bytes.
pub const TOOL_TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Longest recording of what providers were asked and answered, in bytes.
pub const RECORDING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Most differences that are told of one request, and most requests that are told of.
pub const DIFFERENCES_MAX: usize = 20;
/// How much of a value is shown where a replay differs, in characters.
pub const DIFFERENCE_CHARS_MAX: usize = 120;

/// Longest id of a step, or name of a workflow or an agent, in bytes.
pub const STEP_BYTES_MAX: usize = 1024;
/// Longest name of a provider or a model, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Longest reference to a conversation, in bytes.
pub const SESSION_BYTES_MAX: usize = 16 * 1024;
/// Longest URL that a result is sent to, in bytes.
pub const URL_BYTES_MAX: usize = 4 * 1024;
/// Longest token of a dispatch, in bytes.
pub const TOKEN_BYTES_MAX: usize = 1024;
/// Most tools that a dispatch names.
pub const TOOLS_MAX: usize = 10_000;
/// Most environment variables of a dispatch.
pub const ENV_MAX: usize = 10_000;
/// Longest that a dispatch may take: thirty days.
pub const TIMEOUT_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Longest message of an error that is kept, in bytes.
pub const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Longest result, in bytes.
pub const CALLBACK_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest dispatch, in bytes.
pub const DISPATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest file of a spool that is read, in bytes: a dispatch or a result, and
/// what is written around it.
pub const SPOOL_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Most changes that wait for the spool's writer.
pub const SPOOL_QUEUE_MAX: usize = 256;
/// Most changes that share a sync of the spool's directory.
pub const SPOOL_BATCH_MAX: usize = 64;
/// Most dispatches that a bridge knows, those it only remembers counted.
pub const KNOWN_MAX: usize = 400_000;
/// Most dispatches that a bridge works on at once.
pub const RUNNING_MAX: usize = 2_048;
/// Most connections to a bridge.
pub const CONNECTIONS_MAX: usize = 8_192;
/// How long somebody may take to say what they want of a bridge. Longer than a
/// client keeps a connection for its next call, so that none is closed under it.
pub const HEAD_MS: u64 = POOL_IDLE_MS + 5_000;
/// How long somebody may take to read what a bridge sends them.
pub const SLOW_READER_MS: u64 = 30_000;
/// How long the body of a request to a bridge may take.
pub const BODY_MS: u64 = 60_000;
/// Longest request to stop a dispatch, in bytes.
pub const CANCEL_BYTES_MAX: usize = 16 * 1024;
/// How long work that was called off may take to end by itself.
pub const CANCEL_GRACE_MS: u64 = 3_000;
/// How long work may go on when a bridge stops.
pub const DRAIN_MS: u64 = 10_000;
/// How long a delivered result is remembered.
pub const TOMBSTONE_MS: u64 = 24 * 3_600_000;
/// How long a result that nobody takes is remembered.
pub const GIVEN_UP_KEPT_MS: u64 = 7 * 24 * 3_600_000;
/// How often a bridge forgets what it need not remember.
pub const TIDY_MS: u64 = 600_000;
/// How long that counts.
pub const HEALTH_KEPT_MS: u64 = 5_000;

/// Most deliveries under way at once.
pub const DELIVERIES_MAX: usize = 64;
/// How long a delivery is tried.
pub const DELIVERY_MS: u64 = 24 * 3_600_000;
/// How long one try of a delivery may take.
pub const DELIVERY_TRY_MS: u64 = 30_000;
/// Most parts of an answer in one batch.
pub const PARTS_MAX: usize = 1_000;
/// Most parts of an answer of one dispatch.
pub const PARTS_NUMBER_MAX: u64 = 1_000_000;
/// Most text in one batch of parts, in bytes.
pub const PARTS_BATCH_BYTES_MAX: usize = 256 * 1024;
/// Longest body of a batch of parts that an engine reads, in bytes: every byte of text
/// may have to be escaped.
pub const PARTS_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most text that waits to be delivered for one dispatch, in bytes. Past that the rest is
/// left out: the result has the whole text.
pub const PARTS_WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long parts are gathered before they are sent.
pub const PARTS_EVERY_MS: u64 = 250;
/// How long one try to deliver parts may take.
pub const PARTS_TRY_MS: u64 = 10_000;
/// How long a finished dispatch waits for its last parts before they go with the result.
pub const PARTS_FLUSH_MS: u64 = 2_000;
/// Longest answer to a delivery that is read, in bytes.
pub const DELIVERY_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long whoever waits for a result may take to take it.
pub const HAND_OVER_MS: u64 = 10_000;

/// How often a bridge says that it is there.
pub const HEARTBEAT_MS: u64 = 15_000;
/// How long saying so may take.
pub const HEARTBEAT_TRY_MS: u64 = 10_000;
/// Longest answer to it that is read, in bytes.
pub const HEARTBEAT_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How long the engine may take to answer about a tool.
pub const TOOL_ASK_MS: u64 = 10_000;
/// How long is waited before it is asked again.
pub const TOOL_PAUSE_MS: u64 = 1_000;
/// How often it is asked when it does not answer.
pub const TOOL_TRIES: u32 = 3;
/// Longest answer about a tool, in bytes.
pub const TOOL_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Most events that wait for somebody who follows everything.
pub const EVENTS_ALL_MAX: usize = 4_096;
/// Most events that wait for somebody who follows one dispatch.
pub const EVENTS_ONE_MAX: usize = 256;
/// Most who follow events at once.
pub const EVENT_READERS_MAX: usize = 4_096;
/// How often somebody is told that nothing happens.
pub const EVENTS_BEAT_MS: u64 = 15_000;

/// The waits before a dispatch that may not have arrived is sent again.
pub const REMOTE_PAUSES_MS: [u64; 3] = [1_000, 4_000, 16_000];
/// The longest that a result is waited for on one connection.
pub const SYNC_TIMEOUT_MS_MAX: u64 = 270_000;
/// How much longer than its time a result may take to come.
pub const SYNC_MARGIN_MS: u64 = 15_000;
/// How long a bridge may take to say that it has a dispatch.
pub const DISPATCH_TRY_MS: u64 = 30_000;
/// How often a bridge is asked to stop a dispatch.
pub const RECALL_TRIES: u32 = 3;
/// How long a bridge may take to stop what was called off, and say what it cost.
pub const REMOTE_GRACE_MS: u64 = 5_000;
/// How long a bridge may take to say how it is.
pub const HEALTH_TRY_MS: u64 = 5_000;
/// Longest answer to that, in bytes.
pub const HEALTH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a bridge may take to begin telling of a dispatch.
pub const FOLLOW_OPEN_MS: u64 = 1_000;
/// How long what was told may come after the result.
pub const FOLLOW_DRAIN_MS: u64 = 1_000;
/// The most that is told of a dispatch, in bytes.
pub const FOLLOW_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest event of it, in bytes.
pub const FOLLOW_EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of what somebody says went wrong is repeated, in bytes.
pub const TITLE_BYTES_MAX: usize = 200;
/// How much of an answer with an error status is recorded, in bytes.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Longest line of a stream of events, in bytes: a picture may stand in one.
pub const EVENT_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest event of a stream, in bytes.
pub const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest answer of a provider for one turn as it is sent, in bytes.
pub const TURN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest text of one turn of a model, in bytes.
pub const TURN_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest arguments of all calls of one turn together, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;
/// Most that is taken over into the next turn beside text and calls, in bytes:
/// what a model thought, in its provider's own words.
pub const ECHO_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most pieces (texts, calls, thoughts) of one turn of a model.
pub const TURN_PIECES_MAX: usize = 1_024;
/// Longest time for one dispatch to a model.
pub const DISPATCH_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// How often a model is asked within one dispatch.
pub const TURNS_MAX: u32 = 16;
/// Most calls of tools within one dispatch.
pub const TOOL_CALLS_MAX: usize = 64;
/// Most tools that a model is offered.
pub const TOOLS_OFFERED_MAX: usize = 128;
/// Longest name of a tool that every provider takes.
pub const TOOL_NAME_BYTES_MAX: usize = 64;
/// Longest name of a call that is kept as its model gave it, in bytes.
pub const CALL_ID_BYTES_MAX: usize = 128;
/// Longest answer of a tool that a model is shown, in bytes.
pub const TOOL_RESULT_BYTES_MAX: usize = 64 * 1024;
/// How long a server of tools may take to say which it has.
pub const TOOL_LIST_MS: u64 = 10_000;
/// How long a tool may take to answer.
pub const TOOL_CALL_MS: u64 = 120_000;
/// Longest answer of a model whose provider wants to be told one, in tokens.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 4_096;
/// Shortest answer that is worth asking for when little money is left, in tokens.
pub const OUTPUT_TOKENS_LEAST: u64 = 64;
/// How much of a provider's complaint is read, in bytes.
pub const COMPLAINT_READ_BYTES_MAX: usize = 64 * 1024;
/// How long it may take to be read.
pub const COMPLAINT_MS: u64 = 2_000;
/// How much of it is shown, in bytes.
pub const COMPLAINT_BYTES_MAX: usize = 4 * 1024;
/// Longest time a provider may ask us to wait.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// How long the end of an answer may take that has said all it says, so that its
/// connection can be used again.
pub const LAST_BYTES_MS: u64 = 50;
/// How long a provider may take to say that it is there.
pub const HEALTH_MS: u64 = 5_000;
/// Longest conversation that is kept, in bytes.
pub const CONVERSATION_BYTES_MAX: usize = 256 * 1024;
/// Longest text of a conversation that is kept, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Largest artefact that is kept, in bytes.
pub const ARTEFACT_BYTES_MAX: usize = 1024 * 1024;
/// Largest file that is a part of a stream, in bytes. A larger one comes with the answer.
pub const MEDIA_PART_BYTES_MAX: usize = 256 * 1024;
/// Longest address of a part of a stream, in bytes: that of the largest file in base64.
pub const MEDIA_URL_BYTES_MAX: usize = 512 * 1024;
/// Most artefacts of one dispatch that are told of.
pub const ARTEFACTS_MAX: usize = 64;

/// How long a call of a suite may take that should be answered soon.
pub const CONFORMANCE_CALL_MS: u64 = 30_000;
/// How long a call may take to end that was cancelled, dropped or abandoned.
pub const CONFORMANCE_STOP_MS: u64 = 1_000;
/// How long a call is left alone before it is cancelled or dropped.
pub const CONFORMANCE_BEGIN_MS: u64 = 200;
/// How long work may take to be seen from outside.
pub const CONFORMANCE_SEEN_MS: u64 = 5_000;
/// How long a call is given that takes longer.
pub const CONFORMANCE_TIMEOUT_MS: u64 = 300;
/// How often it is looked at whether something has ended.
pub const CONFORMANCE_LOOK_MS: u64 = 5;
/// How many calls are made at once.
pub const CONFORMANCE_AT_ONCE: usize = 8;
/// How long a long message is, in bytes.
pub const CONFORMANCE_MESSAGE_BYTES: usize = 1024 * 1024;
/// How long a gateway may take to answer a request.
pub const CONFORMANCE_ANSWER_MS: u64 = 10_000;
/// How long a result may take to come.
pub const CONFORMANCE_RESULT_MS: u64 = 15_000;
/// How long it is watched that nothing more comes.
pub const CONFORMANCE_QUIET_MS: u64 = 600;
/// How long a dispatch is given that is sent twice.
pub const CONFORMANCE_ONCE_MS: u64 = 1_000;
/// Most results that are kept.
pub const CONFORMANCE_RESULTS_MAX: usize = 10_000;
/// Longest account of why a case failed, in bytes.
pub const CONFORMANCE_WHY_BYTES_MAX: usize = 2_048;

/// Longest file with the definitions of tools that were accepted, in bytes.
pub const PINS_BYTES_MAX: usize = 64 * 1024 * 1024;
