//! The thread that writes.
//!
//! It takes everything that waits, performs it in one transaction, commits, and
//! then answers each. While it waits for the disk the next writes gather.
//!
//! INVARIANT: a write is answered with success only after the commit that holds
//! it; a refused write leaves nothing in the transaction it shares.

mod log;
mod turn;

use super::Shared;
use super::connect::OpenError;
use super::fault::Fault;
use super::fresh::Written;
use super::home::Home;
use super::memory::Memory;
use super::node::Locks;
use crate::authentic::Keys;
use crate::limits::{WRITE_BYTES_MAX, WRITES_WAITING_MAX};
use rusqlite::Connection;
use sluice_core::port::store::StoreError;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};
use turn::Turns;

/// The writer and the way to it.
pub(super) struct Writer {
    /// None once the store is being dropped.
    messages: Option<Sender<Message>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    /// Why nothing is written where there is no thread.
    stopped: &'static str,
}

/// What a write works with, inside a transaction.
pub(super) struct Work<'a> {
    pub(super) connection: &'a Connection,
    pub(super) memory: &'a mut Memory,
    pub(super) locks: &'a Locks,
    pub(super) keys: &'a Keys,
    pub(super) now_ms: u64,
    /// Appends performed in this transaction.
    pub(super) appends: u64,
    /// Frames written in it.
    pub(super) written: Vec<Written>,
    /// Whether payloads were erased in it.
    pub(super) erased: bool,
}

/// What is sent to the thread.
enum Message {
    Write {
        job: Box<dyn Job>,
        bytes: usize,
    },
    /// Someone waits for changes by other processes.
    Look,
    /// Pretends that the disk has only so many pages.
    #[cfg(test)]
    Pages(i64),
}

/// A write with its answer. May be performed again where a transaction was rolled
/// back because of another write in it.
trait Job: Send {
    fn perform(&mut self, work: &mut Work<'_>) -> Result<(), Fault>;
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Asked<T, F> {
    perform: F,
    result: Option<T>,
    /// The write goes back with its answer: what it holds is freed by the caller,
    /// not by the thread that everyone waits for.
    answer: oneshot::Sender<(Result<T, StoreError>, F)>,
}

impl<T, F> Job for Asked<T, F>
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
        // A caller that has gone wants no answer.
        let _ = self.answer.send((result, self.perform));
    }
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        home: Home,
        shared: &Arc<Shared>,
    ) -> Result<Writer, OpenError> {
        let (messages, queue) = channel();
        let places = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        let turns = Turns::new(connection, home, queue, Arc::clone(&places), Arc::clone(shared))?;
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = thread.spawn(move || turns.serve());
        let thread = thread.map_err(OpenError::NoThread)?;
        let stopped = "the store has stopped";
        Ok(Writer { messages: Some(messages), places, thread: Some(thread), stopped })
    }

    /// The writer of a store that is only read: every write is refused.
    pub(super) fn refusing() -> Writer {
        let places = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        Writer { messages: None, places, thread: None, stopped: "the database is read-only" }
    }

    /// Performs a write on the thread. Waits for a place in the queue first. Once it
    /// is in the queue it is performed, whether or not the answer is awaited.
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
            let why = format!("{bytes} bytes at once are more than {WRITE_BYTES_MAX}");
            return Err(StoreError::Unavailable(why));
        }
        // The thread gives the place back when it takes the write.
        self.places.acquire().await.map_err(|_| stopped())?.forget();
        let (answer, answered) = oneshot::channel();
        let job = Box::new(Asked { perform, result: None, answer });
        let messages = self.messages.as_ref().ok_or_else(stopped)?;
        messages.send(Message::Write { job, bytes }).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the writer stopped before it answered".to_owned());
        let (result, _write) = answered.await.map_err(gone)?;
        result
    }

    /// Writes that the thread has not taken yet.
    pub(super) fn waiting(&self) -> usize {
        WRITES_WAITING_MAX.saturating_sub(self.places.available_permits())
    }

    /// Makes the thread look for changes by other processes.
    pub(super) fn look(&self) {
        self.send(Message::Look);
    }

    /// Pretends that the disk has only so many pages.
    #[cfg(test)]
    pub(super) fn pages(&self, pages: i64) {
        self.send(Message::Pages(pages));
    }

    fn send(&self, message: Message) {
        if let Some(messages) = &self.messages {
            // A writer that has stopped says so to whoever writes.
            let _ = messages.send(message);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}
