//! What must hold when a turn becomes durable: counters given back and taken.
//!
//! What is given back counts before what is taken, and what is taken is bounded
//! by itself: a turn that gives back more than it takes is still held to every
//! cap it takes from.
//!
//! Most counters are those of accounts, three of each. They are kept together,
//! and an account is looked up once for all three.

#[cfg(test)]
mod tests;

use crate::port::authority::{Authority, Tally};
use crate::port::store::Guard;
use sluice_govern::account::{self, CounterName, Figure, Name};
use std::sync::Arc;

/// Changes of counters, gathered over a turn.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// Few: a list is faster to look through than a map is to keep.
    accounts: Vec<Booked>,
    /// All other counters.
    counters: Vec<Counted>,
    /// Whether a decision rests on the registry's rows: then they must still be in
    /// force when the append becomes durable.
    uses_rows: bool,
}

/// What a turn does to one account.
#[derive(Debug)]
pub(super) struct Booked {
    name: Arc<str>,
    /// What was in it when the turn first looked.
    known: Tally,
    /// What is spent and reserved.
    pub(super) held: Change,
    /// What is spent.
    pub(super) spent: Change,
    /// Overruns.
    pub(super) over: Change,
}

/// What a turn does to one counter.
#[derive(Debug)]
struct Counted {
    counter: CounterName,
    change: Change,
}

/// A change of a counter.
#[derive(Debug, Default)]
pub(super) struct Change {
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
    /// An account, to be changed.
    pub(super) fn account(&mut self, authority: &dyn Authority, name: &Arc<str>) -> &mut Booked {
        let found = self.accounts.iter().position(|one| one.name == *name);
        let at = found.unwrap_or_else(|| {
            self.accounts.push(Booked {
                name: Arc::clone(name),
                known: authority.tally(name),
                held: Change::default(),
                spent: Change::default(),
                over: Change::default(),
            });
            self.accounts.len() - 1
        });
        &mut self.accounts[at]
    }

    /// An account with what this turn has done to it so far.
    pub(super) fn tally(&self, authority: &dyn Authority, name: &str) -> Tally {
        let found = self.accounts.iter().find(|one| *one.name == *name);
        found.map_or_else(|| authority.tally(name), Booked::tally)
    }

    /// Adds to a counter without a bound.
    pub(super) fn add(&mut self, counter: Name<'_>, delta: i64) {
        self.at(counter).add(delta);
    }

    /// The same of a counter that nobody looks at.
    pub(super) fn note(&mut self, counter: CounterName, delta: i64) {
        match self.counters.iter_mut().find(|one| one.counter == counter) {
            Some(one) => one.change.add(delta),
            None => {
                let change = Change { plain: delta, ..Change::default() };
                self.counters.push(Counted { counter, change });
            }
        }
    }

    /// Takes from what a bound leaves.
    pub(super) fn take(&mut self, counter: Name<'_>, delta: i64, max: Option<i64>) {
        self.at(counter).take(delta, max);
    }

    /// Takes from what a bound leaves in a window.
    pub(super) fn take_in(
        &mut self,
        counter: Name<'_>,
        delta: i64,
        max: Option<i64>,
        window_ms: Option<u64>,
    ) {
        self.at(counter).take_in(delta, max, window_ms);
    }

    /// Refuses the append if the registry has changed since the turn read it.
    pub(super) fn require_rows(&mut self) {
        self.uses_rows = true;
    }

    /// A counter with what this turn has done to it so far.
    pub(super) fn count(&self, authority: &dyn Authority, counter: Name<'_>) -> i64 {
        let change = self.find(counter).map_or(0, |counted| counted.change.sum());
        authority.count(counter).saturating_add(change)
    }

    /// The same of a sum over a window.
    pub(super) fn in_window(
        &self,
        authority: &dyn Authority,
        counter: Name<'_>,
        window_ms: u64,
    ) -> i64 {
        let change = self.find(counter).map_or(0, |counted| counted.change.sum());
        authority.in_window(counter, window_ms).saturating_add(change)
    }

    fn find(&self, counter: Name<'_>) -> Option<&Counted> {
        self.counters.iter().find(|one| one.counter.name() == counter)
    }

    fn at(&mut self, counter: Name<'_>) -> &mut Change {
        debug_assert!(counter.of_account().is_none(), "an account is changed as a whole");
        let found = self.counters.iter().position(|one| one.counter.name() == counter);
        let at = found.unwrap_or_else(|| {
            let counter = counter.keep();
            self.counters.push(Counted { counter, change: Change::default() });
            self.counters.len() - 1
        });
        &mut self.counters[at].change
    }

    /// As the store takes them: what is given back before what is taken, each in
    /// the order in which the turn came to it.
    pub(super) fn into_list(mut self, authority: &dyn Authority) -> Vec<Guard> {
        let most = 1 + 2 * (3 * self.accounts.len() + self.counters.len());
        let mut list = Vec::with_capacity(most);
        if self.uses_rows {
            let epoch = i64::try_from(authority.fabric().epoch).unwrap_or(i64::MAX);
            let counter = account::REGISTRY.into();
            list.push(Guard { counter, delta: 0, max: Some(epoch), window_ms: None });
        }
        for one in &mut self.accounts {
            [&mut one.held, &mut one.spent, &mut one.over].into_iter().for_each(Change::join);
        }
        self.counters.iter_mut().for_each(|one| one.change.join());
        self.push(&mut list, Change::given_back);
        self.push(&mut list, Change::taken);
        list
    }

    /// What `part` finds of each change: of accounts, then of all other counters.
    fn push(&self, list: &mut Vec<Guard>, part: fn(&Change) -> Option<Take>) {
        let guard =
            |counter, Take { delta, max, window_ms }| Guard { counter, delta, max, window_ms };
        for one in &self.accounts {
            let figures =
                [(Figure::Held, &one.held), (Figure::Spent, &one.spent), (Figure::Over, &one.over)];
            list.extend(figures.into_iter().filter_map(|(figure, change)| {
                let take = part(change)?;
                let counter = CounterName::of_account(figure, &one.name, one.known.number);
                Some(guard(counter, take))
            }));
        }
        for one in &self.counters {
            list.extend(part(&one.change).map(|take| guard(one.counter.clone(), take)));
        }
    }
}

impl Booked {
    /// What is in it with what this turn has done.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            held: self.known.held.saturating_add(self.held.sum()),
            spent: self.known.spent.saturating_add(self.spent.sum()),
            over: self.known.over.saturating_add(self.over.sum()),
            number: self.known.number,
        }
    }
}

impl Change {
    /// Adds without a bound.
    pub(super) fn add(&mut self, delta: i64) {
        self.plain = self.plain.saturating_add(delta);
    }

    /// What is added must leave the counter at this, or below; wherever, if there
    /// is no bound. Of two such beliefs the last one knows everything that was
    /// added.
    pub(super) fn believe(&mut self, max: Option<i64>) {
        self.bound = max;
    }

    /// Takes from what a bound leaves.
    pub(super) fn take(&mut self, delta: i64, max: Option<i64>) {
        self.take_in(delta, max, None);
    }

    fn take_in(&mut self, delta: i64, max: Option<i64>, window_ms: Option<u64>) {
        let take = self.taken.get_or_insert(Take { delta: 0, max, window_ms });
        take.delta = take.delta.saturating_add(delta);
        take.max = match (take.max, max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
    }

    /// All that the turn does.
    fn sum(&self) -> i64 {
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

    fn given_back(&self) -> Option<Take> {
        let take = Take { delta: self.plain, max: self.bound, window_ms: None };
        (take.delta != 0).then_some(take)
    }

    fn taken(&self) -> Option<Take> {
        self.taken
    }
}
