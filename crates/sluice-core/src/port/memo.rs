//! What agents answered, kept beside the journals so that later runs can be told.

use crate::id::RunId;

/// An answer that is remembered. A store keeps the newest of each agent, and
/// gives up those of a run whose payloads are erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memo {
    /// Whose answer.
    pub agent: String,
    /// The run it was given in.
    pub run: RunId,
    /// When.
    pub at_ms: u64,
    /// The answer, encoded.
    pub body: Vec<u8>,
}
