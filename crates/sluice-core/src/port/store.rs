//! Where journals live.
//!
//! A store decides nothing about runs: it keeps frames, checks versions, epochs
//! and counters, and answers what it holds. One conformance suite runs on every
//! store.
//!
//! A store on a disk or in a database is given a key, and authenticates what it
//! holds with it (`evidence::mac`): what another hand wrote there is told apart
//! and not used.
//!
//! INVARIANT: an append is all or nothing: frame, what stands beside it, head,
//! snapshot, blobs, letters, memos and counters become durable together, before
//! the answer is given.

pub use crate::hash::Hash;

use super::Later;
use super::deliveries::Deliveries;
use super::feed::Feed;
use super::inspect::Inspect;
use super::ledger::{Entry, Ledger};
use super::lineage::{Lineage, Taking};
use super::memo::Memo;
use super::slots::Slots;
use crate::id::RunId;
use crate::status::RunStatus;
use sluice_govern::account::CounterName;
use std::fmt;
use std::sync::Arc;

/// An answer of the store.
pub type Answer<'a, T> = Later<'a, Result<T, StoreError>>;

/// The store failed. One variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written: try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// It may have been written or not: load and look.
    #[error("the store did not say whether it wrote: {0}")]
    Unknown(String),
    /// What is stored cannot be read: leave this run alone.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}

/// The journal and everything that must change together with it.
pub trait Store: Ledger + Slots + Lineage + Feed + Deliveries + Inspect {
    /// Appends one frame to a run's journal. Appends that wait together are
    /// committed together; each is answered by itself, after the commit. It is
    /// shared, since whoever appends keeps it until it is known to be durable.
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended>;

    /// The newest snapshot and every frame after it, without what stands beside
    /// them; none if there is no such run. A frame that is not authentic makes the
    /// run unreadable, a snapshot that is not authentic is left out.
    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>>;

    /// Frames that hold events after `after`, with what stands beside them, oldest
    /// first, about `bytes_max` of them, but at least one if there is one. A frame
    /// that is not authentic makes the run unreadable.
    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>>;

    /// The same as [`Store::frames`], with those that are not authentic: for whoever looks
    /// for what was changed. A store that keeps nothing at rest has no others.
    fn examine(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Examined>> {
        Box::pin(async move {
            let frames = self.frames(run, after, bytes_max).await?.into_iter();
            Ok(frames.map(|frame| Examined { frame, is_authentic: true }).collect())
        })
    }

    /// What was stored under this hash.
    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>>;

    /// Puts a letter into a run's inbox. A run nobody owns becomes due at once.
    fn post(&self, letter: Letter) -> Answer<'_, Posted>;

    /// Unread letters, oldest first: of one run, or of all runs a node owns.
    fn letters(&self, of: Inbox) -> Answer<'_, Vec<Received>>;

    /// Says that `node` lives until `ttl_ms` from now, by the store's clock.
    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()>;

    /// Ends the node's lease at once. Its runs may be claimed.
    fn leave(&self, node: NodeId) -> Answer<'_, ()>;

    /// Takes up to `limit` runs for `node`: runs without owner that are due by
    /// `due_by_ms`, and runs whose owner's lease has ended.
    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>>;

    /// Takes one run for `node`, due or not, unless another node with a lease owns it.
    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken>;

    /// What is known of runs without reading their journals, newest first.
    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>>;

    /// Completes when something may have changed by another process's hand.
    /// May complete for nothing; never misses a change by more than `patience_ms`.
    fn changed(&self, patience_ms: u64) -> Later<'_, ()>;

    /// Whether there is room for more, as far as the store can tell: a small write that
    /// fits in space the store already has says nothing about the next one.
    fn room(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How much was written and waits to be. A store that does not count says so
    /// with nothing.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }
}

/// How much a store has written since it was opened, and has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Transactions.
    pub commits: u64,
    /// Appends that are durable.
    pub appends: u64,
    /// Writes that were committed, of any kind.
    pub writes: u64,
    /// Transactions by how many writes they held: up to 1, 2, 4, 8, … each.
    pub batches: [u64; BATCH_SIZES],
    /// Writes that wait for the next transaction.
    pub writes_waiting: usize,
}

/// How many sizes of transactions are told apart: the last holds up to 1024 writes.
pub const BATCH_SIZES: usize = 11;

/// A process that owns runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u128);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node_{:032x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One append to one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// Who writes; must own the run.
    pub node: NodeId,
    /// The epoch under which `node` owns it; 1 for a run that is created.
    pub epoch: u64,
    /// The last event the writer has seen: the run's version. 0 for a run that is created.
    pub after: u64,
    /// How many events the frame holds. None: no frame, only what stands beside it.
    pub count: u32,
    /// The events, encoded.
    pub body: Vec<u8>,
    /// What stands beside the frame, encoded; empty for most.
    pub beside: Vec<u8>,
    /// The hash of each event, 32 bytes each. Kept when payloads are erased.
    pub chain: Vec<u8>,
    /// Set on the first append of a run, and only there.
    pub create: Option<Create>,
    /// What the lists show from now on; none where nothing of it changed.
    pub head: Option<Head>,
    /// The state after this append, encoded, where it is time for one.
    pub snapshot: Option<Vec<u8>>,
    /// What the frame refers to by hash. Stored once, however often it is sent.
    pub blobs: Vec<Blob>,
    /// Letters of this run that this append has taken into account.
    pub read: Vec<LetterId>,
    /// Letters for other runs, posted with this append.
    pub letters: Vec<Letter>,
    /// Counters that change with this append, or refuse it.
    pub guards: Vec<Guard>,
    /// Entries for the audit, chained after the writer's last.
    pub entries: Vec<Entry>,
    /// What the run has taken from others, where this append changes that.
    pub takings: Vec<Taking>,
    /// Answers to be remembered, oldest first.
    pub memos: Vec<Memo>,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// It is durable.
    Done {
        /// What each guard's counter is now, in their order.
        counts: Vec<i64>,
    },
    /// The run has moved past the version: load and decide again.
    Conflict,
    /// Another node owns the run, or owned it in between: let go of it.
    NotOwner,
    /// A counter would pass its bound. Nothing was written.
    Refused {
        /// The first counter that would.
        counter: String,
        /// What it is.
        count: i64,
    },
    /// The run to create exists: this id, or an unexpired key. Nothing was written.
    Exists {
        /// The run that was created earlier.
        run: RunId,
        /// Whether it was created from the same inputs.
        same: bool,
    },
}

/// What the lists need of a new run. The creating node owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The workflow's name.
    pub workflow: String,
    /// Its version, if it has one.
    pub version: Option<u64>,
    /// Who started it.
    pub initiator: String,
    /// When it was started.
    pub started_at_ms: u64,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// A caller's key: the same key within its time means the same run.
    pub key: Option<Key>,
}

/// A caller's idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// What it is kept under: what the caller sent, within its [scope](Key::scoped).
    pub key: String,
    /// What earlier versions kept it under: without the principal. A row there counts
    /// for the same fingerprint alone.
    pub former: Option<String>,
    /// Of everything the run is started with: the same key with another one is refused.
    pub fingerprint: Hash,
    /// Until when the key counts, by the store's clock.
    pub expires_at_ms: u64,
}

impl Key {
    /// A principal's key within a workflow and its version: in another one, or sent by
    /// another principal, it is another key. Neither names nor keys have control
    /// characters.
    pub fn scoped(workflow: &str, version: Option<u64>, principal: &str, key: &str) -> String {
        Key::without_principal(workflow, version, &format!("{principal}\u{1f}{key}"))
    }

    /// The same as earlier versions kept it.
    pub fn without_principal(workflow: &str, version: Option<u64>, key: &str) -> String {
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        format!("{workflow}@{version}\u{1f}{key}")
    }
}

/// What the lists show of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its status.
    pub status: RunStatus,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// When it next needs an owner. Read only while it has none.
    pub due_at_ms: Option<u64>,
    /// Whether it waits for a person's answer.
    pub asks: bool,
    /// Whether the writer gives it up with this append.
    pub hold: Hold,
}

/// Whether a writer goes on owning a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It does.
    Keep,
    /// It does not: the run is parked or done.
    Release,
}

/// Bytes under their hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// SHA-256 of the body.
    pub hash: Hash,
    /// The bytes.
    pub body: Vec<u8>,
}

/// A change of a counter, and the bound it must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The counter's name. One that was never changed is zero.
    pub counter: CounterName,
    /// What is added.
    pub delta: i64,
    /// The counter may not pass this by the addition.
    pub max: Option<i64>,
    /// The counter is a sum over so many milliseconds back from now, by the
    /// store's clock. It is kept in slices of a sixtieth of the window; a slice
    /// that has begun to leave it still counts, so no window ever holds more
    /// than `max`.
    pub window_ms: Option<u64>,
}

/// A message for a run, applied once by whoever owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The addressee.
    pub run: RunId,
    /// A second letter with the same key to the same run is dropped, also when
    /// the first has been read.
    pub key: String,
    /// The message, encoded.
    pub body: Vec<u8>,
}

/// A place in the order of letters.
pub type LetterId = u64;

/// A letter as it lies in an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// For `Append::read`.
    pub id: LetterId,
    /// The letter.
    pub letter: Letter,
    /// Whether a process with the store's key posted it. One that is not is put
    /// away unread.
    pub is_authentic: bool,
}

/// What became of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It lies in the inbox.
    Done,
    /// A letter with that key was posted before.
    Duplicate,
    /// There is no such run.
    NoRun,
}

/// Whose letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inbox {
    /// Of one run.
    Run(RunId),
    /// Of every run this node owns.
    Owner(NodeId),
}

/// A run that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// The epoch under which it is owned.
    pub epoch: u64,
    /// The node that owned it, where one did until its lease ended.
    pub from: Option<NodeId>,
}

/// What became of an attempt to take a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is the caller's.
    Done(Claim),
    /// The caller owns it already, under this epoch.
    Already(u64),
    /// Another node owns it.
    Held(NodeId),
    /// There is no such run.
    NoRun,
}

/// What a run's state is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The newest snapshot: the version it was taken at, and the state.
    pub snapshot: Option<(u64, Vec<u8>)>,
    /// Every frame after it, oldest first.
    pub frames: Vec<Frame>,
    /// Whether there is a snapshot that was left out, since it is not authentic.
    pub has_foreign_snapshot: bool,
}

/// The events of one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The id of the first.
    pub first: u64,
    /// How many.
    pub count: u32,
    /// Encoded.
    pub body: Vec<u8>,
    /// What stands beside it, encoded; empty where nothing does, and in [`Loaded`].
    pub beside: Vec<u8>,
    /// The hash of each event, 32 bytes each; empty for frames older than hashes.
    pub chain: Vec<u8>,
}

/// A frame, and whether it may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The frame as it is stored.
    pub frame: Frame,
    /// Whether a process with the store's key wrote it, at this place.
    pub is_authentic: bool,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only this one.
    pub run: Option<RunId>,
    /// Only runs in one of these; all if empty.
    pub statuses: Vec<RunStatus>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs that this one started: a person, a token, `schedule:…`.
    pub initiator: Option<String>,
    /// Only runs started at or after this time.
    pub since_ms: Option<u64>,
    /// Only runs started before this time.
    pub until_ms: Option<u64>,
    /// Only runs whose workflow or initiator has this in it, or whose id begins
    /// so, with or without `run_`. Letters of ASCII count in either case.
    pub text: Option<String>,
    /// Only runs that wait for a person's answer, or may.
    pub asking: bool,
    /// Only children of this run.
    pub parent: Option<RunId>,
    /// Only runs older than this one, for the next page.
    pub before: Option<RunId>,
    /// At most so many; 0 means the store's own bound.
    pub limit: usize,
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// Its version.
    pub version: Option<u64>,
    /// Who started it; empty where that was not kept yet.
    pub initiator: String,
    /// The status as of the last head written.
    pub status: RunStatus,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The node that owns it and still has a lease.
    pub owner: Option<NodeId>,
    /// When it next needs an owner.
    pub due_at_ms: Option<u64>,
}
