//! The store port: journals and everything that is committed together with them.
//!
//! A store takes no decisions about runs. It stores frames, checks versions, epochs and
//! counters, and returns what it holds. One conformance suite, in
//! `sluice-testing`, runs on every store.
//!
//! A store on disk or in a database has a key and authenticates its contents with it
//! (`evidence::mac`). Rows that another process wrote without the key are detected and not
//! used.
//!
//! INVARIANT: an append is all or nothing. Frame, stream deltas, head, snapshot, blobs,
//! messages, remembered outputs and counters become durable together, before the call
//! completes.

use super::Later;
use super::deliveries::Deliveries;
use super::feed::Feed;
use super::inspect::Inspect;
use super::ledger::{Entry, Ledger};
use super::lineage::{Lineage, ProvenanceEdge};
use super::remembered_output::RememberedOutput;
use super::slots::Slots;
use crate::hash::Hash;
use crate::id::RunId;
use crate::status::RunStatus;
use sluice_govern::account::CounterName;
use std::fmt;
use std::sync::Arc;

/// The result of a call to the store.
pub type Answer<'a, T> = Later<'a, Result<T, StoreError>>;

/// An error of the store. One variant for each thing that the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written: try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The write may or may not have happened: load the run to find out.
    #[error("it is unknown whether the store wrote: {0}")]
    Unknown(String),
    /// The stored data cannot be read: do not touch this run.
    #[error("the stored data cannot be read: {0}")]
    Corrupt(String),
}

/// The journal and everything that must change together with it.
pub trait Store: Ledger + Slots + Lineage + Feed + Deliveries + Inspect {
    /// Appends one frame to a run's journal. Appends that wait together share a
    /// transaction; each completes on its own, after the commit. The append is shared
    /// because the caller keeps it until it is durable.
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended>;

    /// Loads the newest snapshot and every frame after it, without stream deltas; `None` if
    /// the run does not exist. A frame that is not authentic makes the run unreadable; a
    /// snapshot that is not authentic is skipped.
    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>>;

    /// Reads the frames that hold events after `after`, with their stream deltas, oldest
    /// first: about `bytes_max` bytes, but at least one frame if there is one. A frame that
    /// is not authentic makes the run unreadable.
    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>>;

    /// Like [`Store::frames`], but also returns frames that are not authentic, for the
    /// verifier. A store without durable data returns authentic frames only.
    fn examine(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Examined>> {
        Box::pin(async move {
            let frames = self.frames(run, after, bytes_max).await?.into_iter();
            Ok(frames.map(|frame| Examined { frame, is_authentic: true }).collect())
        })
    }

    /// Reads the blob with this hash.
    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>>;

    /// Puts a message into a run's mailbox. A run without an owner becomes due at once.
    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted>;

    /// Reads unread messages, oldest first, of one run or of all runs that a node owns.
    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>>;

    /// Extends the node's lease to `ttl_ms` from now, by the store's clock.
    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()>;

    /// Ends the node's lease at once, so that other nodes can claim its runs.
    fn leave(&self, node: NodeId) -> Answer<'_, ()>;

    /// Claims up to `limit` runs for `node`: runs without an owner that are due by
    /// `due_by_ms`, and runs whose owner's lease has expired.
    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>>;

    /// Claims one run for `node`, due or not, unless another node with a valid lease owns
    /// it.
    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken>;

    /// Lists runs without reading their journals, newest first.
    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>>;

    /// Completes when another process may have changed something. May complete without a
    /// change; reports every change within `patience_ms`.
    fn changed(&self, patience_ms: u64) -> Later<'_, ()>;

    /// Checks whether there is space for more data, as far as the store can tell. A small
    /// write can succeed in space that is already allocated, so it is not enough as a test.
    fn room(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Counters of the store's writes. A store that does not count returns zeros.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }
}

/// Counters of a store's writes since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Committed transactions.
    pub commits: u64,
    /// Durable appends.
    pub appends: u64,
    /// Committed writes of any kind.
    pub writes: u64,
    /// Histogram of writes per transaction, with upper bounds 1, 2, 4, 8, …
    pub batches: [u64; BATCH_SIZES],
    /// Writes that wait for the next transaction.
    pub writes_waiting: usize,
}

/// Number of buckets of the histogram: the last holds up to 1024 writes.
pub const BATCH_SIZES: usize = 11;

/// A cluster node: a process that owns runs.
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
    /// The run to append to.
    pub run: RunId,
    /// The writing node, which must own the run.
    pub node: NodeId,
    /// The epoch under which `node` owns it; 1 for a run that is created.
    pub epoch: u64,
    /// The run's version that the writer has seen: the id of its last event. 0 for a new
    /// run.
    pub after: u64,
    /// Number of events in the frame. 0: no frame is written, only the rest of the append.
    pub count: u32,
    /// The events, encoded.
    pub body: Vec<u8>,
    /// Encoded stream deltas stored next to the frame; usually empty.
    pub beside: Vec<u8>,
    /// The hash of each event, 32 bytes each. Stays when payloads are erased.
    pub chain: Vec<u8>,
    /// Set on the first append of a run only.
    pub create: Option<Create>,
    /// The new row of the run in lists; `None` if nothing in it changed.
    pub head: Option<Head>,
    /// The encoded state after this append, if a snapshot is due.
    pub snapshot: Option<Vec<u8>>,
    /// Blobs that the frame refers to by hash. Each is stored once.
    pub blobs: Vec<Blob>,
    /// Messages of this run that this append has processed.
    pub read: Vec<ReadMessage>,
    /// Messages for other runs, posted with this append.
    pub messages: Vec<MailboxMessage>,
    /// Counters that this append changes. A guard that would pass its bound refuses the
    /// append.
    pub guards: Vec<Guard>,
    /// Audit entries, chained after the writer's last one.
    pub entries: Vec<Entry>,
    /// Provenance edges from other runs, if this append changes them.
    pub provenance_edges: Vec<ProvenanceEdge>,
    /// Outputs to remember, oldest first.
    pub remembered_outputs: Vec<RememberedOutput>,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The append is durable.
    Done {
        /// The new value of each guard's counter, in the order of the guards.
        counts: Vec<i64>,
    },
    /// The run has a newer version: load it and decide again.
    Conflict,
    /// Another node owns the run, or owned it in between: release it.
    NotOwner,
    /// A counter would pass its bound. Nothing was written.
    Refused {
        /// The first counter that would pass its bound.
        counter: String,
        /// Its current value.
        count: i64,
    },
    /// The run already exists, by its id or by an unexpired idempotency key. Nothing was
    /// written.
    Exists {
        /// The existing run.
        run: RunId,
        /// Whether it was started with the same inputs.
        same: bool,
    },
}

/// The list columns of a new run. The creating node owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version, if it has one.
    pub version: Option<u64>,
    /// The principal that started the run.
    pub initiator: String,
    /// The time of the start.
    pub started_at_ms: u64,
    /// The run whose step started this one.
    pub parent: Option<RunId>,
    /// The caller's idempotency key: until it expires, the same key means the same run.
    pub key: Option<Key>,
}

/// A caller's idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The stored key: the caller's key within its [scope](Key::scoped).
    pub key: String,
    /// The key as earlier versions of Sluice stored it, without the principal. Such a row
    /// matches only if the fingerprint is equal.
    pub former: Option<String>,
    /// Hash of all inputs of the start. The same key with another fingerprint is refused.
    pub fingerprint: Hash,
    /// When the key expires, by the store's clock.
    pub expires_at_ms: u64,
}

impl Key {
    /// Scopes a key to a principal, a workflow and its version, so that equal keys of two
    /// principals do not collide. Names and keys contain no control characters, so `\u{1f}`
    /// separates them.
    pub fn scoped(workflow: &str, version: Option<u64>, principal: &str, key: &str) -> String {
        Key::without_principal(workflow, version, &format!("{principal}\u{1f}{key}"))
    }

    /// The scope that earlier versions of Sluice used.
    pub fn without_principal(workflow: &str, version: Option<u64>, key: &str) -> String {
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        format!("{workflow}@{version}\u{1f}{key}")
    }
}

/// The columns of a run that lists show and that an append can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The run's status.
    pub status: RunStatus,
    /// The time of the end.
    pub ended_at_ms: Option<u64>,
    /// When the run next needs an owner. Read only while it has none.
    pub due_at_ms: Option<u64>,
    /// Whether the run waits for an approval.
    pub asks: bool,
    /// Whether the writer keeps the run after this append.
    pub ownership: Ownership,
}

/// Whether the writer still owns the run after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The writer keeps the run.
    Keep,
    /// The writer releases the run, which is parked or has ended.
    Release,
}

/// Bytes stored under their hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// SHA-256 of the body.
    pub hash: Hash,
    /// The bytes.
    pub body: Vec<u8>,
}

/// A change of a counter, and the bound that it must not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The counter's name. A counter that was never changed is 0.
    pub counter: CounterName,
    /// The amount to add.
    pub delta: i64,
    /// The upper bound of the counter after the addition.
    pub max: Option<i64>,
    /// Makes the counter a sliding sum over the last `window_ms` milliseconds, by the
    /// store's clock. The store keeps the sum in slices of a sixtieth of the window. A
    /// slice counts until it has left the window completely, so no window ever exceeds
    /// `max`.
    pub window_ms: Option<u64>,
}

/// A message for a run. The owner of the run applies it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxMessage {
    /// The receiving run.
    pub run: RunId,
    /// Deduplication key: a second message with the same key to the same run is dropped,
    /// even after the first was read.
    pub key: String,
    /// The message, encoded.
    pub body: Vec<u8>,
}

/// Position in the order of messages.
pub type MessageId = u64;

/// A message that a run has processed. Its body is deleted; its key stays, so that the same
/// message is not processed twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadMessage {
    /// The position of the message.
    pub id: MessageId,
    /// The deduplication key of the message.
    pub key: String,
}

/// A message in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The position of the message.
    pub id: MessageId,
    /// The message as it was posted.
    pub message: MailboxMessage,
    /// Whether a process with the store's key posted the message. Other messages are
    /// discarded.
    pub is_authentic: bool,
}

impl Received {
    /// What `Append::read` takes.
    pub fn as_read(&self) -> ReadMessage {
        ReadMessage { id: self.id, key: self.message.key.clone() }
    }
}

/// The result of posting a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// The message is in the mailbox.
    Done,
    /// A message with that key was posted before.
    Duplicate,
    /// The run does not exist.
    NoRun,
}

/// Which mailboxes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mailboxes {
    /// The mailbox of one run.
    Run(RunId),
    /// The mailboxes of all runs that this node owns.
    Owner(NodeId),
}

/// A claimed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The run that this node owns from now on.
    pub run: RunId,
    /// The epoch of the ownership.
    pub epoch: u64,
    /// The previous owner whose lease expired, if there was one.
    pub from: Option<NodeId>,
}

/// The result of claiming one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The caller owns the run now.
    Done(Claim),
    /// The caller already owned the run, under this epoch.
    Already(u64),
    /// Another node owns the run.
    Held(NodeId),
    /// The run does not exist.
    NoRun,
}

/// The stored data that a run's state is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The newest snapshot: its version, and the encoded state.
    pub snapshot: Option<(u64, Vec<u8>)>,
    /// Every frame after the snapshot, oldest first.
    pub frames: Vec<Frame>,
    /// Whether a snapshot was skipped because it is not authentic.
    pub has_foreign_snapshot: bool,
}

/// The events of one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The id of the first event.
    pub first: u64,
    /// The number of events.
    pub count: u32,
    /// The encoded events.
    pub body: Vec<u8>,
    /// Encoded stream deltas; empty if there are none, and always empty in [`Loaded`].
    pub beside: Vec<u8>,
    /// The hash of each event, 32 bytes each; empty for frames of versions without hashes.
    pub chain: Vec<u8>,
}

/// A frame, and whether it is authentic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The frame as it is stored.
    pub frame: Frame,
    /// Whether a process with the store's key wrote the frame at this position.
    pub is_authentic: bool,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only this run.
    pub run: Option<RunId>,
    /// Only runs with one of these statuses; all if empty.
    pub statuses: Vec<RunStatus>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs that this principal started: a person, a token or `schedule:…`.
    pub initiator: Option<String>,
    /// Only runs started at or after this time.
    pub since_ms: Option<u64>,
    /// Only runs started before this time.
    pub until_ms: Option<u64>,
    /// Only runs whose workflow or initiator contains this text, or whose id starts with
    /// it, with or without `run_`. ASCII messages match in either case.
    pub text: Option<String>,
    /// Only runs that wait for an approval, or may.
    pub asking: bool,
    /// Only children of this run.
    pub parent: Option<RunId>,
    /// Only runs older than this one, for the next page.
    pub before: Option<RunId>,
    /// Maximum number of rows, up to `limits::LIST_MAX`; 0 means `limits::LIST_DEFAULT`.
    pub limit: usize,
}

/// A run as it appears in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The id, unique over all organisations.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub version: Option<u64>,
    /// The principal that started the run; empty for runs of versions that did not store
    /// it.
    pub initiator: String,
    /// The status of the last head written.
    pub status: RunStatus,
    /// The time of the start.
    pub started_at_ms: u64,
    /// The time of the end.
    pub ended_at_ms: Option<u64>,
    /// The run whose step started this one.
    pub parent: Option<RunId>,
    /// The owner of the run, if its lease is valid.
    pub owner: Option<NodeId>,
    /// When the run next needs an owner.
    pub due_at_ms: Option<u64>,
}
