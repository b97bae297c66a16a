//! Who watches which run.

use crate::tail::Tail;
use sluice_core::port::store::Frame;
use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// The id of its last event.
    pub version: u64,
    /// What it is doing.
    pub status: RunStatus,
    /// Whether it is in memory here.
    pub resident: bool,
}

/// The watched runs. Costs an atomic read where nobody watches.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    count: AtomicUsize,
    by_run: Mutex<BTreeMap<RunId, Arc<Tail>>>,
}

impl Watches {
    /// Follows a run. The first value comes with the run's next turn.
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

    /// Tells whoever follows the run. `frame` is made for those who read it.
    pub(crate) fn tell(&self, run: RunId, tip: Tip, frame: impl FnOnce() -> Option<Frame>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let Some(tail) = self.by_run().get(&run).cloned() else { return };
        let frame = if tail.is_read() { frame() } else { None };
        tail.tell(tip, frame);
    }

    fn by_run(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Tail>>> {
        self.by_run.lock().expect("nobody panics while holding it")
    }
}

/// The tail of a run. Those that nobody follows any more are forgotten.
fn entry(by_run: &mut BTreeMap<RunId, Arc<Tail>>, run: RunId) -> &Arc<Tail> {
    by_run.retain(|_, tail| tail.is_followed());
    by_run.entry(run).or_insert_with(|| Arc::new(Tail::new()))
}
