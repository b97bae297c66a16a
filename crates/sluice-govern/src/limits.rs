//! Every bound of this crate, in one place.
//!
//! INVARIANT: passing a bound is a clear error, never a hang, a panic or memory
//! that grows with what a stranger sent.

/// Longest policy file, in bytes.
pub const POLICY_FILE_BYTES_MAX: usize = 256 * 1024;
/// Longest policy set, in bytes.
pub const POLICIES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most policies in one set.
pub const POLICIES_MAX: usize = 10_000;
/// Deepest nesting of brackets in a policy.
pub const POLICY_DEPTH_MAX: usize = 32;
/// Most operators in one policy. Each can be a level of the tree that Cedar
/// builds, however flat the text looks: `a && b && c` is one below another. So many
/// take less than half the stack that a thread usually has.
pub const POLICY_OPERATORS_MAX: usize = 200;
/// Longest name of a policy or of an approver.
pub const POLICY_NAME_CHARS_MAX: usize = 128;
/// Most errors reported for one set.
pub const POLICY_ERRORS_MAX: usize = 100;
/// Stack of the thread that parses policies: Cedar's parser and validator recurse.
pub const POLICY_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Most differences shown between two actions.
pub const DIFFERENCES_MAX: usize = 100;
/// Deepest level at which two actions are compared part by part.
pub const DIFFERENCE_DEPTH_MAX: usize = 64;
/// Answers of policies that are kept.
pub const ANSWERS_MAX: usize = 4096;
/// Candidates named in a routing decision.
pub const CANDIDATES_MAX: usize = 64;
/// Names in policies about changes, and principals, that a set is tried with before it
/// is put in force.
pub const POLICY_NAMES_MAX: usize = 32;
/// Most people that must agree to one thing.
pub const QUORUM_MAX: u32 = 100;
