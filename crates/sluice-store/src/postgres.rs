//! A store in a PostgreSQL database, for any number of nodes.
//!
//! Every node has its own store on the same database. A dedicated thread of the store
//! talks to the database, so that callers need no runtime. Appends of many runs are
//! committed together (`writer`); everything else uses a connection of a small pool
//! (`pool`). When a connection is lost, its user gets an error and the next call
//! connects again. A URL may name several hosts (`address`) and request TLS (`tls`).
//!
//! Leases and windows use one clock: the database's, unless the caller provides one.
//! Nodes notify each other of changes (`notice`). Notifications are a hint: nodes also
//! find every change by polling.
//!
//! The SQL is limited to what databases compatible with PostgreSQL support as well:
//! tables with primary keys, partial indexes, `uuid`, `bytea`, `COLLATE "C"`; `INSERT …
//! ON CONFLICT`, `RETURNING`, `UPDATE … FROM`, `DELETE … USING`, `unnest` over arrays,
//! `DISTINCT ON`, window functions, a recursive query; `FOR UPDATE`, `FOR SHARE` and
//! `SKIP LOCKED` on rows. There are no triggers, procedures, sequences, advisory or
//! table locks or temporary tables, and nothing depends on `LISTEN`. Keys of large
//! tables begin with the run, so that they can be partitioned by it.
//!
//! INVARIANT: a write is acknowledged after its commit, and a commit is on disk.
//!
//! INVARIANT: one row assigns the positions of frames and entries, and is locked until
//! the commit. So positions have no gaps and become visible in order, whichever node
//! writes.

mod address;
mod adopt;
mod agree;
mod claim;
mod column;
mod count;
mod deliver;
mod entry;
mod erase;
mod fault;
mod feed;
mod ledger;
mod lineage;
mod list;
mod mailbox;
mod migrate;
mod notice;
pub mod outside;
mod pool;
mod read;
mod registry;
mod remembered_output;
mod seal;
mod session;
mod slot;
mod stored;
pub(crate) mod target;
mod thread;
mod tls;
mod writer;

pub use migrate::OpenError;
pub use pool::Time;

use crate::authentic::{AppendMacs, Keys};
use crate::limits::POLL_MS;
use address::DatabaseAddress;
use migrate::Unfinished;
use pool::ConnectionPool;
use session::Session;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{
    Answer, Append, Appended, BATCH_SIZES, Claim, Examined, Filter, Frame, Gauges, Loaded,
    MailboxMessage, Mailboxes, NodeId, Posted, Received, RunRow, Store, StoreError, Taken,
};
use sluice_core::port::{Clock, Later};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thread::Thread;
use tokio::sync::{Notify, watch};
use writer::{Write, WriteOutcome, WriterQueue};

/// Journals in a PostgreSQL database. Dropping the store waits for its thread.
pub struct PostgresStore {
    // Declared before the thread, which ends when the writer is dropped.
    writer: WriterQueue,
    thread: Thread,
    shared: Arc<Shared>,
    /// Changes by other nodes that `changed` has already reported.
    reported: AtomicU64,
    /// Time of the last report, which limits how often `changed` completes while other
    /// nodes write continuously.
    reported_at: Mutex<Option<Instant>>,
}

/// State shared by the thread and its callers.
struct Shared {
    time: Time,
    /// Sender name in this store's notifications.
    name: String,
    /// Signals that there is a change to notify.
    changed: Notify,
    /// Changes by other nodes that this store has noticed.
    foreign: watch::Sender<u64>,
    commits: AtomicU64,
    appends: AtomicU64,
    writes: AtomicU64,
    /// Transactions by number of writes.
    batches: [AtomicU64; BATCH_SIZES],
    keys: Keys,
}

impl Shared {
    /// Counts a transaction, and signals that there is a change to notify.
    fn record_commit(&self, writes: usize, appends: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.appends.fetch_add(appends as u64, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        let size = writes.next_power_of_two().ilog2() as usize;
        self.batches[size.min(BATCH_SIZES - 1)].fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// The time of the provided clock; `None` if the database's clock is used.
    fn now(&self) -> Option<i64> {
        match &self.time {
            Time::Given(clock) => Some(column::int(clock.now_ms())),
            Time::Database => None,
        }
    }
}

impl PostgresStore {
    /// Opens the database of a URL and migrates its schema. Leases and windows use the
    /// given clock.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_by(url, Time::Given(clock))
    }

    /// Opens the database with any clock. Several nodes must use the database's.
    pub fn open_by(url: &str, time: Time) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_in(url, None, time)
    }

    /// Opens a store in a schema of its own, which is created if it is missing. Without
    /// a name, the database's default schema is used.
    pub fn open_in(
        url: &str,
        schema: Option<&str>,
        time: Time,
    ) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_at(outside::config(url, schema)?, time)
    }

    /// Opens a schema whose transfer has not ended, for the transfer itself.
    pub(crate) fn open_unfinished(
        url: &str,
        schema: Option<&str>,
        time: Time,
    ) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_as(outside::config(url, schema)?, time, Unfinished::Allowed)
    }

    fn open_at(address: DatabaseAddress, time: Time) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_as(address, time, Unfinished::Refused)
    }

    fn open_as(
        address: DatabaseAddress,
        time: Time,
        unfinished: Unfinished,
    ) -> Result<PostgresStore, OpenError> {
        let shared = Arc::new(Shared {
            time,
            name: thread::name(),
            changed: Notify::new(),
            foreign: watch::Sender::new(0),
            commits: AtomicU64::new(0),
            appends: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            batches: Default::default(),
            keys: Keys::default(),
        });
        let (writer, turns) = WriterQueue::new();
        let thread = Thread::start(Arc::new(address), turns, Arc::clone(&shared), unfinished)?;
        Ok(PostgresStore {
            writer,
            thread,
            shared,
            reported: AtomicU64::new(0),
            reported_at: Mutex::default(),
        })
    }

    /// The value that all nodes use under this name: the first one proposed. Proposes
    /// `value`.
    pub fn agree(&self, name: &str, value: &str) -> Answer<'_, String> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.write(async move |session, _| agree::agree(session, &name, &value).await)
    }

    /// The value that all nodes use under this name; `None` if no node has proposed
    /// one.
    pub fn agreed(&self, name: &str) -> Answer<'_, Option<String>> {
        let name = name.to_owned();
        self.read(async move |session| agree::agreed(session, &name).await)
    }

    /// Runs a task on the thread and waits for its result.
    fn run_task<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<ConnectionPool>) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(self.thread.run(work))
    }

    /// Runs statements that only read.
    fn read<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.run_task(async move |pool| pool.read(work).await)
    }

    /// Runs a single statement that writes. It gets the time of the provided clock.
    fn write<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Session, Option<i64>) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.run_task(async move |pool| {
            let now = pool.shared.now();
            pool.write(async |session| work(session, now).await).await
        })
    }

    /// Runs a transaction.
    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Session, &ConnectionPool) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.run_task(async move |pool| {
            pool.transact(async |session| work(session, &pool).await).await
        })
    }
}

impl Store for PostgresStore {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        crate::assert_sound(&append);
        let macs = AppendMacs::new(&self.shared.keys, &append);
        Box::pin(async move {
            match self.writer.write(Write::Append(append, macs?)).await? {
                WriteOutcome::Appended(appended) => Ok(appended),
                WriteOutcome::Posted(_) | WriteOutcome::Recorded => {
                    unreachable!("an append was sent")
                }
            }
        })
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| read::load(session, &shared.keys, run).await)
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| {
            let frames = read::examine(session, &shared.keys, run, after, bytes_max).await?;
            crate::authentic::authentic(run, frames).map_err(fault::Fault::Corrupt)
        })
    }

    fn examine(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Examined>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| {
            read::examine(session, &shared.keys, run, after, bytes_max).await
        })
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        self.read(async move |session| read::blob(session, hash).await)
    }

    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted> {
        let key = self.shared.keys.for_writing();
        let mac = key.map(|key| key.map(|key| key.message(&message)));
        Box::pin(async move {
            match self.writer.write(Write::Post(message, mac?)).await? {
                WriteOutcome::Posted(posted) => Ok(posted),
                WriteOutcome::Appended(_) | WriteOutcome::Recorded => {
                    unreachable!("a message was sent")
                }
            }
        })
    }

    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| mailbox::unread(session, &shared.keys, of).await)
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        self.run_task(async move |pool| {
            // Other nodes need no notification of a renewed lease.
            let now = pool.shared.now();
            let renew = async |session: &Session| claim::renew(session, node, ttl_ms, now).await;
            pool.renew(ttl_ms, renew).await?;
            // The caller of `renew` need not wait for this.
            tokio::task::spawn_local(pool.purge_expired());
            Ok(())
        })
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        self.write(async move |session, _| claim::leave(session, node).await)
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        self.run_task(async move |pool| {
            let now = pool.shared.now();
            let claim =
                async |session: &Session| claim::claim(session, node, due_by_ms, limit, now).await;
            pool.claim(claim).await
        })
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        self.transact(async move |session, pool| {
            let now_ms = pool.now_ms(session).await?;
            claim::take(session, run, node, now_ms).await
        })
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        self.run_task(async move |pool| {
            let now = pool.shared.now();
            pool.read(async |session| list::list(session, &filter, now).await).await
        })
    }

    fn gauges(&self) -> Gauges {
        let shared = &self.shared;
        Gauges {
            commits: shared.commits.load(Ordering::Relaxed),
            appends: shared.appends.load(Ordering::Relaxed),
            writes: shared.writes.load(Ordering::Relaxed),
            batches: shared.batches.each_ref().map(|count| count.load(Ordering::Relaxed)),
            writes_waiting: self.writer.waiting(),
        }
    }

    fn changed(&self, patience_ms: u64) -> Later<'_, ()> {
        Box::pin(async move {
            let reported = self.reported.load(Ordering::SeqCst);
            let mut foreign = self.shared.foreign.subscribe();
            let patience = Duration::from_millis(patience_ms);
            let last = *self.reported_at.lock().expect("no thread panics while it holds the lock");
            let rest = Duration::from_millis(POLL_MS);
            let rest = last.map_or(Duration::ZERO, |last| rest.saturating_sub(last.elapsed()));
            let noticed = self.run_task(async move |_| {
                tokio::time::sleep(rest).await;
                let news = foreign.wait_for(|noticed| *noticed > reported);
                let noticed = tokio::time::timeout(patience, news).await;
                Ok(noticed.ok().and_then(|seen| seen.ok().map(|seen| *seen)).unwrap_or(reported))
            });
            // A stopped store has no changes; the next call reports that it stopped.
            let noticed = noticed.await.unwrap_or(reported);
            if self.reported.fetch_max(noticed, Ordering::SeqCst) < noticed {
                let mut reported_at =
                    self.reported_at.lock().expect("no thread panics while it holds the lock");
                *reported_at = Some(Instant::now());
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
