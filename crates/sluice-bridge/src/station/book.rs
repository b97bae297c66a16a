//! The dispatches that a station knows: what is under way, and what it remembers.
//!
//! INVARIANT: a dispatch is begun by whoever enters it here, and by nobody else.

use super::spool::kept::State;
use crate::limits::KNOWN_MAX;
use crate::protocol::Key;
use crate::protocol::callback::CallbackBody;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How far a dispatch under way has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// It is not on the disk yet.
    Arriving,
    /// It is worked on.
    Running,
    /// It was not taken after all.
    Refused,
    /// It is over.
    Done(Arc<CallbackBody>),
}

/// A dispatch under way, for whoever comes with the same.
#[derive(Debug, Clone)]
pub(super) struct Underway {
    /// How far it is.
    pub(super) phase: watch::Receiver<Phase>,
    /// Held by whoever waits for the result at the other end of a connection,
    /// and told when they have it.
    pub(super) hand: mpsc::Sender<()>,
    /// Stops the work.
    pub(super) cancel: CancellationToken,
}

#[derive(Debug, Clone)]
enum Entry {
    Underway(Underway),
    Kept(State, u64),
}

/// The end of whoever works on a dispatch.
#[derive(Debug)]
pub(super) struct Work {
    /// Tells how far it is.
    pub(super) phase: watch::Sender<Phase>,
    /// Hears that somebody has the result; ends when nobody waits for it.
    pub(super) taken: mpsc::Receiver<()>,
    /// Fires when it is to stop.
    pub(super) cancel: CancellationToken,
}

/// What is known of a dispatch that arrives.
#[derive(Debug)]
pub(super) enum Arrival {
    /// Nothing: it was entered, and is to be begun.
    New(Underway, Work),
    /// It is under way.
    Underway(Underway),
    /// It is over, and its result is in the spool.
    Kept(State),
    /// There is no room for more.
    Full,
}

/// The dispatches.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: Mutex<BTreeMap<Key, Entry>>,
}

impl Book {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a dispatch, if there is room and nobody did so before.
    pub(super) fn enter(&self, key: Key) -> Arrival {
        let mut entries = self.entries();
        match entries.get(&key) {
            Some(Entry::Underway(underway)) => return Arrival::Underway(underway.clone()),
            Some(Entry::Kept(state, _)) => return Arrival::Kept(*state),
            None if entries.len() >= KNOWN_MAX => return Arrival::Full,
            None => {}
        }
        let (phase, seen) = watch::channel(Phase::Arriving);
        let (hand, taken) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let underway = Underway { phase: seen, hand, cancel: cancel.clone() };
        entries.insert(key, Entry::Underway(underway.clone()));
        Arrival::New(underway, Work { phase, taken, cancel })
    }

    /// Notes how far a dispatch is that is no longer worked on.
    pub(super) fn keep(&self, key: Key, state: State, now_ms: u64) {
        self.entries().insert(key, Entry::Kept(state, now_ms));
    }

    /// Notes that a dispatch that somebody has is to be delivered again; whether
    /// it was one.
    pub(super) fn reopen(&self, key: Key, now_ms: u64) -> bool {
        let mut entries = self.entries();
        let over =
            matches!(entries.get(&key), Some(Entry::Kept(State::Delivered | State::GivenUp, _)));
        if over {
            entries.insert(key, Entry::Kept(State::Finished, now_ms));
        }
        over
    }

    /// Forgets a dispatch.
    pub(super) fn forget(&self, key: Key) {
        self.entries().remove(&key);
    }

    /// A dispatch that is under way.
    pub(super) fn underway(&self, key: Key) -> Option<Underway> {
        match self.entries().get(&key)? {
            Entry::Underway(underway) => Some(underway.clone()),
            Entry::Kept(..) => None,
        }
    }

    /// Whether a dispatch is known.
    pub(super) fn knows(&self, key: Key) -> bool {
        self.entries().contains_key(&key)
    }

    /// How many are under way, and how many have a result that nobody has.
    pub(super) fn counts(&self) -> (usize, usize) {
        let entries = self.entries();
        let underway = entries.values().filter(|one| matches!(one, Entry::Underway(_))).count();
        let waiting = |one: &&Entry| matches!(one, Entry::Kept(State::Finished, _));
        (underway, entries.values().filter(waiting).count())
    }

    /// Those that need not be remembered any more: older than `old` says, and
    /// the oldest delivered ones past half of the room there is.
    pub(super) fn stale(&self, old: impl Fn(State, u64) -> bool) -> Vec<Key> {
        let entries = self.entries();
        let kept = entries.iter().filter_map(|(key, entry)| match entry {
            Entry::Kept(state, at_ms) => Some((*key, *state, *at_ms)),
            Entry::Underway(_) => None,
        });
        let (mut stale, mut delivered) = (Vec::new(), Vec::new());
        for (key, state, at_ms) in kept {
            if old(state, at_ms) {
                stale.push(key);
            } else if state == State::Delivered {
                delivered.push((at_ms, key));
            }
        }
        let over = (entries.len() - stale.len()).saturating_sub(KNOWN_MAX / 2);
        delivered.sort_unstable();
        stale.extend(delivered.into_iter().take(over).map(|(_, key)| key));
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::run::id::RunId;

    #[test]
    fn a_dispatch_is_new_once() {
        let (book, key) = (Book::default(), Key::of(RunId(1), "a", 1));
        assert!(matches!(book.enter(key), Arrival::New(..)));
        assert!(matches!(book.enter(key), Arrival::Underway(_)));
        assert_eq!(book.counts(), (1, 0));
        book.keep(key, State::Finished, 5);
        assert_eq!(book.counts(), (0, 1));
        assert!(!book.reopen(key, 6));
        book.keep(key, State::Delivered, 7);
        assert!(matches!(book.enter(key), Arrival::Kept(State::Delivered)));
        assert!(book.reopen(key, 8) && !book.reopen(key, 8));
        assert!(book.stale(|_, at_ms| at_ms < 8).is_empty());
        assert_eq!(book.stale(|_, at_ms| at_ms <= 8), [key]);
        book.forget(key);
        assert!(!book.knows(key));
    }
}
