//! Runs that are followed, and the latest tip of each.

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
    /// Its status.
    pub status: RunStatus,
    /// Whether this process has it loaded.
    pub resident: bool,
}

/// Followed runs. Without followers a turn costs one atomic read.
#[derive(Debug, Default)]
pub(crate) struct FollowedRuns {
    count: AtomicUsize,
    by_run: Mutex<BTreeMap<RunId, Arc<Tail>>>,
}

impl FollowedRuns {
    /// Follows a run. The first value comes with its next turn.
    pub(crate) fn follow(&self, run: RunId) -> watch::Receiver<Option<Tip>> {
        let mut by_run = self.by_run();
        let receiver = entry(&mut by_run, run).subscribe();
        self.count.store(by_run.len(), Ordering::Release);
        receiver
    }

    /// The tail of a run, for a reader that subscribes to it.
    pub(crate) fn tail(&self, run: RunId) -> (Arc<Tail>, watch::Receiver<Option<Tip>>) {
        let mut by_run = self.by_run();
        let tail = Arc::clone(entry(&mut by_run, run));
        let receiver = tail.subscribe();
        self.count.store(by_run.len(), Ordering::Release);
        (tail, receiver)
    }

    /// Publishes a tip to the followers of a run. `frame` is only built if a reader needs it.
    pub(crate) fn publish(&self, run: RunId, tip: Tip, frame: impl FnOnce() -> Option<Frame>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let Some(tail) = self.by_run().get(&run).cloned() else { return };
        let frame = if tail.is_read() { frame() } else { None };
        tail.publish(tip, frame);
    }

    fn by_run(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Tail>>> {
        self.by_run.lock().expect("the lock is not poisoned")
    }
}

/// The tail of a run. Tails without followers are removed.
fn entry(by_run: &mut BTreeMap<RunId, Arc<Tail>>, run: RunId) -> &Arc<Tail> {
    by_run.retain(|_, tail| tail.is_followed());
    by_run.entry(run).or_insert_with(|| Arc::new(Tail::new()))
}
