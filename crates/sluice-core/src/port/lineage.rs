//! Which runs took values from which.
//!
//! Where each value came from stands in the journal of the run that took it. To
//! go the other way one must know who took something: that is kept here, a row
//! for each two runs, written with the append that says it.

use super::store::Answer;
use crate::id::RunId;

/// Who took values from whom.
pub trait Lineage: Send + Sync {
    /// Runs that took values from `run`, by id: those after a run, if one is given.
    fn takers(&self, run: RunId, after: Option<RunId>, limit: usize) -> Answer<'_, Vec<Taker>>;

    /// How many values other runs took from `run`.
    fn taken(&self, run: RunId) -> Answer<'_, u64>;
}

/// A run that took values from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taker {
    /// The run.
    pub run: RunId,
    /// How many values it took.
    pub values: u64,
}

/// How many values the run of an append has taken from another by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// The run they are from.
    pub from: RunId,
    /// How many; none any more where it is 0.
    pub values: u64,
}
