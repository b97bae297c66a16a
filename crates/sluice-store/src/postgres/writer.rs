//! The writer: many appends, messages and entries in one transaction.
//!
//! One task takes everything in its queue and performs it in two round trips. The first
//! locks and reads the rows involved, in the same order on every node. Then the task
//! decides each write in memory, one after the other, as if each were alone. The second
//! round trip writes all of them with statements over arrays, and commits. New writes
//! queue up meanwhile.
//!
//! INVARIANT: rows are locked in the order runs, keys, the registry's counter,
//! counters, chains, blobs, the position; each kind sorted by key. So two nodes never
//! deadlock.
//!
//! INVARIANT: a write is answered with success only after its commit; a refused write
//! leaves nothing in the transaction it shares.

mod batch;
mod decide;
mod write;

use super::column::CounterText;
use super::fault::Fault;
use super::pool::ConnectionPool;
use super::session::Session;
use crate::authentic::AppendMacs;
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_WRITES_MAX, CACHED_MAX, RETRIES_MAX, WRITE_BYTES_MAX, WRITES_WAITING_MAX,
};
use batch::LockedRows;
use sluice_core::evidence::mac::Mac;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::{
    Append, Appended, MailboxMessage, NodeId, Ownership, Posted, StoreError,
};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The sending side of the writer's queue.
pub(super) struct WriterQueue {
    jobs: mpsc::UnboundedSender<Job>,
    permits: Arc<Semaphore>,
}

pub(super) enum Write {
    Append(Arc<Append>, AppendMacs),
    Post(MailboxMessage, Option<Mac>),
    Record(NodeId, Vec<Entry>),
}

/// The result of a write.
#[derive(Debug, Clone)]
pub(super) enum WriteOutcome {
    Appended(Appended),
    Posted(Posted),
    Recorded,
}

/// A write with its reply channel.
pub(super) struct Job {
    write: Write,
    bytes: usize,
    answer: oneshot::Sender<Result<WriteOutcome, StoreError>>,
}

impl WriterQueue {
    /// The queue's sending side, and the task that will serve it.
    pub(super) fn new() -> (WriterQueue, WriterTask) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        let turns = WriterTask {
            queue,
            permits: Arc::clone(&permits),
            session: None,
            counters: HashSet::new(),
            chains: HashSet::new(),
        };
        (WriterQueue { jobs, permits }, turns)
    }

    /// Performs a write, after waiting for capacity in the queue. A queued write is
    /// performed even if the caller stops waiting.
    pub(super) async fn write(&self, write: Write) -> Result<WriteOutcome, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".to_owned());
        let bytes = bytes(&write);
        if bytes > WRITE_BYTES_MAX {
            let why = format!("{bytes} bytes in one write exceed the limit of {WRITE_BYTES_MAX}");
            return Err(StoreError::Unavailable(why));
        }
        // The task returns the permit when it takes the write.
        self.permits.acquire().await.map_err(|_| stopped())?.forget();
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job { write, bytes, answer }).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the writer stopped before it answered".to_owned());
        answered.await.map_err(gone)?
    }

    /// Writes in the queue.
    pub(super) fn waiting(&self) -> usize {
        WRITES_WAITING_MAX.saturating_sub(self.permits.available_permits())
    }
}

/// Whether an append releases ownership of its run.
fn is_released(append: &Append) -> bool {
    append.head.as_ref().is_some_and(|head| head.ownership == Ownership::Release)
}

/// Size of a write in bytes, for the limits of a transaction.
fn bytes(write: &Write) -> usize {
    match write {
        Write::Append(append, _) => crate::append_bytes(append),
        Write::Post(message, _) => message.body.len(),
        Write::Record(_, entries) => crate::entries_bytes(entries),
    }
}

/// The state of the task.
pub(super) struct WriterTask {
    queue: mpsc::UnboundedReceiver<Job>,
    permits: Arc<Semaphore>,
    session: Option<Session>,
    /// Counters that have a row. Rows of counters are never deleted.
    counters: HashSet<(String, i64)>,
    /// Writers of entries that have a row.
    chains: HashSet<NodeId>,
}

/// The point at which a batch failed.
enum Failed {
    /// Nothing was written.
    Before(Fault),
    /// The writes may be durable or not, depending on the error.
    Commit(Fault),
}

impl WriterTask {
    /// Runs until the store is dropped.
    pub(super) async fn serve(mut self, pool: Rc<ConnectionPool>) {
        while let Some(job) = self.queue.recv().await {
            let mut held = job.bytes;
            let mut batch = vec![job];
            while batch.len() < BATCH_WRITES_MAX && held < BATCH_BYTES_MAX {
                let Ok(job) = self.queue.try_recv() else { break };
                held += job.bytes;
                batch.push(job);
            }
            self.permits.add_permits(batch.len());
            self.perform(&pool, batch).await;
        }
    }

    /// Performs a batch. If one write is at fault, performs each alone, so that the
    /// other writes are not affected.
    async fn perform(&mut self, pool: &ConnectionPool, batch: Vec<Job>) {
        match self.attempts(pool, &batch).await {
            Err(Failed::Before(fault) | Failed::Commit(fault))
                if !fault.affects_all() && batch.len() > 1 =>
            {
                for job in batch {
                    let one = [job];
                    let outcome = self.attempts(pool, &one).await;
                    answer(one, outcome);
                }
            }
            outcome => answer(batch, outcome),
        }
    }

    /// Performs a batch, and retries it after a conflict.
    async fn attempts(
        &mut self,
        pool: &ConnectionPool,
        batch: &[Job],
    ) -> Result<Vec<WriteOutcome>, Failed> {
        let mut outcome = self.attempt(pool, batch).await;
        for _ in 0..RETRIES_MAX {
            match outcome {
                Err(Failed::Before(Fault::Conflict(_)) | Failed::Commit(Fault::Conflict(_))) => {
                    outcome = self.attempt(pool, batch).await;
                }
                _ => break,
            }
        }
        outcome
    }

    async fn attempt(
        &mut self,
        pool: &ConnectionPool,
        batch: &[Job],
    ) -> Result<Vec<WriteOutcome>, Failed> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => pool.connect().await.map_err(Failed::Before)?,
        };
        let outcome = self.transact(pool, &session, batch).await;
        if outcome.is_ok() {
            self.session = Some(session);
            return outcome;
        }
        // The cache may have caused the failure.
        self.counters.clear();
        self.chains.clear();
        let is_gone = matches!(
            outcome,
            Err(Failed::Before(Fault::Disconnected(_)) | Failed::Commit(Fault::Disconnected(_)))
        );
        // If the rollback fails too, the connection is dropped.
        if !is_gone && session.query("ROLLBACK", &[]).await.is_ok() {
            self.session = Some(session);
        }
        outcome
    }

    async fn transact(
        &mut self,
        pool: &ConnectionPool,
        session: &Session,
        batch: &[Job],
    ) -> Result<Vec<WriteOutcome>, Failed> {
        let mut locked = LockedRows::collect(batch.iter().map(|job| &job.write));
        self.insert_missing_rows(session, &locked).await.map_err(Failed::Before)?;
        let now_ms = locked.lock(session, &pool.shared).await.map_err(Failed::Before)?;
        let writes = batch.iter().map(|job| &job.write);
        let decided = decide::decide(locked, writes, now_ms, &pool.shared.keys);
        let outcomes = decided.write(session).await.map_err(Failed::Commit)?;
        let done = |outcome: &&WriteOutcome| {
            matches!(outcome, WriteOutcome::Appended(Appended::Done { .. }))
        };
        let appends = outcomes.iter().filter(done).count();
        pool.shared.record_commit(batch.len(), appends);
        Ok(outcomes)
    }

    /// Inserts the missing rows, so that they can be locked. Not part of the
    /// transaction, because a counter of zero is harmless.
    async fn insert_missing_rows(
        &mut self,
        session: &Session,
        rows: &LockedRows<'_>,
    ) -> Result<(), Fault> {
        let is_new = |counter: &&&super::count::BatchCounter<'_>| {
            !self.counters.contains(&(counter.name.whole(), counter.span))
        };
        let counters = rows.counters.sorted();
        let (names, spans): (Vec<CounterText<'_>>, Vec<i64>) = counters
            .iter()
            .filter(is_new)
            .map(|counter| (CounterText(counter.name), counter.span))
            .unzip();
        if !names.is_empty() {
            session.execute(batch::NEW_COUNTERS, &[&names, &spans]).await?;
            if self.counters.len() + names.len() > CACHED_MAX {
                self.counters.clear();
            }
            self.counters.extend(names.into_iter().map(|one| one.0.whole()).zip(spans));
        }
        let chains: Vec<NodeId> =
            rows.chains.keys().filter(|writer| !self.chains.contains(*writer)).copied().collect();
        if !chains.is_empty() {
            super::entry::make_chains(session, &chains).await?;
            self.chains.extend(chains);
        }
        Ok(())
    }
}

fn answer(batch: impl IntoIterator<Item = Job>, outcome: Result<Vec<WriteOutcome>, Failed>) {
    // A caller may have dropped the receiver.
    match outcome {
        Ok(outcomes) => {
            for (job, outcome) in batch.into_iter().zip(outcomes) {
                let _ = job.answer.send(Ok(outcome));
            }
        }
        Err(failed) => {
            for job in batch {
                let error = match &failed {
                    Failed::Before(fault) => fault.clone().rolled_back(),
                    Failed::Commit(fault) => fault.clone().not_committed(),
                };
                let _ = job.answer.send(Err(error));
            }
        }
    }
}
