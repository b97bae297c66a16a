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
/// Most secrets that are looked for.
pub const SCRUBBED_MAX: usize = 1_000;

/// How long a cancelled command may take to end by itself.
pub const GRACE_MS: u64 = 2_000;
/// How long an ended command's pipes may be silent before they are given up: a
/// process that left the group can hold them open for ever.
pub const SILENCE_MS: u64 = 500;
/// How long a killed survivor of an earlier life may take to be gone.
pub const SURVIVOR_WAIT_MS: u64 = 5_000;
/// How often that is looked at.
pub const SURVIVOR_LOOK_MS: u64 = 10;

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
/// Most artefacts of one dispatch that are told of.
pub const ARTEFACTS_MAX: usize = 64;
