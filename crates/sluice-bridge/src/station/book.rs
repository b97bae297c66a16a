//! The dispatches that a bridge knows: running ones and those in the spool.
//!
//! INVARIANT: only the caller that receives [`Admission::New`] starts a dispatch.

use super::spool::kept::State;
use crate::limits::KNOWN_MAX;
use crate::protocol::Key;
use crate::protocol::callback::CallbackBody;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Progress of a dispatch that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// Not yet on disk.
    Arriving,
    Running,
    /// Not accepted: the spool or the permits failed.
    Refused,
    Done(Arc<CallbackBody>),
}

/// A running dispatch, as seen by requests for the same dispatch.
#[derive(Debug, Clone)]
pub(super) struct Underway {
    pub(super) phase: watch::Receiver<Phase>,
    /// Held by a request that waits for the result on its connection; receives a message
    /// when the response was sent.
    pub(super) hand: mpsc::Sender<()>,
    pub(super) cancel: CancellationToken,
}

#[derive(Debug, Clone)]
enum Entry {
    Underway(Underway),
    Kept(State, u64),
}

/// A running dispatch, as seen by the task that executes it.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) phase: watch::Sender<Phase>,
    /// Receives a message when a request has the result; closes when no request waits for
    /// it.
    pub(super) taken: mpsc::Receiver<()>,
    pub(super) cancel: CancellationToken,
}

/// What the table knows of a dispatch that arrives.
#[derive(Debug)]
pub(super) enum Arrival {
    /// It was unknown; the caller starts it.
    New(Underway, Work),
    Underway(Underway),
    /// It has ended, and its result is in the spool.
    Kept(State),
    /// The table is full.
    Full,
}

/// All known dispatches.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: Mutex<BTreeMap<Key, Entry>>,
}

impl Book {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a dispatch, unless it is known or the table is full.
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

    /// Records the state of a dispatch that is no longer running.
    pub(super) fn keep(&self, key: Key, state: State, now_ms: u64) {
        self.entries().insert(key, Entry::Kept(state, now_ms));
    }

    /// Marks a delivered or given-up dispatch for another delivery. Returns whether it was
    /// one.
    pub(super) fn reopen(&self, key: Key, now_ms: u64) -> bool {
        let mut entries = self.entries();
        let over =
            matches!(entries.get(&key), Some(Entry::Kept(State::Delivered | State::GivenUp, _)));
        if over {
            entries.insert(key, Entry::Kept(State::Finished, now_ms));
        }
        over
    }

    pub(super) fn forget(&self, key: Key) {
        self.entries().remove(&key);
    }

    pub(super) fn underway(&self, key: Key) -> Option<Underway> {
        match self.entries().get(&key)? {
            Entry::Underway(underway) => Some(underway.clone()),
            Entry::Kept(..) => None,
        }
    }

    pub(super) fn knows(&self, key: Key) -> bool {
        self.entries().contains_key(&key)
    }

    /// Number of running dispatches, and of results that are not delivered.
    pub(super) fn counts(&self) -> (usize, usize) {
        let entries = self.entries();
        let underway = entries.values().filter(|one| matches!(one, Entry::Underway(_))).count();
        let waiting = |one: &&Entry| matches!(one, Entry::Kept(State::Finished, _));
        (underway, entries.values().filter(waiting).count())
    }

    /// Records that can be removed: those that `old` selects, and the oldest delivered ones
    /// beyond half of the table's limit.
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
