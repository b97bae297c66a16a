//! Parts of answers on their way into the journal.
//!
//! What an adapter emits is kept for a moment and joined, so that a step becomes
//! a few events a second, however small its chunks are: at most one every
//! `delta_ms`, and fewer the more streams this process has, which share
//! `deltas_per_second`. All streams of a run move on the same beat, so that one
//! append carries the parts of many.
//!
//! What is kept is bounded: an adapter that is faster waits in `emit`, and
//! nobody else does. When an attempt ends, all of it goes before the end.
//!
//! INVARIANT: parts of one call are handed on in the order they came.

use crate::config::Config;
use crate::limits::{KEPT_BYTES_ALL, KEPT_BYTES_MAX, KEPT_BYTES_MIN, MEDIA_BYTES};
use crate::turn::Input;
use sluice_core::journal::event::{DeltaPart, StepAt};
use sluice_core::port::adapter::Closed;
use sluice_core::run::command::Command;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The streams of a process, which share what may be journalled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    fn live(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// How far apart two parts of one call are at least.
    fn interval(&self, config: &Config) -> Duration {
        let each = self.live() as u64 * 1000 / u64::from(config.deltas_per_second.max(1));
        Duration::from_millis(each.max(config.delta_ms))
    }

    /// How much of one call is kept back at most.
    fn room(&self) -> usize {
        (KEPT_BYTES_ALL / self.live().max(1)).clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX)
    }
}

/// Counts as a live stream until it is dropped.
#[derive(Debug)]
struct Live(Arc<AtomicUsize>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one call has emitted and the journal does not have yet. The adapter's
/// end and the run's end of it are the same thing.
#[derive(Debug)]
pub(crate) struct Stream {
    kept: Mutex<Kept>,
    /// Something was handed on: there is room again.
    room: Notify,
    /// Tells the run that something came.
    poke: Arc<Notify>,
    budget: Budget,
}

#[derive(Debug, Default)]
struct Kept {
    parts: VecDeque<DeltaPart>,
    bytes: usize,
    /// Since when the first of them has waited.
    since: Option<Instant>,
    live: Option<Live>,
    /// Nobody takes what comes any more.
    closed: bool,
}

impl Stream {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics while holding it")
    }

    /// Keeps a piece of text; waits while there is no room.
    pub(crate) async fn text(&self, text: &str) -> Result<(), Closed> {
        let mut rest = text;
        while !rest.is_empty() {
            let freed = self.room.notified();
            let taken = self.offer(|room| {
                let fits = cut(rest, room);
                let part = (fits > 0).then(|| DeltaPart::Text(rest[..fits].to_owned()));
                rest = &rest[fits..];
                part
            })?;
            if !taken {
                freed.await;
            }
        }
        Ok(())
    }

    /// Keeps a picture or sound; waits while there is no room.
    pub(crate) async fn media(&self, url: String, mime: String) -> Result<(), Closed> {
        let mut part = Some(DeltaPart::Media { url, mime });
        loop {
            let freed = self.room.notified();
            // An address longer than all the room has to come in all the same.
            let taken = self.offer(|room| part.take_if(|_| room > MEDIA_BYTES))?;
            if taken {
                return Ok(());
            }
            freed.await;
        }
    }

    /// Keeps what is given for the room there is. Whether something was given.
    fn offer(&self, give: impl FnOnce(usize) -> Option<DeltaPart>) -> Result<bool, Closed> {
        let mut kept = self.kept();
        if kept.closed {
            return Err(Closed);
        }
        let Some(part) = give(self.budget.room().saturating_sub(kept.bytes)) else {
            return Ok(false);
        };
        if kept.live.is_none() {
            self.budget.0.fetch_add(1, Ordering::Relaxed);
            kept.live = Some(Live(Arc::clone(&self.budget.0)));
        }
        kept.bytes += bytes(&part);
        match (kept.parts.back_mut(), part) {
            (Some(DeltaPart::Text(before)), DeltaPart::Text(text)) => before.push_str(&text),
            (_, part) => kept.parts.push_back(part),
        }
        if kept.since.is_none() {
            kept.since = Some(Instant::now());
            self.poke.notify_one();
        }
        Ok(true)
    }

    /// The first part, or all of them.
    fn take(&self, many: Many) -> VecDeque<DeltaPart> {
        let mut kept = self.kept();
        let taken = match many {
            Many::One => kept.parts.pop_front().into_iter().collect(),
            Many::All => std::mem::take(&mut kept.parts),
        };
        kept.bytes -= taken.iter().map(bytes).sum::<usize>();
        if kept.parts.is_empty() {
            kept.since = None;
        }
        drop(kept);
        self.room.notify_waiters();
        taken
    }

    fn close(&self) {
        self.kept().closed = true;
        self.room.notify_waiters();
    }
}

fn bytes(part: &DeltaPart) -> usize {
    match part {
        DeltaPart::Text(text) => text.len(),
        DeltaPart::Media { url, mime } => url.len() + mime.len() + MEDIA_BYTES,
        DeltaPart::Beside => 0,
    }
}

/// How much of a text fits into so many bytes, cut between characters.
fn cut(text: &str, room: usize) -> usize {
    if text.len() <= room {
        return text.len();
    }
    (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Many {
    One,
    All,
}

/// The streams of one run.
#[derive(Debug)]
pub(crate) struct Streams {
    open: BTreeMap<StepAt, Open>,
    poke: Arc<Notify>,
    budget: Budget,
    /// What the beat is counted from.
    start: Instant,
}

#[derive(Debug)]
struct Open {
    dispatch_no: u32,
    stream: Arc<Stream>,
    /// When a part was last handed on.
    last: Option<Instant>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stream.close();
    }
}

impl Streams {
    pub(crate) fn new(budget: &Budget) -> Streams {
        let (open, poke) = (BTreeMap::new(), Arc::default());
        Streams { open, poke, budget: budget.clone(), start: Instant::now() }
    }

    /// Opens the stream of a call. That of an earlier one of the same step ends.
    pub(crate) fn open(&mut self, at: StepAt, dispatch_no: u32) -> Arc<Stream> {
        let stream = Arc::new(Stream {
            kept: Mutex::default(),
            room: Notify::new(),
            poke: Arc::clone(&self.poke),
            budget: self.budget.clone(),
        });
        let open = Open { dispatch_no, stream: Arc::clone(&stream), last: None };
        self.open.insert(at, open);
        stream
    }

    /// Completes when a stream that was empty is not any more.
    pub(crate) fn poked(&self) -> impl Future<Output = ()> + use<> {
        let poke = Arc::clone(&self.poke);
        async move { poke.notified().await }
    }

    /// When something is to be handed on.
    pub(crate) fn due(&self, config: &Config) -> Option<Instant> {
        let interval = self.budget.interval(config);
        self.open.values().filter_map(|open| self.due_of(open, interval, config)).min()
    }

    fn due_of(&self, open: &Open, interval: Duration, config: &Config) -> Option<Instant> {
        let since = open.stream.kept().since?;
        let earliest = open.last.map_or(since, |last| since.max(last + interval));
        let beat_ms = u128::from(config.delta_ms);
        if beat_ms == 0 {
            return Some(earliest);
        }
        let beats = (earliest - self.start).as_nanos().div_ceil(beat_ms * 1_000_000);
        let at_ms = u64::try_from(beats * beat_ms).unwrap_or(u64::MAX);
        Some(self.start + Duration::from_millis(at_ms))
    }

    /// Hands on what is due: of each stream one part, so that none is faster
    /// than it may be.
    pub(crate) fn take_due(&mut self, config: &Config, inputs: &mut Vec<Input>) {
        let (now, interval) = (Instant::now(), self.budget.interval(config));
        let is_due =
            |open: &Open| self.due_of(open, interval, config).is_some_and(|due| due <= now);
        let due: Vec<StepAt> =
            self.open.iter().filter(|(_, open)| is_due(open)).map(|(at, _)| *at).collect();
        for at in due {
            self.take(at, Many::One, inputs);
        }
    }

    /// Hands on everything: attempts may end now.
    pub(crate) fn take_all(&mut self, inputs: &mut Vec<Input>) {
        for at in self.open.keys().copied().collect::<Vec<_>>() {
            self.take(at, Many::All, inputs);
        }
    }

    /// A call is over: everything of it is handed on.
    pub(crate) fn end(&mut self, at: StepAt, dispatch_no: u32, inputs: &mut Vec<Input>) {
        // That of a later call of the step goes on.
        if self.open.get(&at).is_some_and(|open| open.dispatch_no == dispatch_no) {
            self.take(at, Many::All, inputs);
            self.open.remove(&at);
        }
    }

    fn take(&mut self, at: StepAt, many: Many, inputs: &mut Vec<Input>) {
        let Some(open) = self.open.get_mut(&at) else { return };
        let parts = open.stream.take(many);
        if !parts.is_empty() {
            open.last = Some(Instant::now());
        }
        let dispatch_no = open.dispatch_no;
        let input = |part| Input::new(Command::Stream { at, dispatch_no, part });
        inputs.extend(parts.into_iter().map(input));
    }
}

#[cfg(test)]
mod tests;
