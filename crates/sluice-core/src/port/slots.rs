//! The outcomes of schedule slots.
//!
//! A slot is a time at which a schedule would start a run. Several processes evaluate the same
//! schedule; the first one to record a slot decides its outcome.

use super::store::Answer;
use crate::id::RunId;

/// Recorded schedule slots.
pub trait Slots: Send + Sync {
    /// Lists slots of a schedule, newest first, before a time if it is set.
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>>;

    /// Records slots in one transaction, each independently, and returns for each whether
    /// it was recorded. If a schedule has too many slots, the oldest are deleted.
    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>>;
}

/// A schedule slot and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The schedule's name.
    pub schedule: String,
    /// The time of the slot; of several slots with one outcome, the last.
    pub slot_ms: u64,
    /// The number of slots that this row covers.
    pub count: u64,
    /// The outcome: `starting`, `started`, `queued`, `skipped` or `refused`.
    pub outcome: String,
    /// The reason: `overlap`, `missed`, `date`, …, or why the start was refused.
    pub why: Option<String>,
    /// The run that was started for the slot.
    pub run: Option<RunId>,
    /// When the slot was recorded.
    pub at_ms: u64,
}

/// A slot to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The slot's new row.
    pub slot: Slot,
    /// Outcomes that the stored slot may have; empty if the slot must not be recorded yet.
    pub from: Vec<String>,
}
