//! Which runs consumed values of which runs.
//!
//! The journal of the consuming run records where each value came from. This index answers the
//! other direction. It has one row for each pair of runs, committed with the append that
//! records the value flow.

use super::store::Answer;
use crate::id::RunId;

/// The index of value flows between runs.
pub trait Lineage: Send + Sync {
    /// Lists the consumers of values of `run`, by id, after `after` if it is set.
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>>;

    /// Counts the values of `run` that other runs consumed.
    fn taken(&self, run: RunId) -> Answer<'_, u64>;
}

/// A run that consumed values of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// The run that consumed the values.
    pub run: RunId,
    /// The number of values it consumed.
    pub values: u64,
}

/// The number of values that the appended run has consumed from another run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenanceEdge {
    /// The run that the values come from.
    pub from: RunId,
    /// The number of values; 0 removes the row.
    pub values: u64,
}
