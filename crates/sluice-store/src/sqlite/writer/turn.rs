//! The loop of the writer thread: one transaction after the other.

use super::log::Log;
use super::{Job, Message, Work};
use crate::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX, IDLE_MS, LOOK_MS};
use crate::sqlite::Shared;
use crate::sqlite::fault::Fault;
use crate::sqlite::fresh::Written;
use crate::sqlite::home::Home;
use crate::sqlite::memory::Memory;
use rusqlite::Connection;
use sluice_core::port::store::{BATCH_SIZES, StoreError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The state of the thread.
pub(super) struct Turns {
    connection: Connection,
    home: Home,
    queue: Receiver<Message>,
    places: Arc<Semaphore>,
    shared: Arc<Shared>,
    memory: Memory,
    log: Log,
    /// Changes when another process has written.
    data_version: i64,
}

/// Writes of one transaction.
type Batch = Vec<Box<dyn Job>>;

impl Turns {
    pub(super) fn new(
        connection: Connection,
        home: Home,
        queue: Receiver<Message>,
        places: Arc<Semaphore>,
        shared: Arc<Shared>,
    ) -> Result<Turns, rusqlite::Error> {
        let data_version = data_version(&connection)?;
        let (memory, log) = (Memory::default(), Log::default());
        Ok(Turns { connection, home, queue, places, shared, memory, log, data_version })
    }

    /// Runs until the store is dropped.
    pub(super) fn serve(mut self) {
        loop {
            match self.next() {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    self.log.idle(&self.connection);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for the next message, or until the next poll or checkpoint is due.
    fn next(&self) -> Result<Message, RecvTimeoutError> {
        if self.is_watched() {
            self.queue.recv_timeout(Duration::from_millis(LOOK_MS))
        } else if self.log.is_open() {
            self.queue.recv_timeout(Duration::from_millis(IDLE_MS))
        } else {
            self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
    }

    /// Takes a message and everything that is queued behind it.
    fn take(&mut self, message: Message) {
        let mut batch = Batch::new();
        let mut bytes_held = 0;
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                Message::Write { job, bytes } => {
                    batch.push(job);
                    bytes_held += bytes;
                }
                Message::Look => self.look(),
                #[cfg(test)]
                Message::Pages(pages) => pretend(&self.connection, pages),
            }
            let full = batch.len() >= BATCH_WRITES_MAX || bytes_held >= BATCH_BYTES_MAX;
            next = if full { None } else { self.queue.try_recv().ok() };
        }
        if !batch.is_empty() {
            self.places.add_permits(batch.len());
            self.perform(batch);
            self.log.grown(&self.connection, bytes_held);
        }
    }

    fn perform(&mut self, mut batch: Batch) {
        match self.transact(&mut batch) {
            Ok(()) => answer(batch, || Ok(())),
            Err(Failed::Commit(fault)) => answer(batch, || Err(fault.not_committed())),
            Err(Failed::Before(fault)) if fault.hits_everyone() || batch.len() == 1 => {
                answer(batch, || Err(fault.rolled_back()));
            }
            // One write is at fault. Performing each alone keeps the other writes
            // unaffected.
            Err(Failed::Before(_)) => batch.into_iter().for_each(|job| self.perform(vec![job])),
        }
    }

    fn transact(&mut self, batch: &mut Batch) -> Result<(), Failed> {
        let (appends, written) =
            self.work(batch).map_err(|fault| self.undo(Failed::Before(fault)))?;
        let commit = self.connection.prepare_cached("COMMIT").and_then(|mut sql| sql.execute([]));
        commit.map_err(|error| self.undo(Failed::Commit(error.into())))?;
        // Must happen before an erasure is answered.
        self.log.empty(&self.connection);
        self.shared.fresh.lock().unwrap_or_else(PoisonError::into_inner).add(&written);
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.appends.fetch_add(appends, Ordering::Relaxed);
        self.shared.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let size = batch.len().next_power_of_two().ilog2() as usize;
        self.shared.batches[size.min(BATCH_SIZES - 1)].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Everything up to the commit. Returns the number of appends and the written
    /// frames.
    fn work(&mut self, batch: &mut Batch) -> Result<(u64, Vec<Written>), Fault> {
        self.home.check(&self.shared.locks)?;
        // A rollback that failed earlier must succeed first.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        // Inside the transaction no other process can write.
        self.notice()?;
        let mut work = Work {
            connection: &self.connection,
            memory: &mut self.memory,
            locks: &self.shared.locks,
            keys: &self.shared.keys,
            now_ms: self.shared.clock.now_ms(),
            appends: 0,
            written: Vec::new(),
            erased: false,
        };
        for job in batch {
            job.perform(&mut work)?;
        }
        let (appends, now_ms, written) = (work.appends, work.now_ms, work.written);
        if work.erased {
            self.log.holds_erased();
        }
        self.memory.counters.write(&self.connection, now_ms)?;
        Ok((appends, written))
    }

    /// Rolls back the failed transaction and clears the cache.
    fn undo(&mut self, failed: Failed) -> Failed {
        self.memory.forget();
        // Some errors end the transaction by themselves.
        if !self.connection.is_autocommit() {
            // On failure it is retried before the next transaction.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        failed
    }

    fn is_watched(&self) -> bool {
        self.shared.waiting.load(Ordering::SeqCst) > 0
    }

    /// Checks for changes by other processes, outside of a transaction.
    fn look(&mut self) {
        // An error will recur in the next transaction, which reports it to a caller.
        let _ = self.notice();
    }

    /// Clears the cache and notifies callers if another process has written.
    fn notice(&mut self) -> Result<(), Fault> {
        let data_version = data_version(&self.connection)?;
        if data_version != self.data_version {
            self.data_version = data_version;
            self.memory.forget();
            self.shared.foreign.send_modify(|changes| *changes += 1);
        }
        Ok(())
    }
}

/// The point at which a transaction failed.
enum Failed {
    /// Nothing was written.
    Before(Fault),
    /// The writes may be durable or not, depending on the error.
    Commit(Fault),
}

fn answer(batch: Batch, outcome: impl Fn() -> Result<(), StoreError>) {
    for job in batch {
        job.answer(outcome());
    }
}

/// Differs from the last result if another connection has written in between.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
fn pretend(connection: &Connection, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    connection.query_row(&sql, [], |_| Ok(())).unwrap();
}
