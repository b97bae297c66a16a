//! The newest frames of all runs.

use super::Fed;
use crate::limits::{FEED_BATCH_MAX, FEED_BYTES_MAX, FEED_FRAMES_MAX};
use sluice_core::journal::envelope::Seen;
use std::collections::VecDeque;
use std::sync::Arc;

/// All readable frames between two positions of the append order.
#[derive(Debug, Default)]
pub(super) struct FeedRing {
    /// Covered range: after the first position, up to the second. `None` until the end of
    /// the store's order is known.
    covers: Option<(u64, u64)>,
    frames: VecDeque<Arc<Fed>>,
    bytes: usize,
}

impl FeedRing {
    /// An empty ring that starts after a position.
    pub(super) fn beginning(place: u64) -> FeedRing {
        FeedRing { covers: Some((place, place)), ..FeedRing::default() }
    }

    /// Adds the following frames, up to a position.
    pub(super) fn push(&mut self, frames: Vec<Arc<Fed>>, end: u64) {
        let Some((begin, covered)) = &mut self.covers else { return };
        *covered = end;
        for fed in frames {
            self.bytes += bytes(&fed);
            self.frames.push_back(fed);
        }
        while self.frames.len() > FEED_FRAMES_MAX || self.bytes > FEED_BYTES_MAX {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= bytes(&oldest);
            *begin = oldest.place;
        }
    }

    /// The next frames after a position; `None` if the ring does not cover it.
    pub(super) fn after(&self, place: u64) -> Option<Vec<Arc<Fed>>> {
        let (begin, end) = self.covers?;
        // Beyond the end there may be frames that were not read yet.
        if place < begin || place > end {
            return None;
        }
        let from = self.frames.partition_point(|fed| fed.place <= place);
        Some(self.frames.range(from..).take(FEED_BATCH_MAX).cloned().collect())
    }
}

/// Approximate memory use of a frame.
fn bytes(fed: &Fed) -> usize {
    let seen = |seen: &Arc<Seen>| match &**seen {
        Seen::Event(shown) => 128 + shown.kind.len() + shown.json.len(),
        Seen::Elided { .. } => 64,
    };
    64 + fed.seen.iter().map(seen).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::id::RunId;

    fn fed(place: u64, elided: usize) -> Arc<Fed> {
        let one = || Arc::new(Seen::Elided { first: 1, last: 1 });
        let seen = (0..elided).map(|_| one()).collect();
        Arc::new(Fed { place, run: RunId(1), workflow: "w".into(), seen })
    }

    fn places(ring: &FeedRing, after: u64) -> Option<Vec<u64>> {
        Some(ring.after(after)?.iter().map(|fed| fed.place).collect())
    }

    #[test]
    fn a_ring_answers_what_it_covers_and_nothing_else() {
        assert_eq!(places(&FeedRing::default(), 0), None);
        let mut ring = FeedRing::beginning(4);
        assert_eq!(
            (places(&ring, 3), places(&ring, 4), places(&ring, 5)),
            (None, Some(vec![]), None)
        );
        ring.push(vec![fed(5, 1), fed(8, 1)], 9);
        assert_eq!(places(&ring, 4), Some(vec![5, 8]));
        assert_eq!(places(&ring, 6), Some(vec![8]), "positions 6 and 7 do not exist");
        assert_eq!((places(&ring, 9), places(&ring, 10)), (Some(vec![]), None));
    }

    #[test]
    fn a_ring_is_bounded_in_frames_and_in_bytes() {
        let mut ring = FeedRing::beginning(0);
        let last = 2 * FEED_FRAMES_MAX as u64;
        for place in 1..=last {
            ring.push(vec![fed(place, 0)], place);
        }
        assert_eq!(ring.frames.len(), FEED_FRAMES_MAX);
        let begin = last - FEED_FRAMES_MAX as u64;
        assert_eq!(
            (places(&ring, begin - 1), places(&ring, begin).map(|all| all[0])),
            (None, Some(begin + 1))
        );
        ring.push(vec![fed(last + 1, FEED_BYTES_MAX / 64)], last + 1);
        assert_eq!((ring.frames.len(), ring.bytes), (0, 0));
        assert_eq!((places(&ring, last), places(&ring, last + 1)), (None, Some(vec![])));
    }

    #[test]
    fn a_batch_is_bounded() {
        let mut ring = FeedRing::beginning(0);
        let many = FEED_BATCH_MAX as u64 + 5;
        ring.push((1..=many).map(|place| fed(place, 0)).collect(), many);
        assert_eq!(places(&ring, 0).map(|all| all.len()), Some(FEED_BATCH_MAX));
        assert_eq!(places(&ring, FEED_BATCH_MAX as u64).map(|all| all.len()), Some(5));
    }
}
