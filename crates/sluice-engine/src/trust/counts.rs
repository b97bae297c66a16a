//! Counters as this process last heard of them.
//!
//! Most are those of accounts, three of each. They are kept together: a turn
//! wants to know all three, and finds them by one name.

use super::held;
use sluice_core::cost::is_spend;
use sluice_core::port::authority::Tally;
use sluice_core::port::store::Guard;
use sluice_govern::account::{CounterName, Figure, Name};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most names that are remembered. Beyond that all are forgotten: one that
/// is not known counts as nothing, and the store says what it is.
const REMEMBERED_MAX: usize = 65_536;
/// Slices that a window is counted in, as the store does.
const SLICES: u64 = 60;

/// The next number that stands for a name.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Lists of guards that are told apart by their length. Longer ones are rare.
const SHAPES: usize = 32;

/// Counters by name.
#[derive(Default)]
pub(super) struct Counts {
    known: Mutex<Book>,
}

/// What is known of accounts, and of everything else that is counted.
#[derive(Default)]
struct Book {
    slots: Vec<Slot>,
    by_name: HashMap<String, usize>,
    /// Where the counters of an append were, one for each of its guards, by how
    /// many guards there were. Those of the next with as many are mostly on the
    /// same, in the same order.
    places: [Vec<usize>; SHAPES],
}

/// What is known under one name: of an account, an agent, or a counter of its own.
struct Slot {
    name: String,
    /// Stands for the name, in this process and never for another.
    number: u64,
    /// By [`Part`].
    known: [Known; PARTS],
}

#[derive(Clone, Copy, Default)]
struct Known {
    count: i64,
    at_ms: u64,
}

/// Which of the counters of a name.
#[derive(Clone, Copy)]
enum Part {
    Held,
    Spent,
    Over,
    /// Steps an agent has in flight.
    Busy,
    /// It is no account's and no agent's.
    Own,
}

/// How many parts there are.
const PARTS: usize = 5;

/// The name under which a counter is kept, and which of them it is.
///
/// INVARIANT: no two counters have the same name and part.
fn part_of(counter: Name<'_>) -> (Part, Name<'_>) {
    if let Some(agent) = counter.busy_agent() {
        return (Part::Busy, Name::of(agent));
    }
    let Some((figure, account)) = counter.of_account() else { return (Part::Own, counter) };
    let part = match figure {
        Figure::Held => Part::Held,
        Figure::Spent => Part::Spent,
        Figure::Over => Part::Over,
    };
    (part, Name::of(account))
}

impl Book {
    fn find(&self, name: &str) -> Option<&Slot> {
        self.by_name.get(name).map(|at| &self.slots[*at])
    }

    fn get(&self, counter: Name<'_>) -> Option<Known> {
        let (part, name) = part_of(counter);
        self.find(&name.text()).map(|slot| slot.known[part as usize])
    }

    /// Notes what a counter is.
    fn note(&mut self, counter: Name<'_>, known: Known) {
        let (part, name) = part_of(counter);
        let at = self.place(name.whole());
        self.slots[at].known[part as usize] = known;
    }

    /// Notes what the counter of a guard is: at a place, if it is there. Answers
    /// where it was.
    fn note_at(&mut self, counter: &CounterName, known: Known, place: Option<usize>) -> usize {
        let (part, name) = part_of(counter.name());
        let is_it = |at: &usize| {
            let slot = self.slots.get(*at);
            slot.is_some_and(|slot| counter.number() == Some(slot.number) || name.is(&slot.name))
        };
        let at = place.filter(is_it).unwrap_or_else(|| self.place(name.whole()));
        self.slots[at].known[part as usize] = known;
        at
    }

    /// Where a name is, from now on if it was not there.
    fn place(&mut self, name: String) -> usize {
        *self.by_name.entry(name).or_insert_with_key(|name| {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            self.slots.push(Slot { name: name.clone(), number, known: Default::default() });
            self.slots.len() - 1
        })
    }

    fn make_room(&mut self) {
        if self.slots.len() >= REMEMBERED_MAX {
            *self = Book::default();
        }
    }
}

impl Counts {
    /// What a counter was; nothing if it is not known.
    pub(super) fn get(&self, counter: Name<'_>) -> i64 {
        held(&self.known).get(counter).map_or(0, |known| known.count)
    }

    /// What was in an account; nothing if it is not known.
    pub(super) fn tally(&self, account: &str) -> Tally {
        let book = held(&self.known);
        let Some(Slot { known, number, .. }) = book.find(account) else { return Tally::default() };
        let [held, spent, over, ..] = known.map(|known| known.count);
        Tally { held, spent, over, number: *number }
    }

    /// A sum over a window. What was heard longer ago than a slice may have
    /// become less, so one more try is worth it.
    pub(super) fn in_window(&self, counter: Name<'_>, window_ms: u64, now_ms: u64) -> i64 {
        let Some(known) = held(&self.known).get(counter) else { return 0 };
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
        let mut book = held(&self.known);
        book.make_room();
        for (counter, count) in counts {
            book.note(Name::of(counter), Known { count, at_ms });
        }
    }

    /// Notes what an append made of its guards' counters. Nothing is decided by
    /// what work has cost in an hour, so that is left to the store.
    pub(super) fn learn_guards(&self, guards: &[Guard], counts: &[i64], at_ms: u64) {
        let mut book = held(&self.known);
        book.make_room();
        let shape = guards.len() % SHAPES;
        let mut places = std::mem::take(&mut book.places[shape]);
        let heard = guards.iter().zip(counts).filter(|(guard, _)| !is_spend(&guard.counter));
        for (number, (guard, count)) in heard.enumerate() {
            let known = Known { count: *count, at_ms };
            let at = book.note_at(&guard.counter, known, places.get(number).copied());
            match places.get_mut(number) {
                Some(place) => *place = at,
                None => places.push(at),
            }
        }
        book.places[shape] = places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(counter: &str) -> Guard {
        Guard { counter: counter.into(), delta: 1, max: None, window_ms: None }
    }

    fn figures(counts: &Counts, account: &str) -> [i64; 3] {
        let Tally { held, spent, over, .. } = counts.tally(account);
        [held, spent, over]
    }

    #[test]
    fn a_number_stands_for_one_account() {
        let [one, other] = [Counts::default(), Counts::default()];
        for counts in [&one, &other] {
            counts.learn([("held:a", 1), ("held:b", 2)].into_iter(), 0);
        }
        let numbers = [one.tally("a"), one.tally("b"), other.tally("a")].map(|tally| tally.number);
        let different: std::collections::BTreeSet<u64> = numbers.into_iter().collect();
        assert_eq!((different.len(), different.contains(&0)), (3, false));
        assert_eq!(one.tally("c").number, 0);
        // What comes with a number is heard, wherever the last list was.
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
    fn an_account_is_all_of_its_counters_and_nothing_of_others() {
        let counts = Counts::default();
        assert_eq!(counts.tally("a"), Tally::default());
        let said = [("held:a", 1), ("spent:a", 2), ("over:a", 3), ("a", 4), ("held:b", 5)];
        counts.learn(said.into_iter(), 0);
        assert_eq!(figures(&counts, "a"), [1, 2, 3]);
        assert_eq!(figures(&counts, "b"), [5, 0, 0]);
        for (counter, count) in said {
            assert_eq!(counts.get(Name::of(counter)), count, "{counter}");
        }
        assert_eq!(counts.get(Name::of("b")), 0);
    }

    #[test]
    fn what_guards_say_is_heard_whatever_the_guards_before_were_on() {
        let counts = Counts::default();
        let lists = [
            vec!["registry", "held:a", "held:b", "over:a"],
            vec!["registry", "held:b", "held:a", "over:b", "busy:x"],
            vec!["held:c"],
            vec!["spend|1|a|w|m|cost", "registry", "spent:c", "held:a"],
        ];
        let mut count = 0;
        for list in lists {
            let guards: Vec<Guard> = list.iter().map(|one| guard(one)).collect();
            let said: Vec<i64> = (count + 1..).take(guards.len()).collect();
            count += 10;
            counts.learn_guards(&guards, &said, 7);
            for (counter, said) in list.iter().zip(said) {
                let heard = if is_spend(&(*counter).into()) { 0 } else { said };
                assert_eq!(counts.get(Name::of(counter)), heard, "{counter}");
            }
        }
        assert_eq!(figures(&counts, "b"), [12, 0, 14]);
    }

    #[test]
    fn a_full_book_starts_anew() {
        let counts = Counts::default();
        let names: Vec<String> =
            (0..REMEMBERED_MAX).map(|number| format!("held:{number}")).collect();
        counts.learn(names.iter().map(|name| (name.as_str(), 1)), 0);
        counts.learn_guards(&[guard("held:1")], &[2], 0);
        assert_eq!((counts.get(Name::of("held:0")), counts.get(Name::of("held:1"))), (0, 2));
    }
}
