//! Outputs of agents, remembered so that later runs can read them.

use crate::id::RunId;

/// A remembered output. A store keeps the newest of each agent, and deletes those of a run
/// whose payloads are erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedOutput {
    /// The agent that produced the output.
    pub agent: String,
    /// The run in which it was produced.
    pub run: RunId,
    /// Time of the output.
    pub at_ms: u64,
    /// The encoded output.
    pub body: Vec<u8>,
}
