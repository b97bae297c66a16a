//! Runs that are followed, and the latest tip of each.

use crate::engine::Inner;
use crate::tail::Tail;
use sluice_core::id::RunId;
use sluice_core::port::store::Frame;
use sluice_core::status::RunStatus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Latest known position of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// Id of its last event.
    pub version: u64,
    /// The status after the newest event.
    pub status: RunStatus,
    /// Whether this process has it loaded.
    pub(crate) resident: bool,
}

/// Followed runs. Without followers a turn costs one atomic read.
#[derive(Debug, Default)]
pub(crate) struct FollowedRuns {
    count: AtomicUsize,
    tails: Mutex<Tails>,
}

#[derive(Debug, Default)]
struct Tails {
    by_run: BTreeMap<RunId, Arc<Tail>>,
    /// Tails after the last sweep.
    swept: usize,
}

/// Tails without followers that may stay in memory, besides as many as are followed.
const UNFOLLOWED_MAX: usize = 64;

impl Tails {
    /// The tail of a run: a new one if the last one has lost its followers, because
    /// its tip may be old. Each sweep is paid for by the tails added since the last one.
    fn get(&mut self, run: RunId) -> Arc<Tail> {
        if self.by_run.len() > 2 * self.swept + UNFOLLOWED_MAX {
            self.by_run.retain(|_, tail| tail.is_followed());
            self.swept = self.by_run.len();
        }
        let tail = self.by_run.entry(run).or_default();
        if !tail.is_followed() {
            *tail = Arc::default();
        }
        Arc::clone(tail)
    }
}

impl FollowedRuns {
    /// The tail of a run and a subscription to it.
    pub(crate) fn tail(&self, run: RunId) -> (Arc<Tail>, watch::Receiver<Option<Tip>>) {
        let mut tails = self.tails();
        let tail = tails.get(run);
        let receiver = tail.subscribe();
        self.count.store(tails.by_run.len(), Ordering::Release);
        (tail, receiver)
    }

    /// Publishes a tip to the followers of a run. `frame` is only built if a reader needs it.
    pub(crate) fn publish(&self, run: RunId, tip: Tip, frame: impl FnOnce() -> Option<Frame>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let Some(tail) = self.tails().by_run.get(&run).cloned() else { return };
        let frame = if tail.is_read() { frame() } else { None };
        tail.publish(tip, frame);
    }

    fn tails(&self) -> MutexGuard<'_, Tails> {
        self.tails.lock().expect("the lock is not poisoned")
    }
}

impl Inner {
    /// Follows a run, from its tip on if it is loaded.
    pub(crate) fn follow(&self, run: RunId) -> (Arc<Tail>, watch::Receiver<Option<Tip>>) {
        // Subscribe first, so that no turn is missed.
        let (tail, tips) = self.followed.tail(run);
        let handle = self.loaded_runs().get(&run).cloned();
        if let Some(tip) = handle.and_then(|handle| handle.tip()) {
            tail.publish_first(tip);
        }
        (tail, tips)
    }
}
