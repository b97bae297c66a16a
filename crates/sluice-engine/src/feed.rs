//! Follows all runs: first stored events, then new ones as they are appended.
//!
//! While there are readers, one task reads appends in store order, builds envelopes once
//! for all readers, and keeps the newest in a ring. Readers poll at their own pace. A
//! slow reader falls back to the store; an idle reader costs only its slot. `tail` does
//! the same for the events of one run.
//!
//! INVARIANT: a run never waits for a reader or for the task. INVARIANT: a reader sees
//! every frame once and in order, from its position on. A frame that cannot be read is
//! skipped, so that one broken run does not stop the feed.

mod pump;
mod ring;
mod run_info;

use crate::engine::Inner;
use crate::error::LoadError;
use crate::limits::{FEED_POLL_MS, PAGE_BYTES};
use ring::FeedRing;
use run_info::RunInfoCache;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::store::StoreError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The events of one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// Position in the store's append order.
    pub place: u64,
    /// The run that was appended to.
    pub run: RunId,
    /// The name of the run's workflow, which filters match.
    pub workflow: Arc<str>,
    /// Event envelopes, oldest first.
    pub seen: Vec<Arc<Seen>>,
}

/// The newest frames of all runs, shared by all feed readers.
pub(crate) struct Feed {
    /// Number of readers. Without readers an append costs one atomic read.
    readers: AtomicUsize,
    /// Whether the task is running.
    pumping: Mutex<bool>,
    ring: Mutex<FeedRing>,
    run_infos: Mutex<RunInfoCache>,
    /// Something may have been appended.
    fresh: Notify,
    /// Position up to which the ring is filled.
    end: watch::Sender<u64>,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed {
            readers: AtomicUsize::new(0),
            pumping: Mutex::default(),
            ring: Mutex::default(),
            run_infos: Mutex::default(),
            fresh: Notify::new(),
            end: watch::channel(0).0,
        }
    }

    /// Something was appended, by this process or another.
    pub(crate) fn notify_appended(&self) {
        if self.readers.load(Ordering::Acquire) > 0 {
            self.fresh.notify_one();
        }
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    fn ring(&self) -> MutexGuard<'_, FeedRing> {
        self.ring.lock().expect("the lock is not poisoned")
    }

    fn run_infos(&self) -> MutexGuard<'_, RunInfoCache> {
        self.run_infos.lock().expect("the lock is not poisoned")
    }

    fn pumping(&self) -> MutexGuard<'_, bool> {
        self.pumping.lock().expect("the lock is not poisoned")
    }
}

/// Reads the events of all runs from a position on.
pub struct FeedReader {
    engine: Arc<Inner>,
    ends: watch::Receiver<u64>,
    place: u64,
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        if self.engine.feed.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Wakes the task, which ends when no reader is left.
            self.engine.feed.fresh.notify_one();
        }
    }
}

impl FeedReader {
    pub(crate) async fn open(
        engine: Arc<Inner>,
        after: Option<u64>,
    ) -> Result<FeedReader, StoreError> {
        let place = match after {
            Some(place) => place,
            None => engine.store.feed_end().await?,
        };
        engine.feed.readers.fetch_add(1, Ordering::AcqRel);
        let ends = engine.feed.end.subscribe();
        let reader = FeedReader { engine, ends, place };
        let is_first = !std::mem::replace(&mut *reader.engine.feed.pumping(), true);
        if is_first {
            reader.engine.spawn(pump::pump(Arc::clone(&reader.engine)));
        }
        Ok(reader)
    }

    /// Position of the last frame read, to resume from later. To resume within a frame,
    /// start one position before it and skip the events already seen.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Reads a page after the position; empty if the reader has caught up.
    pub async fn read(&mut self) -> Result<Vec<Arc<Fed>>, LoadError> {
        let recent = self.engine.feed.ring().after(self.place);
        if let Some(recent) = recent {
            if let Some(last) = recent.last() {
                self.place = last.place;
            }
            return Ok(recent);
        }
        let mut page = Vec::new();
        let mut place = self.place;
        while page.is_empty() {
            let placed = self.engine.store.feed(place, PAGE_BYTES).await?;
            let Some(last) = placed.last() else { break };
            place = last.place;
            page = pump::show(&self.engine, placed).await?;
        }
        self.place = place;
        Ok(page)
    }

    /// Waits for the next frames after the position, at least one. `None` when the engine
    /// is gone.
    ///
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Fed>>>, LoadError> {
        let gone = self.engine.dead_token();
        loop {
            self.ends.borrow_and_update();
            let page = self.read().await?;
            if !page.is_empty() {
                return Ok(Some(page));
            }
            let patience = Duration::from_millis(FEED_POLL_MS);
            tokio::select! {
                biased;
                () = gone.cancelled() => return Ok(None),
                // The engine holds the sender, so only the timeout can end this.
                _ = tokio::time::timeout(patience, self.ends.changed()) => {}
            }
        }
    }
}
