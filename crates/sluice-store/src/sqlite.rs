//! A store in one SQLite file, for one machine.
//!
//! One thread writes: it takes everything in its queue and commits it together, so that
//! many runs share one disk sync. Readers have their own threads and connections and
//! never block the writer. Several processes may use one directory.
//!
//! INVARIANT: a write is acknowledged after its commit, and a commit is on disk
//! (`synchronous=FULL`).

mod adopt;
mod append;
mod cache;
mod claim;
mod column;
mod connect;
mod count;
mod deliver;
mod directory_check;
mod entry;
mod erase;
mod fault;
mod feed;
mod inspect;
mod ledger;
mod lineage;
mod list;
mod mailbox;
mod migrate;
mod node_locks;
mod read;
mod read_only;
mod reader;
mod recent_heads;
mod registry;
mod remembered_output;
mod seal;
mod slot;
pub(crate) mod source;
mod stored;
mod writer;

pub use connect::OpenError;
pub use inspect::{Inspection, copy, inspect, size};

use crate::authentic::{self, AppendMacs, Keys};
use directory_check::DirectoryCheck;
use node_locks::NodeLocks;
use read_only::ReadSource;
use reader::{ReadConnection, Readers};
use recent_heads::RecentHeads;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::{
    Answer, Append, Appended, BATCH_SIZES, Claim, Examined, Filter, Frame, Gauges, Loaded,
    MailboxMessage, Mailboxes, NodeId, Posted, Received, RunRow, Store, Taken,
};
use sluice_core::port::{Clock, Later};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use writer::{Work, WriterThread};

const FILE: &str = "sluice.db";

/// Journals in a SQLite file. Dropping the store waits for its threads.
pub struct SqliteStore {
    // Declared before the writer, so dropped before it: the last connection to close
    // checkpoints the log, and a read-only connection cannot.
    readers: Readers,
    writer: WriterThread,
    shared: Arc<Shared>,
    /// Changes by other processes that `changed` has already reported.
    reported: AtomicU64,
}

/// State shared by the threads of one store.
struct Shared {
    clock: Arc<dyn Clock>,
    locks: NodeLocks,
    commits: AtomicU64,
    appends: AtomicU64,
    writes: AtomicU64,
    /// Transactions by number of writes.
    batches: [AtomicU64; BATCH_SIZES],
    /// Changes by other processes that the writer has noticed.
    foreign: watch::Sender<u64>,
    /// Callers that wait for such a change.
    waiting: AtomicUsize,
    /// Recently written run heads.
    recent_heads: Mutex<RecentHeads>,
    keys: Keys,
}

impl SqliteStore {
    /// Opens `sluice.db` in `dir`, and creates both if they are missing.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<SqliteStore, OpenError> {
        let file = dir.join(FILE);
        connect::directory(dir)?;
        connect::directory(&dir.join("nodes"))?;
        connect::private(&file);
        let connection = connect::writer(&file).map_err(|error| error.with_path(&file))?;
        let directory = DirectoryCheck::new(&file);
        let directory =
            directory.map_err(|source| OpenError::Directory { path: dir.to_owned(), source })?;
        let shared = Arc::new(Shared::new(clock, NodeLocks::open(dir.join("nodes"))));
        shared.keys.set_found_mark(adopt::find(&connection)?);
        let source = ReadSource::Shared(file.clone());
        let readers = Readers::start(source, &shared).map_err(|error| error.with_path(&file))?;
        let writer = WriterThread::start(connection, directory, &shared)?;
        Ok(SqliteStore { readers, writer, shared, reported: AtomicU64::new(0) })
    }

    /// Opens `sluice.db` in `dir` read-only, also on a read-only file system. Creates
    /// and migrates nothing, and refuses every write.
    pub fn open_read_only(dir: &Path, clock: Arc<dyn Clock>) -> Result<SqliteStore, OpenError> {
        let file = dir.join(FILE);
        let open = || -> Result<SqliteStore, OpenError> {
            let source = ReadSource::find(&file)?;
            let connection = source.connect()?;
            migrate::check(&connection)?;
            let shared = Arc::new(Shared::new(clock, NodeLocks::unused(dir.join("nodes"))));
            shared.keys.set_found_mark(adopt::find(&connection)?);
            let readers = Readers::start(source, &shared)?;
            Ok(SqliteStore {
                readers,
                writer: WriterThread::refusing(),
                shared,
                reported: AtomicU64::new(0),
            })
        };
        open().map_err(|error| error.with_path(&file))
    }
}

impl Shared {
    fn new(clock: Arc<dyn Clock>, locks: NodeLocks) -> Shared {
        Shared {
            clock,
            locks,
            commits: AtomicU64::new(0),
            appends: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            batches: Default::default(),
            foreign: watch::Sender::new(0),
            waiting: AtomicUsize::new(0),
            recent_heads: Mutex::default(),
            keys: Keys::default(),
        }
    }
}

impl Store for SqliteStore {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        crate::assert_sound(&append);
        let bytes = crate::append_bytes(&append);
        let macs = AppendMacs::new(&self.shared.keys, &append);
        Box::pin(async move {
            let macs = macs?;
            self.writer.write(bytes, move |work| append::append(work, &append, &macs)).await
        })
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        Box::pin(self.readers.read(move |reader| read::load(reader, run)))
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        let frames = move |reader: &ReadConnection| read::frames(reader, run, after, bytes_max);
        Box::pin(self.readers.read(frames))
    }

    fn examine(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Examined>> {
        let examine = move |reader: &ReadConnection| read::examine(reader, run, after, bytes_max);
        Box::pin(self.readers.read(examine))
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.readers.read(move |reader| read::blob(&reader.connection, hash)))
    }

    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted> {
        let bytes = message.body.len();
        let key = self.shared.keys.for_writing();
        let mac = key.map(|key| key.map(|key| key.message(&message)));
        Box::pin(async move {
            let mac = mac?;
            let post = move |work: &mut Work<'_>| {
                mailbox::post(work, &message, authentic::bytes(mac.as_ref()))
            };
            self.writer.write(bytes, post).await
        })
    }

    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>> {
        Box::pin(self.readers.read(move |reader| mailbox::unread(reader, of)))
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        Box::pin(self.writer.write(0, move |work| claim::renew(work, node, ttl_ms)))
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        Box::pin(self.writer.write(0, move |work| claim::leave(work, node)))
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        Box::pin(self.writer.write(0, move |work| claim::claim(work, node, due_by_ms, limit)))
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        Box::pin(self.writer.write(0, move |work| claim::take(work, run, node)))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        Box::pin(self.readers.read(move |reader| list::list(reader, &filter)))
    }

    fn room(&self) -> Answer<'_, ()> {
        Box::pin(
            self.readers
                .read(move |reader| directory_check::check_free_space(reader.shared.locks.dir())),
        )
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

    /// Uses `limits::POLL_MS` instead of a shorter patience.
    fn changed(&self, _patience_ms: u64) -> Later<'_, ()> {
        Box::pin(async move {
            let reported = self.reported.load(Ordering::SeqCst);
            let mut foreign = self.shared.foreign.subscribe();
            let _waiting = Waiting::begin(self);
            loop {
                let noticed = *foreign.borrow_and_update();
                if noticed > reported {
                    self.reported.fetch_max(noticed, Ordering::SeqCst);
                    return;
                }
                foreign.changed().await.expect("the store holds the sender");
            }
        })
    }
}

/// Counts a caller of `changed` until it is dropped.
struct Waiting<'a>(&'a Shared);

impl Waiting<'_> {
    fn begin(store: &SqliteStore) -> Waiting<'_> {
        // The writer polls while a caller waits; only the first caller must wake it.
        if store.shared.waiting.fetch_add(1, Ordering::SeqCst) == 0 {
            store.writer.poll();
        }
        Waiting(&store.shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
