//! What must hold when a turn becomes durable: counters given back and taken.
//!
//! What is given back counts before what is taken, and what is taken is bounded
//! by itself: a turn that gives back more than it takes is still held to every
//! cap it takes from.

use crate::port::authority::Authority;
use crate::port::store::Guard;
use sluice_govern::account::{self, Name};

/// Changes of counters, gathered over a turn.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// Few: a list is faster to look through than a map is to keep.
    counters: Vec<Counted>,
    /// Whether something is dispatched: then the rows must be those that were looked at.
    dispatches: bool,
}

/// What a turn does to one counter.
#[derive(Debug)]
struct Counted {
    counter: String,
    /// Given back, or counted without a bound.
    plain: i64,
    /// The bound of what is counted, as what was decided believes it: past it,
    /// something else would have been decided.
    bound: Option<i64>,
    taken: Option<Take>,
}

/// Taken, up to a bound; over a window where there is one.
#[derive(Debug, Clone, Copy)]
struct Take {
    delta: i64,
    max: Option<i64>,
    window_ms: Option<u64>,
}

impl Guards {
    /// Adds to a counter without a bound.
    pub(super) fn add(&mut self, counter: Name<'_>, delta: i64) {
        let counted = self.at(counter);
        counted.plain = counted.plain.saturating_add(delta);
    }

    /// What is added to a counter must leave it at this, or below; wherever, if
    /// there is no bound. Of two such beliefs about one counter the last one
    /// knows everything that was added.
    pub(super) fn believe(&mut self, counter: Name<'_>, max: Option<i64>) {
        self.at(counter).bound = max;
    }

    /// Takes from what a bound leaves.
    pub(super) fn take(&mut self, counter: Name<'_>, delta: i64, max: Option<i64>) {
        self.take_in(counter, delta, max, None);
    }

    /// Takes from what a bound leaves in a window.
    pub(super) fn take_in(
        &mut self,
        counter: Name<'_>,
        delta: i64,
        max: Option<i64>,
        window_ms: Option<u64>,
    ) {
        let taken = &mut self.at(counter).taken;
        let take = taken.get_or_insert(Take { delta: 0, max, window_ms });
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
    pub(super) fn count(&self, authority: &dyn Authority, counter: Name<'_>) -> i64 {
        match self.find(counter) {
            None => authority.count(&counter.whole()),
            Some(counted) => authority.count(&counted.counter).saturating_add(counted.change()),
        }
    }

    /// The same of a sum over a window.
    pub(super) fn in_window(
        &self,
        authority: &dyn Authority,
        counter: Name<'_>,
        window_ms: u64,
    ) -> i64 {
        let change = self.find(counter).map_or(0, Counted::change);
        authority.in_window(&counter.whole(), window_ms).saturating_add(change)
    }

    fn find(&self, counter: Name<'_>) -> Option<&Counted> {
        self.counters.iter().find(|one| counter.is(&one.counter))
    }

    fn at(&mut self, counter: Name<'_>) -> &mut Counted {
        let found = self.counters.iter().position(|one| counter.is(&one.counter));
        let at = found.unwrap_or_else(|| {
            let counter = counter.whole();
            self.counters.push(Counted { counter, plain: 0, bound: None, taken: None });
            self.counters.len() - 1
        });
        &mut self.counters[at]
    }

    /// As the store takes them: what is given back before what is taken, each by
    /// name.
    pub(super) fn into_list(mut self, authority: &dyn Authority) -> Vec<Guard> {
        let mut list = Vec::with_capacity(self.counters.len() + 1);
        if self.dispatches {
            let epoch = i64::try_from(authority.fabric().epoch).unwrap_or(i64::MAX);
            let counter = account::REGISTRY.to_owned();
            list.push(Guard { counter, delta: 0, max: Some(epoch), window_ms: None });
        }
        self.counters.sort_unstable_by(|a, b| a.counter.cmp(&b.counter));
        self.counters.iter_mut().for_each(Counted::join);
        for one in &mut self.counters {
            if one.plain != 0 {
                let taken = one.taken.is_some();
                let counter =
                    if taken { one.counter.clone() } else { std::mem::take(&mut one.counter) };
                let (delta, max) = (one.plain, one.bound);
                list.push(Guard { counter, delta, max, window_ms: None });
            }
        }
        let taken = |one: Counted| {
            let Take { delta, max, window_ms } = one.taken?;
            Some(Guard { counter: one.counter, delta, max, window_ms })
        };
        list.extend(self.counters.into_iter().filter_map(taken));
        list
    }
}

impl Counted {
    /// All that the turn does to it.
    fn change(&self) -> i64 {
        self.plain.saturating_add(self.taken.map_or(0, |take| take.delta))
    }

    /// What is given back and taken of one counter is one change, where it does
    /// not go down: then its bound is looked at just the same.
    fn join(&mut self) {
        let Some(take) = &mut self.taken else { return };
        let sum = self.plain.saturating_add(take.delta);
        if sum >= 0 && take.window_ms.is_none() && self.bound.is_none() {
            take.delta = sum;
            self.plain = 0;
        }
    }
}
