//! Every bound of the core, in one place.
//!
//! INVARIANT: passing a bound is a clear error with a code, never a hang, a
//! panic or memory that grows with what a stranger sent.

/// Longest document, library or registry file, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of a document, and of any value made from one.
pub const DOCUMENT_DEPTH_MAX: usize = 64;
/// Most nodes a document may expand to, aliases counted each time they are used.
pub const DOCUMENT_NODES_MAX: usize = 262_144;
/// Most steps (or nodes of a lens graph) in one document.
pub const STEPS_MAX: usize = 10_000;
/// Most edges in one lens document.
pub const EDGES_MAX: usize = 50_000;
/// Most bytes that the steps of one document take over, each its own copy: of
/// `defaults`, library steps and lenses.
pub const COPIED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most names compared with misspelt ones, over all problems of one document.
pub const SUGGESTIONS_COMPARED_MAX: usize = 500_000;
/// Most problems reported for one document; one more line says that there are others.
pub const PROBLEMS_MAX: usize = 200;
/// Longest identifier: step ids, names, labels.
pub const NAME_CHARS_MAX: usize = 128;
/// Longest id of a lens edge, which drawing programs write.
pub const EDGE_ID_CHARS_MAX: usize = 200;

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// Deepest nesting of an expression.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
/// Work units one evaluation may spend: a unit per operator, per value visited
/// and per 64 bytes of text searched.
pub const EXPRESSION_FUEL: u32 = 100_000;
/// Longest regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Largest compiled regular expression, in bytes. Unicode classes are large:
/// `\w{1,30}` alone takes over 256 KiB.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// Most references or placeholders in one template.
pub const TEMPLATE_REFERENCES_MAX: usize = 1000;
/// Deepest quoting of a shell command that is followed to place references in it.
pub const SHELL_DEPTH_MAX: usize = 64;
/// Longest text a template may become, in bytes.
pub const TEMPLATE_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Deepest field schema (`items` and `properties` inside each other).
pub const SCHEMA_DEPTH_MAX: usize = 16;
/// Most violations reported for one set of outputs or inputs.
pub const VIOLATIONS_MAX: usize = 100;

/// Most members of one team.
pub const TEAM_MEMBERS_MAX: usize = 256;

/// Steps of one run in flight at once, unless the document says otherwise.
pub const MAX_PARALLEL_DEFAULT: u32 = 64;
/// Highest `max_parallel` a document may ask for.
pub const MAX_PARALLEL_MAX: u32 = 1024;
/// Instances of one `for_each` step, unless the step says otherwise.
pub const MAX_ITEMS_DEFAULT: u32 = 1000;
/// Highest `max_items` a step may ask for.
pub const MAX_ITEMS_MAX: u32 = 10_000;
/// Longest duration a document may name: a year.
pub const DURATION_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1000;
/// Time a `.lobsterX` step may take, unless it says otherwise.
pub const STEP_TIMEOUT_MS_DEFAULT: u64 = 600_000;
/// Time a lens node may take, unless it says otherwise.
pub const NODE_TIMEOUT_MS_DEFAULT: u64 = 60_000;
/// Most attempts a `retry` map may ask for.
pub const ATTEMPTS_MAX: u32 = 100;
/// Most times a step may be asked again with its violations (`repair`).
pub const REASK_MAX: u32 = 10;

/// Longest standing instruction of the platform or the owner, in bytes.
pub const INSTRUCTION_BYTES_MAX: usize = 32 * 1024;
/// Most bytes that all layers of one prompt may have beside the instruction.
pub const LAYERS_BYTES_MAX: usize = 256 * 1024;
/// Longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 32 * 1024;
/// Most notes of one memory profile.
pub const MEMORY_NOTES_MAX: usize = 50;
/// Most answers of an agent that one memory profile loads.
pub const MEMORY_OUTPUTS_MAX: usize = 20;
/// Most bytes that one memory profile loads; what is longer is cut.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024;
/// The same, unless the profile says otherwise.
pub const MEMORY_BYTES_DEFAULT: usize = 16 * 1024;
/// Longest answer that is remembered, in bytes; what is longer is cut.
pub const MEMO_BYTES_MAX: usize = 4 * 1024;

/// Most bytes that a step's bound inputs may have.
pub const INPUT_BYTES_MAX: usize = 512 * 1024;
/// How many runs may stand above each other.
pub const RECURSION_DEPTH_MAX: u32 = 5;
/// How long a question stays open, unless its step says otherwise: seven days.
pub const APPROVAL_MS_DEFAULT: u64 = 7 * 24 * 60 * 60 * 1000;
/// How long a step waits at a gate that says: not now. An hour.
pub const QUEUE_MS_DEFAULT: u64 = 60 * 60 * 1000;
/// How long money stays reserved for a dispatch nobody knows the cost of: a day.
pub const RESERVATION_MS: u64 = 24 * 60 * 60 * 1000;
/// Most a single dispatch can believably cost, in micro-cents: 100,000 dollars.
pub const COST_MICRO_CENTS_MAX: u64 = 10_000_000_000_000;
/// Most tokens a single dispatch can believably read or write.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;
/// Longest line of a step's log, in bytes; what is longer is cut.
pub const LOG_LINE_BYTES_MAX: usize = 16 * 1024;
/// Longest text an adapter may answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest text that a moderator is asked about, in bytes: an answer, as text
/// and as values.
pub const MODERATED_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;
/// Longest phrase that a stream under moderation is sure to hold back whole, in
/// bytes without blanks. Word lists take no longer ones.
pub const PHRASE_BYTES_MAX: usize = 256;
/// Longest field of an event that is kept in its frame, in bytes of JSON; a
/// longer one is stored by its hash.
pub const BLOB_BYTES_MIN: usize = 64 * 1024;

/// Most events that one audit entry says were erased; more take more entries.
pub const ERASED_EVENTS_MAX: usize = 1000;
/// Most findings that a verification names; the others are counted.
pub const FINDINGS_MAX: usize = 1000;
/// Longest packet that is read, in bytes.
pub const PACKET_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most parts of a child's result whose origin its parent is told.
pub const CHILD_ORIGINS_MAX: usize = 10_000;

/// Most names of events that a webhook lists.
pub const WEBHOOK_EVENTS_MAX: usize = 64;

/// Shortest time between two slots of a schedule, in milliseconds.
pub const EVERY_MS_MIN: u64 = 1000;
/// How far back slots that nobody was there for are gone through, in milliseconds.
pub const SLOT_LOOK_BACK_MS: u64 = 31 * 24 * 60 * 60 * 1000;
/// Most slots that are gone through at once.
pub const SLOTS_PER_LOOK_MAX: usize = 50_000;
/// More slots than this that are due at once are told together.
pub const SLOT_ROWS_MAX: usize = 50;
/// Slots of one schedule that a store keeps; the oldest beyond that are forgotten.
pub const SLOTS_KEPT: usize = 1000;
/// How long an idempotency key stands for its run, in milliseconds.
pub const KEY_MS: u64 = 24 * 60 * 60 * 1000;
/// Most missed slots that are made up for.
pub const BACKFILL_MAX: usize = 10;

/// Most rows that a question about costs is answered with.
pub const COST_ROWS_MAX: usize = 10_000;

/// Turns of a model with tools that money is reserved for.
pub const TOOL_TURNS_RESERVED: u64 = 4;
/// Longest timeout of a step whose gateway is asked to answer at once, in milliseconds.
pub const SYNC_MS_MAX: u64 = 270_000;
/// Most calls of tools that an attempt may ask for.
pub const TOOL_CALLS_MAX: usize = 256;
/// Longest input of a tool, in bytes of JSON.
pub const TOOL_INPUT_BYTES_MAX: usize = 64 * 1024;
