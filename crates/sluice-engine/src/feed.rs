//! Following all runs: what was journalled, then what is, as it comes.
//!
//! While somebody reads, one task goes along the store's order of appends, makes
//! envelopes once for all readers, and keeps the newest. Readers come and ask,
//! each at its own pace. One that asks seldom finds that the tail has moved on,
//! and reads from the store instead; one that never asks costs its place alone.
//!
//! INVARIANT: a run never waits for a reader, nor for the task. INVARIANT: a
//! reader sees every frame once and in order, from its place on. A frame that
//! cannot be read is passed over: it is one run's trouble, not every reader's.

mod about;
mod pump;
mod ring;

use crate::engine::Inner;
use crate::error::LoadError;
use crate::limits::{FEED_LOOK_MS, PAGE_BYTES};
use about::Abouts;
use ring::Ring;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::store::StoreError;
use sluice_core::run::id::RunId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The events of one append, as readers see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// Its place in the store's order of appends.
    pub place: u64,
    /// Whose events they are.
    pub run: RunId,
    /// What it is a run of.
    pub workflow: Arc<str>,
    /// The events, oldest first.
    pub seen: Vec<Arc<Seen>>,
}

/// The end of all journals, for those who follow it.
pub(crate) struct Feed {
    /// Readers there are. Costs an atomic read where there is none.
    readers: AtomicUsize,
    /// Whether the task lives.
    pumping: Mutex<bool>,
    ring: Mutex<Ring>,
    abouts: Mutex<Abouts>,
    /// Something may be new.
    fresh: Notify,
    /// How far the ring goes.
    end: watch::Sender<u64>,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed {
            readers: AtomicUsize::new(0),
            pumping: Mutex::default(),
            ring: Mutex::default(),
            abouts: Mutex::default(),
            fresh: Notify::new(),
            end: watch::channel(0).0,
        }
    }

    /// Something was appended, here or elsewhere.
    pub(crate) fn grown(&self) {
        if self.readers.load(Ordering::Acquire) > 0 {
            self.fresh.notify_one();
        }
    }

    /// How many read.
    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().expect("nobody panics while holding it")
    }

    fn abouts(&self) -> MutexGuard<'_, Abouts> {
        self.abouts.lock().expect("nobody panics while holding it")
    }

    fn pumping(&self) -> MutexGuard<'_, bool> {
        self.pumping.lock().expect("nobody panics while holding it")
    }
}

/// Reads the events of all runs from a place on.
pub struct FeedReader {
    engine: Arc<Inner>,
    ends: watch::Receiver<u64>,
    place: u64,
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        if self.engine.feed.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            // The task sees that nobody is left.
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

    /// The place of the last frame that was read: what to go on from later. Who
    /// must go on in the middle of a frame begins one place before it, and
    /// leaves out the events it has seen.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// What there is after the place by now, a page of it; nothing where it has
    /// caught up.
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

    /// The next frames after the place, at least one, as soon as there is one.
    /// None when the engine is gone.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Fed>>>, LoadError> {
        let gone = self.engine.gone();
        loop {
            self.ends.borrow_and_update();
            let page = self.read().await?;
            if !page.is_empty() {
                return Ok(Some(page));
            }
            let patience = Duration::from_millis(FEED_LOOK_MS);
            tokio::select! {
                biased;
                () = gone.cancelled() => return Ok(None),
                // The engine holds the sender: what ends is the patience alone.
                _ = tokio::time::timeout(patience, self.ends.changed()) => {}
            }
        }
    }
}
