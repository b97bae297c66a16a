//! Who watches which run.

use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    by_run: Mutex<BTreeMap<RunId, watch::Sender<Option<Tip>>>>,
}

impl Watches {
    /// Follows a run. The first value comes with the run's next turn.
    pub(crate) fn follow(&self, run: RunId) -> watch::Receiver<Option<Tip>> {
        let mut by_run = self.by_run.lock().expect("nobody panics while holding it");
        by_run.retain(|_, sender| sender.receiver_count() > 0);
        let receiver = by_run.entry(run).or_insert_with(|| watch::channel(None).0).subscribe();
        self.count.store(by_run.len(), Ordering::Release);
        receiver
    }

    /// Tells whoever follows the run.
    pub(crate) fn tell(&self, run: RunId, tip: Tip) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let by_run = self.by_run.lock().expect("nobody panics while holding it");
        if let Some(sender) = by_run.get(&run) {
            sender.send_replace(Some(tip));
        }
    }
}
