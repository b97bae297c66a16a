//! Follows one run: first stored events, then new ones as they become durable.
//!
//! Works like `feed`, except that the run itself hands its newest frames over, while it
//! has readers in this process.
//!
//! INVARIANT: a run never waits for a reader. INVARIANT: a reader sees every event id
//! once and in order, from its cursor on; elided ids as ranges.

use crate::engine::Inner;
use crate::error::LoadError;
use crate::limits::{PAGE_BYTES, POLL_LOCAL_MS, POLL_REMOTE_MS, TAIL_BYTES_MAX, TAIL_FRAMES_MAX};
use crate::load::{blobs_of, first_event, shown_definition};
use crate::watch::Tip;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::{Seen, Subject, envelopes, push};
use sluice_core::port::store::{Filter, Frame};
use sluice_core::run::definition::Definition;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{OnceCell, watch};

/// The newest frames of a followed run.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    tips: watch::Sender<Option<Tip>>,
    ring: Mutex<RecentFrames>,
    readers: AtomicUsize,
}

/// Consecutive frames, newest last.
#[derive(Debug, Default)]
struct RecentFrames {
    frames: VecDeque<Arc<RecentFrame>>,
    bytes: usize,
}

#[derive(Debug)]
struct RecentFrame {
    frame: Frame,
    /// Envelopes, built when the first reader needs them.
    seen: OnceCell<Vec<Arc<Seen>>>,
}

impl RecentFrame {
    fn last(&self) -> u64 {
        self.frame.first + u64::from(self.frame.count) - 1
    }

    fn bytes(&self) -> usize {
        self.frame.body.len() + self.frame.beside.len() + self.frame.chain.len()
    }
}

impl Tail {
    pub(crate) fn is_followed(&self) -> bool {
        self.tips.receiver_count() > 0
    }

    pub(crate) fn is_read(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Tip>> {
        self.tips.subscribe()
    }

    /// Publishes the tip of a loaded run, unless a turn has published one already.
    pub(crate) fn publish_first(&self, tip: Tip) {
        self.tips.send_if_modified(|now| {
            let is_first = now.is_none();
            if is_first {
                *now = Some(tip);
            }
            is_first
        });
    }

    /// Publishes the tip of the run, and the frame that led to it.
    pub(crate) fn publish(&self, tip: Tip, frame: Option<Frame>) {
        if let Some(frame) = frame.filter(|_| self.is_read()) {
            self.ring().push(frame);
        }
        self.tips.send_replace(Some(tip));
    }

    fn ring(&self) -> MutexGuard<'_, RecentFrames> {
        self.ring.lock().expect("the lock is not poisoned")
    }
}

impl RecentFrames {
    fn push(&mut self, frame: Frame) {
        let recent = Arc::new(RecentFrame { frame, seen: OnceCell::new() });
        if self.frames.back().is_some_and(|last| last.last() + 1 != recent.frame.first) {
            *self = RecentFrames::default();
        }
        self.bytes += recent.bytes();
        self.frames.push_back(recent);
        while self.frames.len() > TAIL_FRAMES_MAX || self.bytes > TAIL_BYTES_MAX {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    /// Frames with events after `after`; empty if some of them are not in memory.
    fn after(&self, after: u64) -> Vec<Arc<RecentFrame>> {
        match self.frames.front() {
            Some(oldest) if oldest.frame.first <= after + 1 => {
                let from = self.frames.partition_point(|recent| recent.last() <= after);
                self.frames.range(from..).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Reads a run's events from a cursor on.
pub struct Reader {
    engine: Arc<Inner>,
    run: RunId,
    workflow: String,
    registered: bool,
    definition_hash: String,
    trace_id: String,
    definition: Option<Arc<Definition>>,
    tail: Arc<Tail>,
    tips: watch::Receiver<Option<Tip>>,
    cursor: u64,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.tail.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.tail.ring() = RecentFrames::default();
        }
    }
}

impl Reader {
    pub(crate) async fn open(
        engine: Arc<Inner>,
        run: RunId,
        cursor: u64,
    ) -> Result<Reader, LoadError> {
        let started = first_event(&*engine.store, run).await?;
        let store = &*engine.store;
        let definition = shown_definition(store, &engine.definitions, started.definition).await?;
        // Subscribe before reading the store, so that no event is missed.
        let (tail, tips) = engine.follow(run);
        tail.readers.fetch_add(1, Ordering::AcqRel);
        Ok(Reader {
            engine,
            run,
            workflow: started.workflow,
            registered: started.source.is_registered(),
            definition_hash: started.definition_hash,
            trace_id: started.trace_id,
            definition,
            tail,
            tips,
            cursor,
        })
    }

    /// Id of the last event read.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Reads a page after the cursor; empty if the reader has caught up.
    pub async fn read(&mut self) -> Result<Vec<Arc<Seen>>, LoadError> {
        let recent = self.tail.ring().after(self.cursor);
        let mut page = Vec::new();
        if recent.is_empty() {
            let store = &self.engine.store;
            for frame in store.frames(self.run, self.cursor, PAGE_BYTES).await? {
                self.add(&mut page, self.show(&frame).await?);
            }
        }
        for recent in recent {
            let seen = recent.seen.get_or_try_init(|| self.show(&recent.frame)).await?;
            self.add(&mut page, seen.iter().cloned());
        }
        if let Some(last) = page.last() {
            self.cursor = last.id();
        }
        Ok(page)
    }

    /// Waits for the next events after the cursor, at least one. `None` when the run has
    /// ended and was read to its end.
    ///
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Seen>>>, LoadError> {
        loop {
            let tip = *self.tips.borrow_and_update();
            let page = self.read().await?;
            if !page.is_empty() {
                return Ok(Some(page));
            }
            if self.has_ended(tip).await? {
                // Events between the read and this check are the last ones.
                let page = self.read().await?;
                return Ok((!page.is_empty()).then_some(page));
            }
            let is_loaded = tip.is_some_and(|tip| tip.resident);
            let look_ms = if is_loaded { POLL_LOCAL_MS } else { POLL_REMOTE_MS };
            let patience = Duration::from_millis(look_ms);
            // The tail holds the sender, so only the timeout can end this.
            let _ = tokio::time::timeout(patience, self.tips.changed()).await;
        }
    }

    /// Whether the run has ended, by its tip or by its row in the store.
    async fn has_ended(&self, tip: Option<Tip>) -> Result<bool, LoadError> {
        if let Some(tip) = tip.filter(|tip| tip.resident || tip.status.is_terminal()) {
            return Ok(tip.status.is_terminal());
        }
        let filter = Filter { run: Some(self.run), ..Filter::default() };
        let rows = self.engine.store.list(filter).await?;
        Ok(rows.first().is_none_or(|row| row.status.is_terminal()))
    }

    fn add(&self, page: &mut Vec<Arc<Seen>>, seen: impl IntoIterator<Item = Arc<Seen>>) {
        for one in seen.into_iter().filter(|one| one.id() > self.cursor) {
            push(page, one);
        }
    }

    async fn show(&self, frame: &Frame) -> Result<Vec<Arc<Seen>>, LoadError> {
        let blobs = blobs_of(&*self.engine.store, self.run, frame).await?;
        let subject = Subject {
            run: self.run,
            workflow: &self.workflow,
            registered: self.registered,
            definition_hash: &self.definition_hash,
            trace_id: &self.trace_id,
            graph: self.definition.as_ref().map(|definition| &definition.plan.graph),
        };
        let seen = envelopes(subject, frame, &blobs);
        let poison = |reason: String| LoadError::Poison { run: self.run, reason };
        let seen = seen.map_err(|error| poison(error.to_string()))?;
        Ok(seen.into_iter().map(Arc::new).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u64, count: u32, bytes: usize) -> Frame {
        let (beside, chain) = (Vec::new(), Vec::new());
        Frame { first, count, body: vec![0; bytes], beside, chain }
    }

    fn ids(ring: &RecentFrames, after: u64) -> Vec<u64> {
        ring.after(after).iter().map(|recent| recent.frame.first).collect()
    }

    #[test]
    fn a_ring_answers_what_it_has_without_a_gap() {
        let mut ring = RecentFrames::default();
        assert_eq!(ids(&ring, 0), [0; 0]);
        for first in [5, 7, 9] {
            ring.push(frame(first, 2, 10));
        }
        assert_eq!(ids(&ring, 3), [0; 0], "event 4 is missing");
        assert_eq!(ids(&ring, 4), [5, 7, 9]);
        assert_eq!(ids(&ring, 5), [5, 7, 9]);
        assert_eq!(ids(&ring, 6), [7, 9]);
        assert_eq!(ids(&ring, 10), [0; 0]);
        assert_eq!(ids(&ring, 99), [0; 0]);
        // Another node owned the run in between.
        ring.push(frame(15, 1, 10));
        assert_eq!((ids(&ring, 10), ids(&ring, 14)), (vec![], vec![15]));
    }

    #[test]
    fn a_ring_is_bounded_in_frames_and_in_bytes() {
        let mut ring = RecentFrames::default();
        for first in 1..=2 * TAIL_FRAMES_MAX as u64 {
            ring.push(frame(first, 1, 1));
        }
        assert_eq!((ring.frames.len(), ring.bytes), (TAIL_FRAMES_MAX, TAIL_FRAMES_MAX));
        let next = 2 * TAIL_FRAMES_MAX as u64 + 1;
        ring.push(frame(next, 1, TAIL_BYTES_MAX));
        assert_eq!((ring.frames.len(), ring.bytes), (1, TAIL_BYTES_MAX));
        ring.push(frame(next + 1, 1, TAIL_BYTES_MAX + 1));
        assert_eq!((ring.frames.len(), ring.bytes), (0, 0));
    }
}
