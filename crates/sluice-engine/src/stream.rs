//! Streamed parts of answers on their way into the journal.
//!
//! Emitted chunks are buffered and joined, so that a step produces only a few events per
//! second, however small its chunks are: one per `delta_ms` at most, and fewer with many
//! streams, which share `deltas_per_second`. All streams of a run are flushed on the same
//! ticks, so that one append carries parts of many streams.
//!
//! The buffer is bounded: a faster adapter waits in `emit`, and only that adapter. When an
//! attempt ends, its whole buffer is flushed before the end is journalled.
//!
//! INVARIANT: parts of one call are journalled in the order they were emitted.

use crate::config::Config;
use crate::limits::{BUFFER_BYTES_ALL, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, MEDIA_BYTES};
use crate::turn::TurnInput;
use sluice_core::journal::event::{DeltaPart, StepAt};
use sluice_core::port::adapter::Closed;
use sluice_core::run::command::Command;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Counts the live streams of the process, which share rate and memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamBudget(Arc<AtomicUsize>);

impl StreamBudget {
    fn live(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Shortest interval between two parts of one stream.
    fn interval(&self, config: &Config) -> Duration {
        let each = self.live() as u64 * 1000 / u64::from(config.deltas_per_second.max(1));
        Duration::from_millis(each.max(config.delta_ms))
    }

    /// Most buffered bytes of one stream.
    fn room(&self) -> usize {
        (BUFFER_BYTES_ALL / self.live().max(1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
    }
}

/// Counted as a live stream until dropped.
#[derive(Debug)]
struct LiveStream(Arc<AtomicUsize>);

impl Drop for LiveStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Parts of one call that are not journalled yet. Shared by the adapter's call and the
/// task of the run.
#[derive(Debug)]
pub(crate) struct Stream {
    buffered: Mutex<BufferedParts>,
    /// Notified when buffered parts were taken.
    room: Notify,
    /// Notifies the run of the first buffered part.
    arrived: Arc<Notify>,
    budget: StreamBudget,
}

#[derive(Debug, Default)]
struct BufferedParts {
    parts: VecDeque<DeltaPart>,
    bytes: usize,
    /// When the first buffered part arrived.
    since: Option<Instant>,
    live: Option<LiveStream>,
    /// The run takes no more parts of this call.
    closed: bool,
}

impl Stream {
    fn buffered(&self) -> MutexGuard<'_, BufferedParts> {
        self.buffered.lock().expect("the lock is not poisoned")
    }

    /// Buffers text; waits while the buffer is full.
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

    /// Buffers a media part; waits while the buffer is full.
    pub(crate) async fn media(&self, url: String, mime: String) -> Result<(), Closed> {
        let mut part = Some(DeltaPart::Media { url, mime });
        loop {
            let freed = self.room.notified();
            // Even a URL longer than the whole buffer must fit.
            let taken = self.offer(|room| part.take_if(|_| room > MEDIA_BYTES))?;
            if taken {
                return Ok(());
            }
            freed.await;
        }
    }

    /// Buffers the part that `give` returns for the free bytes; returns whether there was one.
    fn offer(&self, give: impl FnOnce(usize) -> Option<DeltaPart>) -> Result<bool, Closed> {
        let mut buffered = self.buffered();
        if buffered.closed {
            return Err(Closed);
        }
        let Some(part) = give(self.budget.room().saturating_sub(buffered.bytes)) else {
            return Ok(false);
        };
        if buffered.live.is_none() {
            self.budget.0.fetch_add(1, Ordering::Relaxed);
            buffered.live = Some(LiveStream(Arc::clone(&self.budget.0)));
        }
        buffered.bytes += bytes(&part);
        match (buffered.parts.back_mut(), part) {
            (Some(DeltaPart::Text(before)), DeltaPart::Text(text)) => before.push_str(&text),
            (_, part) => buffered.parts.push_back(part),
        }
        if buffered.since.is_none() {
            buffered.since = Some(Instant::now());
            self.arrived.notify_one();
        }
        Ok(true)
    }

    /// Takes the first part, or all parts.
    fn take(&self, count: TakeCount) -> VecDeque<DeltaPart> {
        let mut buffered = self.buffered();
        let taken = match count {
            TakeCount::One => buffered.parts.pop_front().into_iter().collect(),
            TakeCount::All => std::mem::take(&mut buffered.parts),
        };
        buffered.bytes -= taken.iter().map(bytes).sum::<usize>();
        if buffered.parts.is_empty() {
            buffered.since = None;
        }
        drop(buffered);
        self.room.notify_waiters();
        taken
    }

    fn close(&self) {
        self.buffered().closed = true;
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

/// How much of a text fits into `room` bytes, cut between characters.
fn cut(text: &str, room: usize) -> usize {
    if text.len() <= room {
        return text.len();
    }
    (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakeCount {
    One,
    All,
}

/// The streams of one run.
#[derive(Debug)]
pub(crate) struct Streams {
    open: BTreeMap<StepAt, OpenStream>,
    arrived: Arc<Notify>,
    budget: StreamBudget,
    /// Ticks are counted from here.
    start: Instant,
}

#[derive(Debug)]
struct OpenStream {
    dispatch_no: u32,
    stream: Arc<Stream>,
    /// When a part was last taken.
    last: Option<Instant>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.stream.close();
    }
}

impl Streams {
    pub(crate) fn new(budget: &StreamBudget) -> Streams {
        let (open, arrived) = (BTreeMap::new(), Arc::default());
        Streams { open, arrived, budget: budget.clone(), start: Instant::now() }
    }

    /// Opens the stream of a call and closes that of an earlier call of the same step.
    pub(crate) fn open(&mut self, at: StepAt, dispatch_no: u32) -> Arc<Stream> {
        let stream = Arc::new(Stream {
            buffered: Mutex::default(),
            room: Notify::new(),
            arrived: Arc::clone(&self.arrived),
            budget: self.budget.clone(),
        });
        let open = OpenStream { dispatch_no, stream: Arc::clone(&stream), last: None };
        self.open.insert(at, open);
        stream
    }

    /// Completes when the first part arrives in an empty stream.
    pub(crate) fn data_arrived(&self) -> impl Future<Output = ()> + use<> {
        let arrived = Arc::clone(&self.arrived);
        async move { arrived.notified().await }
    }

    /// When the next part is due.
    pub(crate) fn due(&self, config: &Config) -> Option<Instant> {
        let interval = self.budget.interval(config);
        self.open.values().filter_map(|open| self.due_of(open, interval, config)).min()
    }

    fn due_of(&self, open: &OpenStream, interval: Duration, config: &Config) -> Option<Instant> {
        let since = open.stream.buffered().since?;
        let earliest = open.last.map_or(since, |last| since.max(last + interval));
        let beat_ms = u128::from(config.delta_ms);
        if beat_ms == 0 {
            return Some(earliest);
        }
        let beats = (earliest - self.start).as_nanos().div_ceil(beat_ms * 1_000_000);
        let at_ms = u64::try_from(beats * beat_ms).unwrap_or(u64::MAX);
        Some(self.start + Duration::from_millis(at_ms))
    }

    /// Takes one part of each stream that is due, so that no stream exceeds its rate.
    pub(crate) fn take_due(&mut self, config: &Config, inputs: &mut Vec<TurnInput>) {
        let (now, interval) = (Instant::now(), self.budget.interval(config));
        let is_due =
            |open: &OpenStream| self.due_of(open, interval, config).is_some_and(|due| due <= now);
        let due: Vec<StepAt> =
            self.open.iter().filter(|(_, open)| is_due(open)).map(|(at, _)| *at).collect();
        for at in due {
            self.take(at, TakeCount::One, inputs);
        }
    }

    /// Takes everything, because attempts may end now.
    pub(crate) fn take_all(&mut self, inputs: &mut Vec<TurnInput>) {
        for at in self.open.keys().copied().collect::<Vec<_>>() {
            self.take(at, TakeCount::All, inputs);
        }
    }

    /// Takes everything of a call that has ended, and closes its stream.
    pub(crate) fn end(&mut self, at: StepAt, dispatch_no: u32, inputs: &mut Vec<TurnInput>) {
        // A later call of the step keeps its stream.
        if self.open.get(&at).is_some_and(|open| open.dispatch_no == dispatch_no) {
            self.take(at, TakeCount::All, inputs);
            self.open.remove(&at);
        }
    }

    fn take(&mut self, at: StepAt, count: TakeCount, inputs: &mut Vec<TurnInput>) {
        let Some(open) = self.open.get_mut(&at) else { return };
        let parts = open.stream.take(count);
        if !parts.is_empty() {
            open.last = Some(Instant::now());
        }
        let dispatch_no = open.dispatch_no;
        let input = |part| TurnInput::new(Command::Stream { at, dispatch_no, part });
        inputs.extend(parts.into_iter().map(input));
    }
}

#[cfg(test)]
mod tests;
