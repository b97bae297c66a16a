//! The loop of the writer thread: one transaction after the other.

use super::log::WriteAheadLog;
use super::{Job, Work, WriterMessage};
use crate::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX, IDLE_MS, POLL_MS};
use crate::sqlite::Shared;
use crate::sqlite::cache::WriterCache;
use crate::sqlite::directory_check::DirectoryCheck;
use crate::sqlite::fault::Fault;
use crate::sqlite::recent_heads::WrittenFrame;
use rusqlite::Connection;
use sluice_core::port::store::{BATCH_SIZES, StoreError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The state of the thread.
pub(super) struct WriterLoop {
    connection: Connection,
    directory: DirectoryCheck,
    queue: Receiver<WriterMessage>,
    permits: Arc<Semaphore>,
    shared: Arc<Shared>,
    cache: WriterCache,
    log: WriteAheadLog,
    /// Changes when another process has written.
    data_version: i64,
}

/// Writes of one transaction.
type Batch = Vec<Box<dyn Job>>;

impl WriterLoop {
    pub(super) fn new(
        connection: Connection,
        directory: DirectoryCheck,
        queue: Receiver<WriterMessage>,
        permits: Arc<Semaphore>,
        shared: Arc<Shared>,
    ) -> Result<WriterLoop, rusqlite::Error> {
        let data_version = data_version(&connection)?;
        let (cache, log) = (WriterCache::default(), WriteAheadLog::default());
        Ok(WriterLoop { connection, directory, queue, permits, shared, cache, log, data_version })
    }

    /// Runs until the store is dropped.
    pub(super) fn serve(mut self) {
        loop {
            match self.next() {
                Ok(message) => self.run_batch(message),
                Err(RecvTimeoutError::Timeout) => {
                    self.poll_changes();
                    self.log.checkpoint_idle(&self.connection);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for the next message, or until the next poll or checkpoint is due.
    fn next(&self) -> Result<WriterMessage, RecvTimeoutError> {
        if self.is_watched() {
            self.queue.recv_timeout(Duration::from_millis(POLL_MS))
        } else if self.log.needs_checkpoint() {
            self.queue.recv_timeout(Duration::from_millis(IDLE_MS))
        } else {
            self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
    }

    /// Takes a message and everything that is queued behind it.
    fn run_batch(&mut self, message: WriterMessage) {
        let mut batch = Batch::new();
        let mut bytes_held = 0;
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                WriterMessage::Write { job, bytes } => {
                    batch.push(job);
                    bytes_held += bytes;
                }
                WriterMessage::Poll => self.poll_changes(),
                #[cfg(test)]
                WriterMessage::Pages(pages) => limit_pages(&self.connection, pages),
            }
            let full = batch.len() >= BATCH_WRITES_MAX || bytes_held >= BATCH_BYTES_MAX;
            next = if full { None } else { self.queue.try_recv().ok() };
        }
        if !batch.is_empty() {
            self.permits.add_permits(batch.len());
            self.perform(batch);
            self.log.record_transaction(&self.connection, bytes_held);
        }
    }

    fn perform(&mut self, mut batch: Batch) {
        match self.transact(&mut batch) {
            Ok(()) => confirm(batch),
            Err(Failed::Commit(fault)) => answer(batch, || Err(fault.not_committed())),
            Err(Failed::Before(fault)) if fault.affects_all() || batch.len() == 1 => {
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
        let linked = self.directory.check_linked();
        linked.map_err(|fault| self.undo(Failed::Commit(fault)))?;
        // Must happen before an erasure is answered.
        self.log.truncate_erased(&self.connection);
        self.shared.recent_heads.lock().unwrap_or_else(PoisonError::into_inner).add(&written);
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.appends.fetch_add(appends, Ordering::Relaxed);
        self.shared.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let size = batch.len().next_power_of_two().ilog2() as usize;
        self.shared.batches[size.min(BATCH_SIZES - 1)].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Everything up to the commit. Returns the number of appends and the written
    /// frames.
    fn work(&mut self, batch: &mut Batch) -> Result<(u64, Vec<WrittenFrame>), Fault> {
        self.directory.check(&self.shared.locks)?;
        // A rollback that failed earlier must succeed first.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        // Inside the transaction no other process can write.
        self.detect_changes()?;
        let mut work = Work {
            connection: &self.connection,
            cache: &mut self.cache,
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
        self.cache.counters.write(&self.connection, now_ms)?;
        Ok((appends, written))
    }

    /// Rolls back the failed transaction and clears the cache.
    fn undo(&mut self, failed: Failed) -> Failed {
        self.cache.forget();
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
    fn poll_changes(&mut self) {
        // An error will recur in the next transaction, which reports it to a caller.
        let _ = self.detect_changes();
    }

    /// Clears the cache and notifies callers if another process has written.
    fn detect_changes(&mut self) -> Result<(), Fault> {
        let data_version = data_version(&self.connection)?;
        if data_version != self.data_version {
            self.data_version = data_version;
            self.cache.forget();
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

/// Answers the callers of committed writes.
///
/// Waking a task from outside of its runtime takes a lock and often a system call. So the
/// thread wakes one task for each commit, which wakes the callers from inside. It serves only
/// callers on its own runtime: another runtime must not wait for this one.
fn confirm(batch: Batch) {
    let runtime = batch.first().filter(|_| batch.len() > 1).and_then(|job| job.runtime().cloned());
    let Some(runtime) = runtime else { return answer(batch, || Ok(())) };
    let (inside, outside) = batch
        .into_iter()
        .partition(|job| job.runtime().is_some_and(|its| its.id() == runtime.id()));
    let callers = Committed(inside);
    // A runtime that has stopped drops the task, which answers the callers here.
    runtime.spawn(async move { drop(callers) });
    answer(outside, || Ok(()));
}

/// Committed writes whose callers wait for the answer. Dropping it answers them.
struct Committed(Batch);

impl Drop for Committed {
    fn drop(&mut self) {
        answer(std::mem::take(&mut self.0), || Ok(()));
    }
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
fn limit_pages(connection: &Connection, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    connection.query_row(&sql, [], |_| Ok(())).unwrap();
}

#[cfg(test)]
mod tests {
    use super::super::WriteJob;
    use super::*;
    use tokio::runtime::{Builder, Handle, Runtime};
    use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

    /// A runtime whose tasks run only inside `block_on`.
    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    /// A committed write with its result, and whether its caller has the answer.
    fn committed(result: u8, caller: Option<&Handle>) -> (Box<dyn Job>, impl FnMut() -> bool) {
        let perform = |_: &mut Work<'_>| -> Result<u8, Fault> { panic!("it was performed") };
        let (answer, mut answered) = oneshot::channel();
        let runtime = caller.cloned();
        let job = Box::new(WriteJob { perform, result: Some(result), answer, runtime });
        (job, move || is_answered(&mut answered, result))
    }

    fn is_answered<F>(caller: &mut Receiver<(Result<u8, StoreError>, F)>, expected: u8) -> bool {
        match caller.try_recv() {
            Ok((result, _)) => {
                assert_eq!(result.unwrap(), expected);
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Closed) => panic!("the write was dropped without an answer"),
        }
    }

    #[test]
    fn callers_elsewhere_do_not_wait_for_the_first_callers_runtime() {
        let (busy, other) = (runtime(), runtime());
        let (one, mut is_one) = committed(1, Some(busy.handle()));
        let (two, mut is_two) = committed(2, Some(other.handle()));
        let (three, mut is_three) = committed(3, None);
        let (four, mut is_four) = committed(4, Some(busy.handle()));
        confirm(vec![one, two, three, four]);
        assert!(is_two() && is_three(), "these callers do not depend on the busy runtime");
        assert!(!is_one() && !is_four(), "the busy runtime wakes its own callers");
        busy.block_on(tokio::task::yield_now());
        assert!(is_one() && is_four());
    }

    #[test]
    fn callers_on_a_stopped_runtime_are_answered() {
        let stopped = runtime();
        let handle = stopped.handle().clone();
        let ((one, mut is_one), (two, mut is_two)) =
            (committed(1, Some(&handle)), committed(2, Some(&handle)));
        let ((three, mut is_three), (four, mut is_four)) =
            (committed(3, Some(&handle)), committed(4, Some(&handle)));
        // It stops before it has run the task that answers.
        confirm(vec![one, two]);
        assert!(!is_one() && !is_two());
        drop(stopped);
        assert!(is_one() && is_two());
        // It had stopped before the commit.
        confirm(vec![three, four]);
        assert!(is_three() && is_four());
    }

    #[test]
    fn a_single_caller_is_answered_at_once() {
        let busy = runtime();
        let (one, mut is_one) = committed(1, Some(busy.handle()));
        confirm(vec![one]);
        assert!(is_one());
    }
}
