//! Counters as this process last heard of them.

use super::held;
use sluice_core::cost::is_spend;
use sluice_core::port::store::Guard;
use std::collections::HashMap;
use std::sync::Mutex;

/// Most counters that are remembered. Beyond that all are forgotten: one that
/// is not known counts as nothing, and the store says what it is.
const REMEMBERED_MAX: usize = 65_536;
/// Slices that a window is counted in, as the store does.
const SLICES: u64 = 60;

/// Counters by name.
#[derive(Default)]
pub(super) struct Counts {
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Clone, Copy)]
struct Known {
    count: i64,
    at_ms: u64,
}

impl Counts {
    /// What a counter was; nothing if it is not known.
    pub(super) fn get(&self, counter: &str) -> i64 {
        held(&self.known).get(counter).map_or(0, |known| known.count)
    }

    /// A sum over a window. What was heard longer ago than a slice may have
    /// become less, so one more try is worth it.
    pub(super) fn in_window(&self, counter: &str, window_ms: u64, now_ms: u64) -> i64 {
        let Some(known) = held(&self.known).get(counter).copied() else { return 0 };
        let age_ms = now_ms.saturating_sub(known.at_ms);
        if age_ms >= window_ms {
            0
        } else if age_ms > window_ms / SLICES {
            (known.count - 1).max(0)
        } else {
            known.count
        }
    }

    /// Notes what counters are.
    pub(super) fn learn<'a>(&self, counts: impl Iterator<Item = (&'a str, i64)>, at_ms: u64) {
        let mut known = held(&self.known);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        for (counter, count) in counts {
            match known.get_mut(counter) {
                Some(one) => *one = Known { count, at_ms },
                None => drop(known.insert(counter.to_owned(), Known { count, at_ms })),
            }
        }
    }

    /// Notes what an append made of its guards' counters. Nothing is decided by
    /// what work has cost in an hour, so that is left to the store.
    pub(super) fn learn_guards(&self, guards: &[Guard], counts: &[i64], at_ms: u64) {
        let pairs = guards.iter().zip(counts).map(|(guard, count)| (&*guard.counter, *count));
        self.learn(pairs.filter(|(counter, _)| !is_spend(counter)), at_ms);
    }
}
