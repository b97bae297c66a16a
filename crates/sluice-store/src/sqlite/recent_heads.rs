//! Cache of recently written run heads, so that sealing need not query them.
//!
//! INVARIANT: the cache holds one gapless range of the append order. A write by another
//! process makes a gap, and the cache starts again after it.

use crate::limits::RECENT_HEADS_MAX;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use std::collections::{HashMap, VecDeque};

/// A written frame, with the head of its run after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenFrame {
    pub(super) seq: i64,
    pub(super) run: RunId,
    pub(super) version: u64,
    pub(super) hash: Hash,
}

/// Runs with their versions and the hashes of their last events.
pub(super) type Heads = Vec<(RunId, u64, Hash)>;

/// A gapless range of frames, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentHeads {
    frames: VecDeque<WrittenFrame>,
}

impl RecentHeads {
    /// Adds the frames of a committed transaction.
    pub(super) fn add(&mut self, written: &[WrittenFrame]) {
        for one in written {
            if self.frames.back().is_some_and(|last| last.seq + 1 != one.seq) {
                self.frames.clear();
            }
            if self.frames.len() >= RECENT_HEADS_MAX {
                self.frames.pop_front();
            }
            self.frames.push_back(*one);
        }
    }

    /// The newest heads of all frames in the range (`after`, `upto`], sorted by run,
    /// and the last frame included, which depends on `limit`, the largest number of
    /// runs. `None` if the cache misses one of these frames. Drops older frames, which
    /// are already sealed.
    pub(super) fn heads(&mut self, after: i64, upto: i64, limit: usize) -> Option<(Heads, i64)> {
        while self.frames.front().is_some_and(|first| first.seq <= after) {
            self.frames.pop_front();
        }
        if upto <= after {
            return Some((Vec::new(), after));
        }
        let known = self.frames.front().is_some_and(|first| first.seq == after + 1)
            && self.frames.back().is_some_and(|last| last.seq >= upto);
        if !known {
            return None;
        }
        let mut newest: HashMap<RunId, (u64, Hash)> = HashMap::new();
        let mut seen = after;
        for one in self.frames.iter().take_while(|one| one.seq <= upto) {
            if newest.len() >= limit && !newest.contains_key(&one.run) {
                break;
            }
            newest.insert(one.run, (one.version, one.hash));
            seen = one.seq;
        }
        let heads = newest.into_iter().map(|(run, (version, hash))| (run, version, hash));
        let mut heads: Heads = heads.collect();
        heads.sort_unstable_by_key(|(run, _, _)| *run);
        Some((heads, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seq: i64, run: u128, version: u64) -> WrittenFrame {
        WrittenFrame { seq, run: RunId(run), version, hash: Hash([u8::try_from(seq).unwrap(); 32]) }
    }

    fn heads_of(found: Option<(Heads, i64)>) -> Option<(Vec<(u128, u64)>, i64)> {
        found.map(|(heads, upto)| {
            (heads.into_iter().map(|(run, version, _)| (run.0, version)).collect(), upto)
        })
    }

    #[test]
    fn a_stretch_without_a_gap_is_known_and_anything_else_is_not() {
        let mut fresh = RecentHeads::default();
        assert_eq!(heads_of(fresh.heads(0, 0, 9)), Some((vec![], 0)));
        assert_eq!(heads_of(fresh.heads(0, 1, 9)), None);
        fresh.add(&[written(3, 2, 1), written(4, 1, 1), written(5, 2, 4)]);
        assert_eq!(heads_of(fresh.heads(1, 5, 9)), None, "frame 2 was written by another process");
        assert_eq!(heads_of(fresh.heads(2, 5, 9)), Some((vec![(1, 1), (2, 4)], 5)));
        assert_eq!(heads_of(fresh.heads(2, 4, 9)), Some((vec![(1, 1), (2, 1)], 4)));
        assert_eq!(
            heads_of(fresh.heads(2, 5, 1)),
            Some((vec![(2, 1)], 3)),
            "no more runs than that"
        );
        assert_eq!(heads_of(fresh.heads(2, 6, 9)), None, "frame 6 was written by another process");
        fresh.add(&[written(7, 3, 1)]);
        assert_eq!(heads_of(fresh.heads(5, 7, 9)), None);
        assert_eq!(heads_of(fresh.heads(6, 7, 9)), Some((vec![(3, 1)], 7)));
        assert_eq!(heads_of(fresh.heads(7, 7, 9)), Some((vec![], 7)));
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let mut fresh = RecentHeads::default();
        let most = i64::try_from(RECENT_HEADS_MAX).unwrap();
        for seq in 1..=most + 1 {
            let one = WrittenFrame { seq, run: RunId(1), version: 1, hash: Hash([0; 32]) };
            fresh.add(&[one]);
        }
        assert_eq!(heads_of(fresh.heads(0, most, 9)), None);
        assert_eq!(heads_of(fresh.heads(1, most + 1, 9)), Some((vec![(1, 1)], most + 1)));
    }
}
