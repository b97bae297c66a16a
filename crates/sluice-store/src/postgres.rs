//! A store in a PostgreSQL database, for any number of nodes.
//!
//! Every node has its own store on the same database. A thread of the store's own
//! speaks with it, so that callers need no runtime. Appends of many runs are
//! committed together (`writer`); whatever else is asked takes a connection of a
//! small pool. A connection that is lost is an error for whoever was using it,
//! and the next call connects again; a URL may name several hosts (`address`), and
//! ask for TLS (`tls`).
//!
//! Leases and windows are measured by one clock: the database's, unless one is
//! given. Nodes tell each other of changes by notices (`notice`), which are a
//! hint: everything is found without them too.
//!
//! What is used of SQL is what databases compatible with PostgreSQL have as well:
//! tables with primary keys, partial indexes, `uuid`, `bytea`, `COLLATE "C"`;
//! `INSERT … ON CONFLICT`, `RETURNING`, `UPDATE … FROM`, `DELETE … USING`,
//! `unnest` over arrays, `DISTINCT ON`, window functions, a recursive query;
//! `FOR UPDATE`, `FOR SHARE` and `SKIP LOCKED` on rows. There are no triggers, no
//! procedures, no sequences, no advisory or table locks, no temporary tables, and
//! nothing depends on `LISTEN`. Keys of large tables begin with the run, so that
//! they can be partitioned by it.
//!
//! INVARIANT: an answer to a write is given after its commit, and a commit is on
//! the disk.
//!
//! INVARIANT: places of frames and entries are handed out by one row that is held
//! until the commit. So they have no gap, and become visible in their order,
//! whichever node writes them.

mod address;
mod adopt;
mod agree;
mod claim;
mod column;
mod count;
mod deliver;
mod desk;
mod entry;
mod erase;
mod fault;
mod feed;
mod ledger;
mod letter;
mod lineage;
mod list;
mod memo;
mod migrate;
mod notice;
pub mod outside;
mod read;
mod registry;
mod seal;
pub mod server;
mod session;
mod slot;
mod stored;
pub(crate) mod target;
mod thread;
mod tls;
mod writer;

pub use desk::Time;
pub use migrate::OpenError;

use crate::authentic::{AppendMacs, Keys};
use crate::limits::LOOK_MS;
use address::Address;
use desk::Desk;
use migrate::Unfinished;
use session::Session;
use sluice_core::port::store::{
    Answer, Append, Appended, BATCH_SIZES, Claim, Examined, Filter, Frame, Gauges, Hash, Inbox,
    Letter, Loaded, NodeId, Posted, Received, RunRow, Store, StoreError, Taken,
};
use sluice_core::port::{Clock, Later};
use sluice_core::run::id::RunId;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thread::Thread;
use tokio::sync::{Notify, watch};
use writer::{Outcome, Write, Writer};

/// Journals in a PostgreSQL database. Dropping it waits for its thread.
pub struct PostgresStore {
    // Declared before the thread, which ends when the writer has gone.
    writer: Writer,
    thread: Thread,
    shared: Arc<Shared>,
    /// Changes by others that a caller of `changed` was told of.
    told: AtomicU64,
    /// When that was. Neighbours that write without rest are looked at as often as
    /// one of them.
    told_at: Mutex<Option<Instant>>,
}

/// What the thread and its callers share.
struct Shared {
    time: Time,
    /// How this store signs its notices.
    name: String,
    /// Says that there is something to notify.
    changed: Notify,
    /// Changes by other nodes, as far as they were heard of.
    foreign: watch::Sender<u64>,
    commits: AtomicU64,
    appends: AtomicU64,
    writes: AtomicU64,
    /// Transactions by how many writes they held.
    batches: [AtomicU64; BATCH_SIZES],
    /// What is authenticated with.
    keys: Keys,
}

impl Shared {
    /// Counts a transaction of so many writes, and has it told.
    fn counted(&self, writes: usize, appends: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.appends.fetch_add(appends as u64, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        let size = writes.next_power_of_two().ilog2() as usize;
        self.batches[size.min(BATCH_SIZES - 1)].fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// The time that is given; none where the database's own counts.
    fn now(&self) -> Option<i64> {
        match &self.time {
            Time::Given(clock) => Some(column::int(clock.now_ms())),
            Time::Database => None,
        }
    }
}

impl PostgresStore {
    /// Opens the database of a URL, and brings its schema up to date. Leases and
    /// windows are measured by the clock that is given.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_by(url, Time::Given(clock))
    }

    /// The same, by any clock: by the database's where several nodes use it.
    pub fn open_by(url: &str, time: Time) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_in(url, None, time)
    }

    /// The same in a schema of its own, which is made where it is missing. Without
    /// one it is whichever the database gives to those who name none.
    pub fn open_in(
        url: &str,
        schema: Option<&str>,
        time: Time,
    ) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_at(outside::config(url, schema)?, time)
    }

    /// The same where a transfer has not ended, for whoever ends it.
    pub(crate) fn open_unfinished(
        url: &str,
        schema: Option<&str>,
        time: Time,
    ) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_as(outside::config(url, schema)?, time, Unfinished::Allowed)
    }

    fn open_at(address: Address, time: Time) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_as(address, time, Unfinished::Refused)
    }

    fn open_as(
        address: Address,
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
        let (writer, turns) = Writer::new();
        let thread = Thread::start(Arc::new(address), turns, Arc::clone(&shared), unfinished)?;
        Ok(PostgresStore {
            writer,
            thread,
            shared,
            told: AtomicU64::new(0),
            told_at: Mutex::default(),
        })
    }

    /// What all nodes go by under this name: what was said first. Answers `value` to
    /// whoever says it first.
    pub fn agree(&self, name: &str, value: &str) -> Answer<'_, String> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.write(async move |session, _| agree::agree(session, &name, &value).await)
    }

    /// What all nodes go by under this name; none where nobody has said anything yet.
    pub fn agreed(&self, name: &str) -> Answer<'_, Option<String>> {
        let name = name.to_owned();
        self.ask(async move |session| agree::agreed(session, &name).await)
    }

    /// Hands something to the thread and waits for its answer.
    fn hand<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Desk>) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(self.thread.hand(work))
    }

    /// Statements that only read.
    fn ask<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.hand(async move |desk| desk.ask(work).await)
    }

    /// A statement that writes by itself, given the time.
    fn write<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Session, Option<i64>) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.hand(async move |desk| {
            let now = desk.shared.now();
            desk.write(async |session| work(session, now).await).await
        })
    }

    /// A transaction, given the desk.
    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Session, &Desk) -> Result<T, fault::Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        self.hand(async move |desk| desk.transact(async |session| work(session, &desk).await).await)
    }
}

impl Store for PostgresStore {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        crate::assert_sound(&append);
        let macs = AppendMacs::new(&self.shared.keys, &append);
        Box::pin(async move {
            match self.writer.write(Write::Append(append, macs?)).await? {
                Outcome::Appended(appended) => Ok(appended),
                Outcome::Posted(_) | Outcome::Recorded => unreachable!("an append was sent"),
            }
        })
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| read::load(session, &shared.keys, run).await)
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| {
            let frames = read::examine(session, &shared.keys, run, after, bytes_max).await?;
            crate::authentic::authentic(run, frames).map_err(fault::Fault::Corrupt)
        })
    }

    fn examine(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Examined>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| {
            read::examine(session, &shared.keys, run, after, bytes_max).await
        })
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        self.ask(async move |session| read::blob(session, hash).await)
    }

    fn post(&self, letter: Letter) -> Answer<'_, Posted> {
        let key = self.shared.keys.for_writing();
        let mac = key.map(|key| key.map(|key| key.letter(&letter)));
        Box::pin(async move {
            match self.writer.write(Write::Post(letter, mac?)).await? {
                Outcome::Posted(posted) => Ok(posted),
                Outcome::Appended(_) | Outcome::Recorded => unreachable!("a letter was sent"),
            }
        })
    }

    fn letters(&self, of: Inbox) -> Answer<'_, Vec<Received>> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move |session| letter::unread(session, &shared.keys, of).await)
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        self.hand(async move |desk| {
            // Nobody needs to be told that a node still lives.
            let now = desk.shared.now();
            let renew = async |session: &Session| claim::renew(session, node, ttl_ms, now).await;
            desk.renew(ttl_ms, renew).await?;
            // Whoever waits for the lease does not wait for this.
            tokio::task::spawn_local(desk.forget());
            Ok(())
        })
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        self.write(async move |session, _| claim::leave(session, node).await)
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        self.hand(async move |desk| {
            let now = desk.shared.now();
            let claim =
                async |session: &Session| claim::claim(session, node, due_by_ms, limit, now).await;
            desk.claim(claim).await
        })
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        self.transact(async move |session, desk| {
            let now_ms = desk.now_ms(session).await?;
            claim::take(session, run, node, now_ms).await
        })
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        self.hand(async move |desk| {
            let now = desk.shared.now();
            desk.ask(async |session| list::list(session, &filter, now).await).await
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
            let told = self.told.load(Ordering::SeqCst);
            let mut foreign = self.shared.foreign.subscribe();
            let patience = Duration::from_millis(patience_ms);
            let last = *self.told_at.lock().expect("nobody panics while holding it");
            let rest = Duration::from_millis(LOOK_MS);
            let rest = last.map_or(Duration::ZERO, |last| rest.saturating_sub(last.elapsed()));
            let noticed = self.hand(async move |_| {
                tokio::time::sleep(rest).await;
                let news = foreign.wait_for(|noticed| *noticed > told);
                let noticed = tokio::time::timeout(patience, news).await;
                Ok(noticed.ok().and_then(|seen| seen.ok().map(|seen| *seen)).unwrap_or(told))
            });
            // A store that has stopped has no news; who asks it is told so.
            let noticed = noticed.await.unwrap_or(told);
            if self.told.fetch_max(noticed, Ordering::SeqCst) < noticed {
                let mut told_at = self.told_at.lock().expect("nobody panics while holding it");
                *told_at = Some(Instant::now());
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
