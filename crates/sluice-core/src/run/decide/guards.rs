//! What must hold when a turn becomes durable: counters given back and taken.
//!
//! What is given back counts before what is taken, and what is taken is bounded
//! by itself: a turn that gives back more than it takes is still held to every
//! cap it takes from.

use crate::port::authority::Authority;
use crate::port::store::Guard;
use sluice_govern::account;
use std::collections::BTreeMap;

/// Changes of counters, gathered over a turn.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// Given back, or counted without a bound.
    plain: BTreeMap<String, i64>,
    /// Bounds of what is counted, as what was decided believes them: past one,
    /// something else would have been decided.
    bounds: BTreeMap<String, i64>,
    /// Taken, up to a bound; over a window where there is one.
    taken: BTreeMap<String, Take>,
    /// Whether something is dispatched: then the rows must be those that were looked at.
    dispatches: bool,
}

#[derive(Debug, Clone, Copy)]
struct Take {
    delta: i64,
    max: Option<i64>,
    window_ms: Option<u64>,
}

impl Guards {
    /// Adds to a counter without a bound.
    pub(super) fn add(&mut self, counter: String, delta: i64) {
        let sum = self.plain.entry(counter).or_default();
        *sum = sum.saturating_add(delta);
    }

    /// What is added to a counter must leave it at this, or below; wherever, if
    /// there is no bound. Of two such beliefs about one counter the last one
    /// knows everything that was added.
    pub(super) fn believe(&mut self, counter: String, max: Option<i64>) {
        match max {
            Some(max) => drop(self.bounds.insert(counter, max)),
            None => drop(self.bounds.remove(&counter)),
        }
    }

    /// Takes from what a bound leaves.
    pub(super) fn take(&mut self, counter: String, delta: i64, max: Option<i64>) {
        self.take_in(counter, delta, max, None);
    }

    /// Takes from what a bound leaves in a window.
    pub(super) fn take_in(
        &mut self,
        counter: String,
        delta: i64,
        max: Option<i64>,
        window_ms: Option<u64>,
    ) {
        let take = self.taken.entry(counter).or_insert(Take { delta: 0, max, window_ms });
        take.delta = take.delta.saturating_add(delta);
        take.max = match (take.max, max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
    }

    /// Something is dispatched with this turn.
    pub(super) fn dispatched(&mut self) {
        self.dispatches = true;
    }

    /// A counter with what this turn has done to it so far.
    pub(super) fn count(&self, authority: &dyn Authority, counter: &str) -> i64 {
        authority.count(counter).saturating_add(self.change(counter))
    }

    /// The same of a sum over a window.
    pub(super) fn in_window(
        &self,
        authority: &dyn Authority,
        counter: &str,
        window_ms: u64,
    ) -> i64 {
        authority.in_window(counter, window_ms).saturating_add(self.change(counter))
    }

    fn change(&self, counter: &str) -> i64 {
        let plain = self.plain.get(counter).copied().unwrap_or_default();
        plain.saturating_add(self.taken.get(counter).map_or(0, |take| take.delta))
    }

    /// As the store takes them.
    pub(super) fn into_list(self, authority: &dyn Authority) -> Vec<Guard> {
        let mut list = Vec::with_capacity(self.plain.len() + self.taken.len() + 1);
        if self.dispatches {
            let epoch = i64::try_from(authority.fabric().epoch).unwrap_or(i64::MAX);
            let counter = account::REGISTRY.to_owned();
            list.push(Guard { counter, delta: 0, max: Some(epoch), window_ms: None });
        }
        let plain = self.plain.into_iter().filter(|(_, delta)| *delta != 0);
        list.extend(plain.map(|(counter, delta)| {
            let max = self.bounds.get(&counter).copied();
            Guard { counter, delta, max, window_ms: None }
        }));
        list.extend(self.taken.into_iter().map(|(counter, take)| Guard {
            counter,
            delta: take.delta,
            max: take.max,
            window_ms: take.window_ms,
        }));
        list
    }
}
