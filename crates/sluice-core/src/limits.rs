//! Every bound of the core, in one place.
//!
//! INVARIANT: exceeding a bound is a clear error with a code, never a hang, a panic or
//! unbounded memory.

/// Maximum size of a document, library or registry file, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum nesting of a document, and of any value made from one.
pub const DOCUMENT_DEPTH_MAX: usize = 64;
/// Maximum number of nodes in a document, with each use of an alias counted.
pub(crate) const DOCUMENT_NODES_MAX: usize = 262_144;
/// Maximum number of steps (or nodes of a lens graph) in one document.
pub const STEPS_MAX: usize = 10_000;
/// Maximum number of edges in one lens document.
pub(crate) const EDGES_MAX: usize = 50_000;
/// Maximum size of all copies that the steps of one document contain: of `defaults`, library
/// steps and lenses.
pub(crate) const COPIED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of names compared with misspelt ones, over all problems of one document.
pub(crate) const SUGGESTIONS_COMPARED_MAX: usize = 500_000;
/// Maximum number of problems reported for one document; one more line counts the rest.
pub(crate) const PROBLEMS_MAX: usize = 200;
/// Maximum length of an identifier: step ids, names, labels.
pub const NAME_CHARS_MAX: usize = 128;
/// Maximum length of the id of a lens edge, which drawing programs generate.
pub(crate) const EDGE_ID_CHARS_MAX: usize = 200;

/// Maximum size of an expression, in bytes.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 4096;
/// Maximum nesting of an expression.
pub(crate) const EXPRESSION_DEPTH_MAX: usize = 32;
/// Work units that one evaluation may spend: one for each operator, for each value visited and
/// for each 64 bytes of text searched.
pub(crate) const EXPRESSION_FUEL: u32 = 100_000;
/// Maximum size of a regular expression, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;
/// Maximum size of a compiled regular expression, in bytes. Unicode classes are large:
/// `\w{1,30}` alone takes over 256 KiB.
pub(crate) const PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of references or placeholders in one template.
pub(crate) const TEMPLATE_REFERENCES_MAX: usize = 1000;
/// Maximum depth of quoting in a shell command with references.
pub(crate) const SHELL_DEPTH_MAX: usize = 64;
/// Maximum size of a rendered template, in bytes.
pub(crate) const TEMPLATE_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum nesting of a field schema (`items` and `properties`).
pub(crate) const SCHEMA_DEPTH_MAX: usize = 16;
/// Maximum number of violations reported for one set of outputs or inputs.
pub(crate) const VIOLATIONS_MAX: usize = 100;

/// Maximum number of different flow labels in one document.
pub(crate) const FLOW_LABELS_MAX: usize = 128;

/// Maximum number of steps that a flow analysis tells apart, with those of every call of a
/// sub-workflow; further calls share the steps of the workflow.
pub(crate) const FLOW_STEPS_MAX: usize = 20_000;

/// Maximum number of members in one team.
pub(crate) const TEAM_MEMBERS_MAX: usize = 256;

/// Default number of steps of one run in flight.
pub(crate) const MAX_PARALLEL_DEFAULT: u32 = 64;
/// Maximum value of `max_parallel`.
pub(crate) const MAX_PARALLEL_MAX: u32 = 1024;
/// Default number of instances of one `for_each` step.
pub(crate) const MAX_ITEMS_DEFAULT: u32 = 1000;
/// Maximum value of `max_items`.
pub(crate) const MAX_ITEMS_MAX: u32 = 10_000;
/// Maximum duration in a document: a year.
pub const DURATION_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1000;
/// Default time limit of a `.lobsterX` step.
pub(crate) const STEP_TIMEOUT_MS_DEFAULT: u64 = 600_000;
/// Default time limit of a lens node.
pub(crate) const NODE_TIMEOUT_MS_DEFAULT: u64 = 60_000;
/// Maximum number of attempts in a `retry` map.
pub(crate) const ATTEMPTS_MAX: u32 = 100;
/// Maximum number of repeated requests after violations (`repair`).
pub(crate) const REASK_MAX: u32 = 10;

/// Maximum size of all layers of one prompt, without the message.
pub(crate) const LAYERS_BYTES_MAX: usize = 256 * 1024;
/// Default size of what one memory profile loads.
pub(crate) const MEMORY_BYTES_DEFAULT: usize = 16 * 1024;
/// Maximum size of a remembered output, in bytes; a longer one is cut.
pub(crate) const REMEMBERED_OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// Maximum size of a step's bound inputs.
pub(crate) const INPUT_BYTES_MAX: usize = 512 * 1024;
/// Maximum depth of child runs.
pub const RECURSION_DEPTH_MAX: u32 = 5;
/// Default expiry of an approval request: seven days.
pub(crate) const APPROVAL_MS_DEFAULT: u64 = 7 * 24 * 60 * 60 * 1000;
/// Default time that a step waits at a gate that delays it: an hour.
pub(crate) const QUEUE_MS_DEFAULT: u64 = 60 * 60 * 1000;
/// How long a reservation stays for a dispatch with unknown cost: a day.
pub(crate) const RESERVATION_MS: u64 = 24 * 60 * 60 * 1000;
/// Maximum plausible cost of a single dispatch, in micro-cents: 100,000 dollars.
pub const COST_MICRO_CENTS_MAX: u64 = 10_000_000_000_000;
/// Maximum plausible number of input or output tokens of a single dispatch.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;
/// Maximum size of a log line of a step, in bytes; a longer one is cut.
pub const LOG_LINE_BYTES_MAX: usize = 16 * 1024;
/// Maximum size of an adapter's text output, in bytes.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum size of a text for the moderator, in bytes: an output, as text and as values.
pub const MODERATED_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;
/// Maximum size of a phrase that a moderated stream holds back completely, in bytes without
/// blanks. Word lists accept no longer ones.
pub const PHRASE_BYTES_MAX: usize = 256;
/// Minimum size of an event field that is stored as a blob instead of in its frame, in bytes of
/// JSON.
pub(crate) const BLOB_BYTES_MIN: usize = 64 * 1024;

/// Maximum number of erased events in one audit entry; more need several entries.
pub(crate) const ERASED_EVENTS_MAX: usize = 1000;
/// Maximum number of findings that a verification lists; the rest is counted.
pub(crate) const FINDINGS_MAX: usize = 1000;
/// Maximum size of a packet, in bytes.
pub(crate) const PACKET_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Maximum number of parts of a child's result whose origin the parent receives.
pub(crate) const CHILD_ORIGINS_MAX: usize = 10_000;

/// Maximum number of event names in an outbound webhook.
pub(crate) const WEBHOOK_EVENTS_MAX: usize = 64;

/// Minimum time between two slots of a schedule, in milliseconds.
pub(crate) const EVERY_MS_MIN: u64 = 1000;
/// How far back missed slots are examined, in milliseconds.
pub(crate) const SLOT_LOOK_BACK_MS: u64 = 31 * 24 * 60 * 60 * 1000;
/// Maximum number of slots examined at once.
pub(crate) const SLOTS_PER_LOOK_MAX: usize = 50_000;
/// If more slots than this are due at once, they are recorded together.
pub(crate) const SLOT_ROWS_MAX: usize = 50;
/// Number of slots of one schedule that a store keeps; older ones are deleted.
pub const SLOTS_KEPT: usize = 1000;
/// Default page size of a list that a store returns.
pub const LIST_DEFAULT: usize = 100;
/// Largest page size of a list that a store returns.
pub const LIST_MAX: usize = 1000;
/// Number of finished deliveries of one webhook that a store keeps.
pub const DELIVERIES_KEPT: usize = 1000;
/// Number of remembered outputs of one agent that a store keeps; older ones are deleted.
pub const REMEMBERED_OUTPUTS_MAX: usize = 32;
/// How long an idempotency key is valid, in milliseconds.
pub const KEY_MS: u64 = 24 * 60 * 60 * 1000;
/// Maximum number of missed slots that are backfilled.
pub(crate) const BACKFILL_MAX: usize = 10;

/// Maximum number of rows in a cost report.
pub(crate) const COST_ROWS_MAX: usize = 10_000;

/// Number of turns of a model with tools for which money is reserved.
pub(crate) const TOOL_TURNS_RESERVED: u64 = 4;
/// Maximum timeout of a step whose gateway answers synchronously, in milliseconds.
pub(crate) const SYNC_MS_MAX: u64 = 270_000;
/// Maximum number of tool calls in an attempt.
pub const TOOL_CALLS_MAX: usize = 256;
/// Maximum size of a value that an approval endorses, in bytes of JSON: a person cannot check
/// a longer one.
pub(crate) const ENDORSED_BYTES_MAX: usize = 4096;
/// Most events of a run that policies about history see; older ones are dropped.
pub(crate) const HISTORY_EVENTS_MAX: usize = 10_000;
/// Most sessions of a run that are told apart.
pub(crate) const HISTORY_SESSIONS_MAX: usize = 1000;
/// Maximum size of a tool's input, in bytes of JSON.
pub(crate) const TOOL_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of the answer of a tool in the journal.
pub(crate) const TOOL_CONTENT_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of the arguments of a tool call on the first line of its approval.
pub(crate) const SHOWN_LINE_CHARS_MAX: usize = 200;
/// Maximum length of one value in the question of an approval.
pub(crate) const SHOWN_VALUE_CHARS_MAX: usize = 160;
/// Maximum length of what the caller asked for, as an approval shows it.
pub(crate) const SHOWN_ASKED_CHARS_MAX: usize = 2000;
/// Maximum length of all answers of tools that a run keeps to find values in them.
pub(crate) const SEEN_CONTENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum length of a text that the index of seen values takes, and of one that it compares,
/// in characters.
pub(crate) const SEEN_TEXT_CHARS_MAX: usize = 64 * 1024;
/// Maximum length of all texts that a run has seen, in characters.
pub(crate) const SEEN_RUN_CHARS_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of texts of answers that a run has seen.
pub(crate) const SEEN_LEAVES_MAX: usize = 4096;
/// Maximum number of items of an argument that are compared.
pub(crate) const SEEN_ITEMS_MAX: usize = 256;
/// Maximum length of a record that is not also a stranger's text, in characters.
pub(crate) const SEEN_RECORD_CHARS_MAX: usize = 64;
/// Work units to find where the values of one call were seen: one for each place and for each
/// 64 bytes of text compared.
pub(crate) const SEEN_WORK_MAX: u32 = 1_000_000;
