//! All limits of this crate.
//!
//! INVARIANT: exceeding a limit is a clear error, never a hang, a panic or unbounded
//! memory.

/// Largest policy file, in bytes.
pub(crate) const POLICY_FILE_BYTES_MAX: usize = 256 * 1024;
/// Largest policy set, in bytes.
pub(crate) const POLICIES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest number of policies in a set.
pub(crate) const POLICIES_MAX: usize = 10_000;
/// Deepest nesting of brackets in a policy.
pub(crate) const POLICY_DEPTH_MAX: usize = 32;
/// Largest number of operators in a policy. Each can be a level of the tree that Cedar
/// builds, even in flat text: `a && b && c` is nested. This many need less than half
/// the usual stack of a thread.
pub(crate) const POLICY_OPERATORS_MAX: usize = 200;
/// Deepest nesting of a condition about history.
pub(crate) const HISTORY_DEPTH_MAX: usize = 32;
/// Largest number of tokens of a condition about history.
pub(crate) const HISTORY_TOKENS_MAX: usize = 500;
/// Largest number of steps for one fact about history.
pub(crate) const HISTORY_FUEL: u32 = 200_000;
/// Shortest window of a condition about history.
pub(crate) const HISTORY_WINDOW_MS_MIN: u64 = 1000;
/// Longest window of a condition about history.
pub(crate) const HISTORY_WINDOW_MS_MAX: u64 = 31 * 24 * 60 * 60 * 1000;
/// Longest name of a policy or of an approver, in characters.
pub(crate) const POLICY_NAME_CHARS_MAX: usize = 128;
/// Largest number of errors reported for a set.
pub(crate) const POLICY_ERRORS_MAX: usize = 100;
/// Stack of the thread that parses policies: Cedar's parser and validator recurse.
pub(crate) const POLICY_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Largest number of differences shown between two actions.
pub const DIFFERENCES_MAX: usize = 100;
/// Nesting level below which two actions are compared as a whole.
pub(crate) const DIFFERENCE_DEPTH_MAX: usize = 64;
/// Longest text that policies see, in bytes.
pub(crate) const POLICY_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Largest number of texts of one argument that policies see.
pub(crate) const POLICY_TEXTS_MAX: usize = 256;
/// Maximum size of the values of an action that policies see, with their paths, in bytes.
pub(crate) const CALL_VALUES_BYTES_MAX: usize = 128 * 1024;
/// Largest number of arguments and fields in the definition of a tool that policies can
/// read by their types.
pub(crate) const INPUT_FIELDS_MAX: usize = 256;
/// Deepest nesting of such a definition.
pub(crate) const INPUT_TYPE_DEPTH_MAX: usize = 8;
/// Capacity of the cache of policy answers.
pub(crate) const ANSWERS_MAX: usize = 4096;
/// Largest number of candidates in a routing decision.
pub(crate) const CANDIDATES_MAX: usize = 64;
/// Largest number of names, and of principals, that a new policy set is tried with
/// before it is put in force.
pub(crate) const POLICY_NAMES_MAX: usize = 32;
/// Largest quorum of an approval.
pub(crate) const QUORUM_MAX: u32 = 100;
/// Maximum size of an instruction of the platform or the owner, in bytes.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 32 * 1024;
/// Maximum size of a note, in bytes.
pub const NOTE_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of notes in one memory profile.
pub const MEMORY_NOTES_MAX: usize = 50;
/// Maximum number of outputs of an agent that one memory profile loads.
pub const MEMORY_OUTPUTS_MAX: usize = 20;
/// Maximum size of what one memory profile loads; a longer text is cut.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024;
