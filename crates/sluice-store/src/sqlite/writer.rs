//! The writer thread.
//!
//! It takes everything in its queue, performs it in one transaction, commits, and then
//! answers each caller. New writes queue up while it waits for the disk.
//!
//! INVARIANT: a write is answered with success only after its commit; a refused write
//! leaves nothing in the transaction it shares.

mod log;
mod turn;

use super::Shared;
use super::cache::WriterCache;
use super::connect::OpenError;
use super::directory_check::DirectoryCheck;
use super::fault::Fault;
use super::node_locks::NodeLocks;
use super::recent_heads::WrittenFrame;
use crate::authentic::Keys;
use crate::limits::{WRITE_BYTES_MAX, WRITES_WAITING_MAX};
use rusqlite::Connection;
use sluice_core::port::store::StoreError;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use turn::WriterLoop;

/// The writer thread and its queue.
pub(super) struct WriterThread {
    /// `None` once the store is being dropped.
    messages: Option<Sender<WriterMessage>>,
    permits: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    /// The error for writes when there is no thread.
    stopped: &'static str,
}

/// The context of a write inside a transaction.
pub(super) struct Work<'a> {
    pub(super) connection: &'a Connection,
    pub(super) cache: &'a mut WriterCache,
    pub(super) locks: &'a NodeLocks,
    pub(super) keys: &'a Keys,
    pub(super) now_ms: u64,
    /// Appends performed in this transaction.
    pub(super) appends: u64,
    /// Frames written in this transaction.
    pub(super) written: Vec<WrittenFrame>,
    /// Whether this transaction erased payloads.
    pub(super) erased: bool,
}

/// A message to the writer thread.
enum WriterMessage {
    Write {
        job: Box<dyn Job>,
        bytes: usize,
    },
    /// A caller waits for changes by other processes.
    Poll,
    /// Simulates a disk with this many pages.
    #[cfg(test)]
    Pages(i64),
}

/// A write and its reply channel. The writer performs it again if another write made it
/// roll back their transaction.
trait Job: Send {
    fn perform(&mut self, work: &mut Work<'_>) -> Result<(), Fault>;
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
    /// The runtime on which the caller waits.
    fn runtime(&self) -> Option<&Handle>;
}

struct WriteJob<T, F> {
    perform: F,
    result: Option<T>,
    /// The closure goes back with the result, so that the caller frees its data and not
    /// the thread that all callers wait for.
    answer: oneshot::Sender<(Result<T, StoreError>, F)>,
    runtime: Option<Handle>,
}

impl<T, F> Job for WriteJob<T, F>
where
    T: Send,
    F: FnMut(&mut Work<'_>) -> Result<T, Fault> + Send,
{
    fn perform(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.result = Some((self.perform)(work)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let result = self.result;
        let result = outcome.map(|()| result.expect("a committed write was performed"));
        // The caller may have dropped the receiver.
        let _ = self.answer.send((result, self.perform));
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }
}

impl WriterThread {
    pub(super) fn start(
        connection: Connection,
        directory: DirectoryCheck,
        shared: &Arc<Shared>,
    ) -> Result<WriterThread, OpenError> {
        let (messages, queue) = channel();
        let permits = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        let turns = WriterLoop::new(
            connection,
            directory,
            queue,
            Arc::clone(&permits),
            Arc::clone(shared),
        )?;
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = thread.spawn(move || turns.serve());
        let thread = thread.map_err(OpenError::NoThread)?;
        let stopped = "the store has stopped";
        Ok(WriterThread { messages: Some(messages), permits, thread: Some(thread), stopped })
    }

    /// The writer of a read-only store: refuses every write.
    pub(super) fn refusing() -> WriterThread {
        let permits = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        WriterThread { messages: None, permits, thread: None, stopped: "the database is read-only" }
    }

    /// Performs a write on the thread, after waiting for capacity in the queue. A
    /// queued write is performed even if the caller stops waiting.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        perform: impl FnMut(&mut Work<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable(self.stopped.to_owned());
        if self.messages.is_none() {
            return Err(stopped());
        }
        if bytes > WRITE_BYTES_MAX {
            let why = format!("{bytes} bytes in one write exceed the limit of {WRITE_BYTES_MAX}");
            return Err(StoreError::Unavailable(why));
        }
        // The thread returns the permit when it takes the write.
        self.permits.acquire().await.map_err(|_| stopped())?.forget();
        let (answer, answered) = oneshot::channel();
        let runtime = Handle::try_current().ok();
        let job = Box::new(WriteJob { perform, result: None, answer, runtime });
        let messages = self.messages.as_ref().ok_or_else(stopped)?;
        messages.send(WriterMessage::Write { job, bytes }).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the writer stopped before it answered".to_owned());
        let (result, _write) = answered.await.map_err(gone)?;
        result
    }

    /// Writes in the queue.
    pub(super) fn waiting(&self) -> usize {
        WRITES_WAITING_MAX.saturating_sub(self.permits.available_permits())
    }

    /// Makes the thread check for changes by other processes.
    pub(super) fn poll(&self) {
        self.send(WriterMessage::Poll);
    }

    /// Simulates a disk with this many pages.
    #[cfg(test)]
    pub(super) fn pages(&self, pages: i64) {
        self.send(WriterMessage::Pages(pages));
    }

    fn send(&self, message: WriterMessage) {
        if let Some(messages) = &self.messages {
            // If the writer has stopped, the next write reports it.
            let _ = messages.send(message);
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // The panic has already been reported.
            let _ = thread.join();
        }
    }
}
