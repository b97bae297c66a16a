//! The changes of counters in a turn, and the bounds that must hold when its append
//! becomes durable.
//!
//! Amounts that are returned count before amounts that are taken, and these have bounds
//! of their own: a turn that returns more than it takes still complies with every cap.
//!
//! Most counters are those of accounts, three of each, so that an account is looked up
//! once for all three.

use crate::port::authority::{Authority, Tally};
use crate::port::store::Guard;
use sluice_govern::account::{self, CounterName, Figure, Name};
use std::sync::Arc;

/// Changes of counters, gathered over a turn.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// A list: a turn changes few accounts.
    accounts: Vec<Booked>,
    /// All other counters.
    counters: Vec<Counted>,
    /// Whether a decision depends on the rows of the registry, which must then still be in
    /// force when the append becomes durable.
    uses_rows: bool,
}

/// The changes of one account.
#[derive(Debug)]
pub(crate) struct Booked {
    name: Arc<str>,
    /// Its figures when the turn first read them.
    known: Tally,
    /// Spent and reserved.
    pub(crate) held: Change,
    pub(crate) spent: Change,
    /// Overruns.
    pub(crate) over: Change,
}

/// The change of one counter.
#[derive(Debug)]
struct Counted {
    counter: CounterName,
    change: Change,
}

/// A change of a counter.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Returned, or counted without a bound.
    plain: i64,
    /// The bound that the decision relied on: above it, the decision would have been
    /// another one.
    bound: Option<i64>,
    taken: Option<Take>,
}

/// An amount taken up to a bound, in a window if there is one.
#[derive(Debug, Clone, Copy)]
struct Take {
    delta: i64,
    max: Option<i64>,
    window_ms: Option<u64>,
}

impl Guards {
    /// An account to change.
    pub(crate) fn account(&mut self, authority: &dyn Authority, name: &Arc<str>) -> &mut Booked {
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

    /// The figures of an account, with the changes of this turn.
    pub(crate) fn tally(&self, authority: &dyn Authority, name: &str) -> Tally {
        let found = self.accounts.iter().find(|one| *one.name == *name);
        found.map_or_else(|| authority.tally(name), Booked::tally)
    }

    /// Adds to a counter without a bound.
    pub(crate) fn add(&mut self, counter: Name<'_>, delta: i64) {
        self.at(counter).add(delta);
    }

    /// Adds to a counter that this turn does not read.
    pub(crate) fn note(&mut self, counter: CounterName, delta: i64) {
        match self.counters.iter_mut().find(|one| one.counter == counter) {
            Some(one) => one.change.add(delta),
            None => {
                let change = Change { plain: delta, ..Change::default() };
                self.counters.push(Counted { counter, change });
            }
        }
    }

    /// Takes an amount within a bound.
    pub(crate) fn take(&mut self, counter: Name<'_>, delta: i64, max: Option<i64>) {
        self.at(counter).take(delta, max);
    }

    /// Takes an amount within a bound over a window.
    pub(crate) fn take_in(
        &mut self,
        counter: Name<'_>,
        delta: i64,
        max: Option<i64>,
        window_ms: Option<u64>,
    ) {
        self.at(counter).take_in(delta, max, window_ms);
    }

    /// Takes an amount within a bound that replaces the bound of earlier amounts: it is
    /// derived from a value with everything that the turn took before.
    pub(crate) fn take_latest(
        &mut self,
        counter: Name<'_>,
        delta: i64,
        max: Option<i64>,
        window_ms: Option<u64>,
    ) {
        let change = self.at(counter);
        let take = change.taken.get_or_insert(Take { delta: 0, max, window_ms });
        take.delta = take.delta.saturating_add(delta);
        take.max = max.or(take.max.map(|max| max.saturating_add(delta)));
    }

    /// Refuses the append if the registry has changed since the turn read it.
    pub(crate) fn require_rows(&mut self) {
        self.uses_rows = true;
    }

    /// A counter, with the changes of this turn.
    pub(crate) fn count(&self, authority: &dyn Authority, counter: Name<'_>) -> i64 {
        let change = self.find(counter).map_or(0, |counted| counted.change.sum());
        authority.count(counter).saturating_add(change)
    }

    /// The sum of a counter over a window, with the changes of this turn.
    pub(crate) fn in_window(
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

    /// The list for the store: returned amounts before taken ones, each in the order of
    /// the decisions.
    pub(crate) fn into_list(mut self, authority: &dyn Authority) -> Vec<Guard> {
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

    /// Adds `part` of each change: of accounts, then of all other counters.
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
    /// Its figures, with the changes of this turn.
    pub(crate) fn tally(&self) -> Tally {
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
    pub(crate) fn add(&mut self, delta: i64) {
        self.plain = self.plain.saturating_add(delta);
    }

    /// The decision relies on the counter staying at or below this. A later call replaces
    /// the bound: it knows everything that was added.
    pub(crate) fn believe(&mut self, max: Option<i64>) {
        self.bound = max;
    }

    /// Takes an amount within a bound.
    pub(crate) fn take(&mut self, delta: i64, max: Option<i64>) {
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

    /// The whole change.
    fn sum(&self) -> i64 {
        self.plain.saturating_add(self.taken.map_or(0, |take| take.delta))
    }

    /// Makes one change of what is returned and taken, unless the counter goes down. The
    /// bound is checked in the same way.
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

#[cfg(test)]
mod tests;
