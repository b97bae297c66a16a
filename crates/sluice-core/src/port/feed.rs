//! The frames of all runs in one order: the order in which they became durable.
//!
//! A reader of all runs keeps one position in this order. It is enough to continue without a
//! gap and without reading anything twice.
//!
//! INVARIANT: a frame becomes readable at a position greater than every position that was
//! readable before, so a reader that continues from its last position misses nothing.

use super::store::{Answer, Frame};
use crate::id::RunId;

/// The feed of all frames.
pub trait Feed: Send + Sync {
    /// Reads frames after a position, with their stream deltas, in the order of appends:
    /// about `bytes_max` bytes, but at least one frame if there is one.
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>>;

    /// The position of the newest frame; 0 if there is none.
    fn feed_end(&self) -> Answer<'_, u64>;
}

/// A frame and its position in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The position: greater for later appends, not always by one.
    pub place: u64,
    /// The run of the frame.
    pub run: RunId,
    /// The frame, with its stream deltas.
    pub frame: Frame,
    /// Whether a process with the store's key wrote the frame. Other frames are not used.
    pub is_authentic: bool,
}
