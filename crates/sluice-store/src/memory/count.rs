//! Counters.

use super::MemoryState;
use crate::limits::COUNTERS_MAX;
use crate::window::Window;
use sluice_core::port::ledger::{Count, Counter};
use sluice_core::port::store::{Appended, Guard};
use sluice_govern::account::Name;
use std::collections::BTreeMap;
use std::ops::Bound;

impl MemoryState {
    /// The first guard that refuses. Guards on the same counter see each other's
    /// changes.
    pub(super) fn refuse_guards(&self, guards: &[Guard], now_ms: u64) -> Option<Appended> {
        let mut counted: BTreeMap<(Name<'_>, Option<u64>), i64> = BTreeMap::new();
        for guard in guards {
            let stored = || self.counter(&guard.counter.whole(), guard.window_ms, now_ms);
            let count =
                counted.entry((guard.counter.name(), guard.window_ms)).or_insert_with(stored);
            match crate::guarded(guard, *count) {
                Some(changed) => *count = changed,
                None => {
                    let counter = guard.counter.whole();
                    return Some(Appended::Refused { counter, count: stored() });
                }
            }
        }
        None
    }

    /// Applies the guards, which must not refuse, and returns the counters after that.
    pub(super) fn count(&mut self, guards: &[Guard], now_ms: u64) -> Vec<i64> {
        for guard in guards.iter().filter(|guard| guard.delta != 0) {
            match guard.window_ms {
                None => {
                    let count = self.counters.entry(guard.counter.whole()).or_default();
                    *count = count.saturating_add(guard.delta);
                }
                Some(window_ms) => {
                    let key = (guard.counter.whole(), window_ms);
                    let new = || Window::new(window_ms, []);
                    let window = self.windows.entry(key).or_insert_with(new);
                    window.add(now_ms, guard.delta);
                    window.prune(now_ms);
                }
            }
        }
        let count = |guard: &Guard| self.counter(&guard.counter.whole(), guard.window_ms, now_ms);
        guards.iter().map(count).collect()
    }

    pub(super) fn counts(&self, counters: &[Counter], now_ms: u64) -> Vec<i64> {
        let count = |counter: &Counter| self.counter(&counter.name, counter.window_ms, now_ms);
        counters.iter().map(count).collect()
    }

    pub(super) fn between(&self, after: &str, before: &str, limit: usize) -> Vec<Count> {
        if after >= before {
            return Vec::new();
        }
        let names = (Bound::Excluded(after), Bound::Excluded(before));
        let counters = self.counters.range::<str, _>(names).filter(|(_, count)| **count != 0);
        let shown = counters.map(|(name, count)| Count { name: name.clone(), count: *count });
        shown.take(limit.min(COUNTERS_MAX)).collect()
    }

    fn counter(&self, name: &str, window_ms: Option<u64>, now_ms: u64) -> i64 {
        match window_ms {
            None => self.counters.get(name).copied().unwrap_or(0),
            Some(window_ms) => {
                let window = self.windows.get(&(name.to_owned(), window_ms));
                window.map_or(0, |window| window.sum(now_ms))
            }
        }
    }
}
