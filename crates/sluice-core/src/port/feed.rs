//! Every journal at once, in the order in which frames became durable.
//!
//! Whoever follows all runs reads here: a place in this order is all it must
//! remember to go on without a gap and without seeing anything twice.
//!
//! INVARIANT: a frame becomes readable at a place greater than every place that
//! was readable before, so a reader that goes on from the last place it saw
//! misses nothing.

use super::store::{Answer, Frame};
use crate::id::RunId;

/// The frames of all runs, in one order.
pub trait Feed: Send + Sync {
    /// Frames after a place, with what stands beside them, in the order of
    /// appends: about `bytes_max` of them, but at least one if there is one.
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>>;

    /// The place of the newest frame; 0 where there is none.
    fn feed_end(&self) -> Answer<'_, u64>;
}

/// A frame and its place among those of all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The place: greater for later appends, not always by one.
    pub place: u64,
    /// Whose frame it is.
    pub run: RunId,
    /// The frame, with what stands beside it.
    pub frame: Frame,
    /// Whether a process with the store's key wrote it. One that is not is not used.
    pub is_authentic: bool,
}
