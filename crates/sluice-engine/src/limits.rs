//! Bounds of what an engine does at once.

/// Most runs whose journals a walk along values reads.
pub const TRACED_RUNS_MAX: usize = 200;
/// Most crossings that a walk along values finds.
pub const CROSSINGS_MAX: usize = 20_000;
/// Newest slots of a schedule that a look at it takes into account.
pub const SCHEDULE_SLOTS_SEEN: usize = 1000;
/// Most slots of a schedule that wait for earlier runs to end.
pub const SCHEDULE_QUEUE_MAX: usize = 50;
