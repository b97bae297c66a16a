//! Cache of counters as of the last answer of the store.
//!
//! Most counters belong to accounts, three to each. They share an entry: a turn reads all
//! three with one lookup.

use super::lock;
use sluice_core::cost::is_spend;
use sluice_core::port::authority::Tally;
use sluice_core::port::store::Guard;
use sluice_govern::account::{CounterName, Figure, Name};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most names in the cache. When it is full it is cleared: a missing counter reads as 0,
/// and the store corrects it.
const REMEMBERED_MAX: usize = 65_536;
/// Slices of a sliding window, as in the store.
const SLICES: u64 = 60;

/// Next process-wide id of an entry.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Number of guard-list lengths with a lookup cache of their own.
const SHAPES: usize = 32;

#[derive(Default)]
pub(super) struct CounterCache {
    known: Mutex<CounterTable>,
}

/// Entries of accounts, agents and single counters.
#[derive(Default)]
struct CounterTable {
    entries: Vec<CounterEntry>,
    by_name: HashMap<String, usize>,
    /// For each length of a guard list: the entries of the last such list. The next list of
    /// that length mostly refers to the same entries in the same order.
    indexes: [Vec<usize>; SHAPES],
}

/// Counters of one account or agent, or a single counter.
struct CounterEntry {
    name: String,
    /// Process-wide id of the entry, never reused.
    number: u64,
    /// Indexed by [`CounterPart`].
    known: [KnownCount; PARTS],
}

#[derive(Clone, Copy, Default)]
struct KnownCount {
    count: i64,
    at_ms: u64,
}

/// Which counter of an entry.
#[derive(Clone, Copy)]
enum CounterPart {
    Held,
    Spent,
    Over,
    Busy,
    /// A counter that belongs to no account or agent.
    Own,
}

const PARTS: usize = 5;

/// The entry and part under which a counter is cached.
///
/// INVARIANT: no two counters share entry and part.
fn key_of(counter: Name<'_>) -> (CounterPart, Name<'_>) {
    if let Some(agent) = counter.busy_agent() {
        return (CounterPart::Busy, Name::of(agent));
    }
    let Some((figure, account)) = counter.of_account() else { return (CounterPart::Own, counter) };
    let part = match figure {
        Figure::Held => CounterPart::Held,
        Figure::Spent => CounterPart::Spent,
        Figure::Over => CounterPart::Over,
    };
    (part, Name::of(account))
}

impl CounterTable {
    fn find(&self, name: &str) -> Option<&CounterEntry> {
        self.by_name.get(name).map(|at| &self.entries[*at])
    }

    fn get(&self, counter: Name<'_>) -> Option<KnownCount> {
        let (part, name) = key_of(counter);
        self.find(&name.text()).map(|entry| entry.known[part as usize])
    }

    fn set(&mut self, counter: Name<'_>, known: KnownCount) {
        let (part, name) = key_of(counter);
        let at = self.index_of(name.whole());
        self.entries[at].known[part as usize] = known;
    }

    /// Sets the counter of a guard, first trying the entry at `index`. Returns the index of
    /// the entry.
    fn set_at(&mut self, counter: &CounterName, known: KnownCount, index: Option<usize>) -> usize {
        let (part, name) = key_of(counter.name());
        let is_it = |at: &usize| {
            let entry = self.entries.get(*at);
            entry
                .is_some_and(|entry| counter.number() == Some(entry.number) || name.is(&entry.name))
        };
        let at = index.filter(is_it).unwrap_or_else(|| self.index_of(name.whole()));
        self.entries[at].known[part as usize] = known;
        at
    }

    /// Index of the entry of a name, which is created if missing.
    fn index_of(&mut self, name: String) -> usize {
        *self.by_name.entry(name).or_insert_with_key(|name| {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            self.entries.push(CounterEntry {
                name: name.clone(),
                number,
                known: Default::default(),
            });
            self.entries.len() - 1
        })
    }

    fn make_room(&mut self) {
        if self.entries.len() >= REMEMBERED_MAX {
            *self = CounterTable::default();
        }
    }
}

impl CounterCache {
    /// Cached value of a counter; 0 if unknown.
    pub(super) fn get(&self, counter: Name<'_>) -> i64 {
        lock(&self.known).get(counter).map_or(0, |known| known.count)
    }

    /// Cached counters of an account; 0 if unknown.
    pub(super) fn tally(&self, account: &str) -> Tally {
        let table = lock(&self.known);
        let Some(CounterEntry { known, number, .. }) = table.find(account) else {
            return Tally::default();
        };
        let [held, spent, over, ..] = known.map(|known| known.count);
        Tally { held, spent, over, number: *number }
    }

    /// Cached sum over a window. After a slice the real sum may be lower, so one more
    /// attempt is let through.
    pub(super) fn in_window(&self, counter: Name<'_>, window_ms: u64, now_ms: u64) -> i64 {
        let Some(known) = lock(&self.known).get(counter) else { return 0 };
        let age_ms = now_ms.saturating_sub(known.at_ms);
        if age_ms >= window_ms {
            0
        } else if age_ms > window_ms / SLICES {
            (known.count - 1).max(0)
        } else {
            known.count
        }
    }

    /// Caches counters read from the store.
    pub(super) fn learn<'a>(&self, counts: impl Iterator<Item = (&'a str, i64)>, at_ms: u64) {
        let mut table = lock(&self.known);
        table.make_room();
        for (counter, count) in counts {
            table.set(Name::of(counter), KnownCount { count, at_ms });
        }
    }

    /// Caches the counters that an append returned for its guards. Hourly spend is skipped:
    /// no decision reads it.
    pub(super) fn learn_guards(&self, guards: &[Guard], counts: &[i64], at_ms: u64) {
        let mut table = lock(&self.known);
        table.make_room();
        let shape = guards.len() % SHAPES;
        let mut indexes = std::mem::take(&mut table.indexes[shape]);
        let cached = guards.iter().zip(counts).filter(|(guard, _)| !is_spend(&guard.counter));
        for (number, (guard, count)) in cached.enumerate() {
            let known = KnownCount { count: *count, at_ms };
            let at = table.set_at(&guard.counter, known, indexes.get(number).copied());
            match indexes.get_mut(number) {
                Some(index) => *index = at,
                None => indexes.push(at),
            }
        }
        table.indexes[shape] = indexes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(counter: &str) -> Guard {
        Guard { counter: counter.into(), delta: 1, max: None, window_ms: None }
    }

    fn figures(counts: &CounterCache, account: &str) -> [i64; 3] {
        let Tally { held, spent, over, .. } = counts.tally(account);
        [held, spent, over]
    }

    #[test]
    fn a_number_identifies_one_account() {
        let [one, other] = [CounterCache::default(), CounterCache::default()];
        for counts in [&one, &other] {
            counts.learn([("held:a", 1), ("held:b", 2)].into_iter(), 0);
        }
        let numbers = [one.tally("a"), one.tally("b"), other.tally("a")].map(|tally| tally.number);
        let different: std::collections::BTreeSet<u64> = numbers.into_iter().collect();
        assert_eq!((different.len(), different.contains(&0)), (3, false));
        assert_eq!(one.tally("c").number, 0);
        // A counter with an id is found, whatever the last list was.
        let [a, _, _] = numbers;
        let guard = |number: u64| Guard {
            counter: CounterName::of_account(Figure::Spent, &"a".into(), number),
            ..guard("")
        };
        for (count, number) in [(5, 0), (6, a), (7, a), (8, numbers[2]), (9, a)] {
            one.learn_guards(&[guard(number)], &[count], 0);
            assert_eq!(figures(&one, "a"), [1, count, 0]);
        }
        assert_eq!(figures(&one, "b"), [2, 0, 0]);
    }

    #[test]
    fn an_account_has_all_of_its_counters_and_no_other() {
        let counts = CounterCache::default();
        assert_eq!(counts.tally("a"), Tally::default());
        let values = [("held:a", 1), ("spent:a", 2), ("over:a", 3), ("a", 4), ("held:b", 5)];
        counts.learn(values.into_iter(), 0);
        assert_eq!(figures(&counts, "a"), [1, 2, 3]);
        assert_eq!(figures(&counts, "b"), [5, 0, 0]);
        for (counter, count) in values {
            assert_eq!(counts.get(Name::of(counter)), count, "{counter}");
        }
        assert_eq!(counts.get(Name::of("b")), 0);
    }

    #[test]
    fn counts_of_guards_are_cached_whatever_the_previous_guards_were() {
        let counts = CounterCache::default();
        let lists = [
            vec!["registry", "held:a", "held:b", "over:a"],
            vec!["registry", "held:b", "held:a", "over:b", "busy:x"],
            vec!["held:c"],
            vec!["spend|1|a|w|m|cost", "registry", "spent:c", "held:a"],
        ];
        let mut count = 0;
        for list in lists {
            let guards: Vec<Guard> = list.iter().map(|one| guard(one)).collect();
            let values: Vec<i64> = (count + 1..).take(guards.len()).collect();
            count += 10;
            counts.learn_guards(&guards, &values, 7);
            for (counter, value) in list.iter().zip(values) {
                let cached = if is_spend(&(*counter).into()) { 0 } else { value };
                assert_eq!(counts.get(Name::of(counter)), cached, "{counter}");
            }
        }
        assert_eq!(figures(&counts, "b"), [12, 0, 14]);
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let counts = CounterCache::default();
        let names: Vec<String> =
            (0..REMEMBERED_MAX).map(|number| format!("held:{number}")).collect();
        counts.learn(names.iter().map(|name| (name.as_str(), 1)), 0);
        counts.learn_guards(&[guard("held:1")], &[2], 0);
        assert_eq!((counts.get(Name::of("held:0")), counts.get(Name::of("held:1"))), (0, 2));
    }
}
