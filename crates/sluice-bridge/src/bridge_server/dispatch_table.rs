//! The dispatches that a bridge knows: running ones and those in the spool.
//!
//! INVARIANT: only the caller that receives [`Admission::New`] starts a dispatch.

use super::spool::record::SpoolState;
use crate::limits::KNOWN_MAX;
use crate::protocol::DispatchHash;
use crate::protocol::callback::CallbackBody;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Progress of a dispatch that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DispatchPhase {
    /// Not yet on disk.
    Arriving,
    Running,
    /// Not accepted: the spool or the permits failed.
    Refused,
    Ended(Arc<CallbackBody>),
}

/// A running dispatch, as seen by requests for the same dispatch.
#[derive(Debug, Clone)]
pub(super) struct RunningDispatch {
    pub(super) phase: watch::Receiver<DispatchPhase>,
    /// Held by a request that waits for the result on its connection; receives a message
    /// when the response was sent.
    pub(super) handover: mpsc::Sender<()>,
    pub(super) cancel: CancellationToken,
}

#[derive(Debug, Clone)]
enum TableEntry {
    Running(RunningDispatch),
    Recorded(SpoolState, u64),
}

/// A running dispatch, as seen by the task that executes it.
#[derive(Debug)]
pub(super) struct DispatchWork {
    pub(super) phase: watch::Sender<DispatchPhase>,
    /// Receives a message when a request has the result; closes when no request waits for
    /// it.
    pub(super) received: mpsc::Receiver<()>,
    pub(super) cancel: CancellationToken,
}

/// What the table knows of a dispatch that arrives.
#[derive(Debug)]
pub(super) enum Admission {
    /// It was unknown; the caller starts it.
    New(RunningDispatch, DispatchWork),
    Running(RunningDispatch),
    /// It has ended, and its result is in the spool.
    Recorded(SpoolState),
    /// The table is full.
    Full,
}

/// All known dispatches.
#[derive(Debug, Default)]
pub(super) struct DispatchTable {
    entries: Mutex<BTreeMap<DispatchHash, TableEntry>>,
}

impl DispatchTable {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<DispatchHash, TableEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a dispatch, unless it is known or the table is full.
    pub(super) fn admit(&self, key: DispatchHash) -> Admission {
        let mut entries = self.entries();
        match entries.get(&key) {
            Some(TableEntry::Running(underway)) => return Admission::Running(underway.clone()),
            Some(TableEntry::Recorded(state, _)) => return Admission::Recorded(*state),
            None if entries.len() >= KNOWN_MAX => return Admission::Full,
            None => {}
        }
        let (phase, seen) = watch::channel(DispatchPhase::Arriving);
        let (handover, received) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let underway = RunningDispatch { phase: seen, handover, cancel: cancel.clone() };
        entries.insert(key, TableEntry::Running(underway.clone()));
        Admission::New(underway, DispatchWork { phase, received, cancel })
    }

    /// Records the state of a dispatch that is no longer running.
    pub(super) fn record(&self, key: DispatchHash, state: SpoolState, now_ms: u64) {
        self.entries().insert(key, TableEntry::Recorded(state, now_ms));
    }

    /// Marks a delivered or given-up dispatch for another delivery. Returns whether it was
    /// one.
    pub(super) fn reopen(&self, key: DispatchHash, now_ms: u64) -> bool {
        let mut entries = self.entries();
        let over = matches!(
            entries.get(&key),
            Some(TableEntry::Recorded(SpoolState::Delivered | SpoolState::GivenUp, _))
        );
        if over {
            entries.insert(key, TableEntry::Recorded(SpoolState::Finished, now_ms));
        }
        over
    }

    pub(super) fn remove(&self, key: DispatchHash) {
        self.entries().remove(&key);
    }

    pub(super) fn underway(&self, key: DispatchHash) -> Option<RunningDispatch> {
        match self.entries().get(&key)? {
            TableEntry::Running(underway) => Some(underway.clone()),
            TableEntry::Recorded(..) => None,
        }
    }

    pub(super) fn contains(&self, key: DispatchHash) -> bool {
        self.entries().contains_key(&key)
    }

    /// Number of running dispatches, and of results that are not delivered.
    pub(super) fn counts(&self) -> (usize, usize) {
        let entries = self.entries();
        let underway = entries.values().filter(|one| matches!(one, TableEntry::Running(_))).count();
        let waiting =
            |one: &&TableEntry| matches!(one, TableEntry::Recorded(SpoolState::Finished, _));
        (underway, entries.values().filter(waiting).count())
    }

    /// Records that can be removed: those that `old` selects, and the oldest delivered ones
    /// beyond half of the table's limit.
    pub(super) fn expired(&self, old: impl Fn(SpoolState, u64) -> bool) -> Vec<DispatchHash> {
        let entries = self.entries();
        let kept = entries.iter().filter_map(|(key, entry)| match entry {
            TableEntry::Recorded(state, at_ms) => Some((*key, *state, *at_ms)),
            TableEntry::Running(_) => None,
        });
        let (mut expired, mut delivered) = (Vec::new(), Vec::new());
        for (key, state, at_ms) in kept {
            if old(state, at_ms) {
                expired.push(key);
            } else if state == SpoolState::Delivered {
                delivered.push((at_ms, key));
            }
        }
        let over = (entries.len() - expired.len()).saturating_sub(KNOWN_MAX / 2);
        delivered.sort_unstable();
        expired.extend(delivered.into_iter().take(over).map(|(_, key)| key));
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::id::RunId;

    #[test]
    fn a_dispatch_is_new_once() {
        let (table, key) = (DispatchTable::default(), DispatchHash::new(RunId(1), "a", 1));
        assert!(matches!(table.admit(key), Admission::New(..)));
        assert!(matches!(table.admit(key), Admission::Running(_)));
        assert_eq!(table.counts(), (1, 0));
        table.record(key, SpoolState::Finished, 5);
        assert_eq!(table.counts(), (0, 1));
        assert!(!table.reopen(key, 6));
        table.record(key, SpoolState::Delivered, 7);
        assert!(matches!(table.admit(key), Admission::Recorded(SpoolState::Delivered)));
        assert!(table.reopen(key, 8) && !table.reopen(key, 8));
        assert!(table.expired(|_, at_ms| at_ms < 8).is_empty());
        assert_eq!(table.expired(|_, at_ms| at_ms <= 8), [key]);
        table.remove(key);
        assert!(!table.contains(key));
    }
}
