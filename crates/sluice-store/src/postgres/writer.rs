//! Appends, letters and entries: many of them in one transaction.
//!
//! One task takes everything that waits and performs it in two round trips. The
//! first locks the rows that matter, in an order that is the same for every node,
//! and reads them. What passes is decided in memory, one after the other, as if
//! each were alone. The second writes all of it in statements over arrays, and
//! commits. While that goes to the disk the next writes gather.
//!
//! INVARIANT: rows are locked in the order runs, keys, the counter of the
//! registry, counters, chains, blobs, the position; each kind by its key. Two
//! nodes never wait for each other in a circle.
//!
//! INVARIANT: a write is answered with success only after the commit that holds
//! it; a refused write leaves nothing in the transaction it shares.

mod batch;
mod decide;
mod write;

use super::column::Named;
use super::desk::Desk;
use super::fault::Fault;
use super::session::Session;
use crate::authentic::AppendMacs;
use crate::limits::{
    AGAIN_MAX, BATCH_BYTES_MAX, BATCH_WRITES_MAX, REMEMBERED_MAX, WRITE_BYTES_MAX,
    WRITES_WAITING_MAX,
};
use batch::Locked;
use sluice_core::evidence::mac::Mac;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::{Append, Appended, Hold, Letter, NodeId, Posted, StoreError};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The way to the writer.
pub(super) struct Writer {
    jobs: mpsc::UnboundedSender<Job>,
    places: Arc<Semaphore>,
}

/// Something to write.
pub(super) enum Write {
    Append(Arc<Append>, AppendMacs),
    Post(Letter, Option<Mac>),
    Record(NodeId, Vec<Entry>),
}

/// What became of it.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Appended(Appended),
    Posted(Posted),
    Recorded,
}

/// A write with the way back.
pub(super) struct Job {
    write: Write,
    bytes: usize,
    answer: oneshot::Sender<Result<Outcome, StoreError>>,
}

impl Writer {
    /// A writer and what it will take its jobs from.
    pub(super) fn new() -> (Writer, Turns) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let places = Arc::new(Semaphore::new(WRITES_WAITING_MAX));
        let turns = Turns {
            queue,
            places: Arc::clone(&places),
            session: None,
            counters: HashSet::new(),
            chains: HashSet::new(),
        };
        (Writer { jobs, places }, turns)
    }

    /// Performs a write. Waits for a place in the queue first. Once it is in the
    /// queue it is performed, whether or not the answer is awaited.
    pub(super) async fn write(&self, write: Write) -> Result<Outcome, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".to_owned());
        let bytes = bytes(&write);
        if bytes > WRITE_BYTES_MAX {
            let why = format!("{bytes} bytes at once are more than {WRITE_BYTES_MAX}");
            return Err(StoreError::Unavailable(why));
        }
        // The task gives the place back when it takes the write.
        self.places.acquire().await.map_err(|_| stopped())?.forget();
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job { write, bytes, answer }).map_err(|_| stopped())?;
        let gone = |_| StoreError::Unknown("the writer stopped before it answered".to_owned());
        answered.await.map_err(gone)?
    }

    /// Writes that the task has not taken yet.
    pub(super) fn waiting(&self) -> usize {
        WRITES_WAITING_MAX.saturating_sub(self.places.available_permits())
    }
}

/// Whether an append lets its run go.
fn is_released(append: &Append) -> bool {
    append.head.as_ref().is_some_and(|head| head.hold == Hold::Release)
}

/// How much there is to write, for the bounds of a transaction.
fn bytes(write: &Write) -> usize {
    match write {
        Write::Append(append, _) => crate::append_bytes(append),
        Write::Post(letter, _) => letter.body.len(),
        Write::Record(_, entries) => crate::entries_bytes(entries),
    }
}

/// The state of the task.
pub(super) struct Turns {
    queue: mpsc::UnboundedReceiver<Job>,
    places: Arc<Semaphore>,
    session: Option<Session>,
    /// Counters that have a row. A row never goes.
    counters: HashSet<(String, i64)>,
    /// Writers of entries that have a row.
    chains: HashSet<NodeId>,
}

/// Why a batch was not written.
enum Failed {
    /// Nothing was written.
    Before(Fault),
    /// It depends.
    Commit(Fault),
}

impl Turns {
    /// Works until the store is dropped.
    pub(super) async fn serve(mut self, desk: Rc<Desk>) {
        while let Some(job) = self.queue.recv().await {
            let mut held = job.bytes;
            let mut batch = vec![job];
            while batch.len() < BATCH_WRITES_MAX && held < BATCH_BYTES_MAX {
                let Ok(job) = self.queue.try_recv() else { break };
                held += job.bytes;
                batch.push(job);
            }
            self.places.add_permits(batch.len());
            self.perform(&desk, batch).await;
        }
    }

    /// Performs a batch. Where one of it is at fault, each by itself, so that the
    /// others do not suffer for it.
    async fn perform(&mut self, desk: &Desk, batch: Vec<Job>) {
        match self.attempts(desk, &batch).await {
            Err(Failed::Before(fault) | Failed::Commit(fault))
                if !fault.hits_everyone() && batch.len() > 1 =>
            {
                for job in batch {
                    let one = [job];
                    let outcome = self.attempts(desk, &one).await;
                    answer(one, outcome);
                }
            }
            outcome => answer(batch, outcome),
        }
    }

    /// Tries a batch again as long as other transactions are in the way.
    async fn attempts(&mut self, desk: &Desk, batch: &[Job]) -> Result<Vec<Outcome>, Failed> {
        let mut outcome = self.attempt(desk, batch).await;
        for _ in 0..AGAIN_MAX {
            match outcome {
                Err(Failed::Before(Fault::Again(_)) | Failed::Commit(Fault::Again(_))) => {
                    outcome = self.attempt(desk, batch).await;
                }
                _ => break,
            }
        }
        outcome
    }

    async fn attempt(&mut self, desk: &Desk, batch: &[Job]) -> Result<Vec<Outcome>, Failed> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => desk.connect().await.map_err(Failed::Before)?,
        };
        let outcome = self.transact(desk, &session, batch).await;
        if outcome.is_ok() {
            self.session = Some(session);
            return outcome;
        }
        // What was remembered may be what was wrong.
        self.counters.clear();
        self.chains.clear();
        let is_gone =
            matches!(outcome, Err(Failed::Before(Fault::Gone(_)) | Failed::Commit(Fault::Gone(_))));
        // One whose transaction cannot be left is left itself.
        if !is_gone && session.query("ROLLBACK", &[]).await.is_ok() {
            self.session = Some(session);
        }
        outcome
    }

    async fn transact(
        &mut self,
        desk: &Desk,
        session: &Session,
        batch: &[Job],
    ) -> Result<Vec<Outcome>, Failed> {
        let mut wanted = Locked::of(batch.iter().map(|job| &job.write));
        self.make_rows(session, &wanted).await.map_err(Failed::Before)?;
        let now_ms = wanted.lock(session, &desk.shared).await.map_err(Failed::Before)?;
        let writes = batch.iter().map(|job| &job.write);
        let decided = decide::decide(wanted, writes, now_ms, &desk.shared.keys);
        let outcomes = decided.write(session).await.map_err(Failed::Commit)?;
        let done = |outcome: &&Outcome| matches!(outcome, Outcome::Appended(Appended::Done { .. }));
        let appends = outcomes.iter().filter(done).count();
        desk.shared.counted(batch.len(), appends);
        Ok(outcomes)
    }

    /// Makes the rows that are to be locked. By itself: nobody minds a counter of zero.
    async fn make_rows(&mut self, session: &Session, wanted: &Locked<'_>) -> Result<(), Fault> {
        let is_new = |slot: &&&super::count::Slot<'_>| {
            !self.counters.contains(&(slot.name.whole(), slot.span))
        };
        let slots = wanted.counters.sorted();
        let (names, spans): (Vec<Named<'_>>, Vec<i64>) =
            slots.iter().filter(is_new).map(|slot| (Named(slot.name), slot.span)).unzip();
        if !names.is_empty() {
            session.execute(batch::NEW_COUNTERS, &[&names, &spans]).await?;
            if self.counters.len() + names.len() > REMEMBERED_MAX {
                self.counters.clear();
            }
            self.counters.extend(names.into_iter().map(|one| one.0.whole()).zip(spans));
        }
        let chains: Vec<NodeId> =
            wanted.chains.keys().filter(|writer| !self.chains.contains(*writer)).copied().collect();
        if !chains.is_empty() {
            super::entry::make_chains(session, &chains).await?;
            self.chains.extend(chains);
        }
        Ok(())
    }
}

fn answer(batch: impl IntoIterator<Item = Job>, outcome: Result<Vec<Outcome>, Failed>) {
    // A caller that has gone wants no answer.
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
