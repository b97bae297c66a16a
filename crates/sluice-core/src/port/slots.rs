//! What became of the slots of schedules.
//!
//! A slot is a time at which a schedule would start a run. Several processes
//! look at the same schedule; whoever notes a slot first decides its fate.

use super::store::Answer;
use crate::id::RunId;

/// The slots of schedules, each with its fate.
pub trait Slots: Send + Sync {
    /// Slots of a schedule, newest first: those before a time, if one is given.
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>>;

    /// Notes slots, each by itself, all in one transaction; says for each
    /// whether it was noted. Of a schedule that has very many, the oldest go.
    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>>;
}

/// A slot and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The schedule's name.
    pub schedule: String,
    /// When it is; of several slots that share a fate, the last.
    pub slot_ms: u64,
    /// How many slots it stands for.
    pub count: u64,
    /// What became of it: `starting`, `started`, `queued`, `skipped` or `refused`.
    pub fate: String,
    /// Why: `overlap`, `missed`, `date`, …, or what a start was refused for.
    pub why: Option<String>,
    /// The run that is started for it.
    pub run: Option<RunId>,
    /// When this was noted.
    pub at_ms: u64,
}

/// A slot to be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What it is from now on.
    pub slot: Slot,
    /// What its fate must be for that, one of these; none: nobody has noted it.
    pub from: Vec<String>,
}
