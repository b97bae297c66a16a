//! What lies beside the journals: counters, the registry, the evidence.
//!
//! The same store keeps it, in the same transactions. Like the journals it is
//! kept, not understood: what rows and entries mean is decided elsewhere.

use super::memo::Memo;
use super::store::{Answer, Hash, NodeId};
use crate::id::RunId;
use serde_json::Value;
use sluice_govern::registry::Row;

/// Counters, rows, entries and seals.
pub trait Ledger: Send + Sync {
    /// What counters are now; zero for one that was never changed.
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>>;

    /// Plain counters that are not zero and whose names lie between two, both left
    /// out, by name. Only so many at once: the next page begins after the last.
    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>>;

    /// The rows there are, or were at an earlier epoch. By kind, then name.
    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows>;

    /// Changes rows. All of it or nothing; each change is one epoch, and adds
    /// one to the counter `registry`.
    fn change(&self, change: Change) -> Answer<'_, Changed>;

    /// Adds entries to the audit, chained after the writer's last.
    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()>;

    /// Entries, in the order they were written: those after a place.
    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>>;

    /// What no seal covers yet, up to about `limit` run heads.
    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed>;

    /// Adds a seal after the newest.
    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed>;

    /// Seals from number `from` on, oldest first.
    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>>;

    /// What agents answered: agent by agent as asked, the newest first. Only so
    /// many of each are kept.
    fn memos(&self, agents: Vec<String>) -> Answer<'_, Vec<Memo>>;

    /// Puts bodies without some payloads in the place of frames of a run. The
    /// hashes stay as they are. Snapshots, unused blobs and memos of the run go too.
    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased>;
}

/// A counter to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// For a sum over a window: how long that is.
    pub window_ms: Option<u64>,
}

impl Counter {
    /// A plain one.
    pub fn plain(name: impl Into<String>) -> Counter {
        Counter { name: name.into(), window_ms: None }
    }
}

/// What a counter is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Its name.
    pub name: String,
    /// What it is now.
    pub count: i64,
}

/// The rows of the registry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// How many changes led to them.
    pub epoch: u64,
    /// The rows.
    pub rows: Vec<Row>,
    /// Kind and name of rows whose newest version is not authentic: no process with
    /// the store's key wrote it. They are not among the rows.
    pub foreign: Vec<(String, String)>,
}

/// A change of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The epoch it was decided under; refused if another change came since.
    pub expect: Option<u64>,
    /// Rows that are written.
    pub put: Vec<Row>,
    /// Rows that go: kind and name.
    pub remove: Vec<(sluice_govern::registry::Kind, String)>,
    /// Who writes.
    pub node: NodeId,
    /// What the audit says of it.
    pub entries: Vec<Entry>,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is durable.
    Done {
        /// The epoch that began with it.
        epoch: u64,
    },
    /// Another change came first. Nothing was written.
    Stale {
        /// The epoch there is.
        epoch: u64,
    },
}

/// Something for the audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// When.
    pub at_ms: u64,
    /// `governance`, `execution`, `lifecycle`, `security`, `configuration`,
    /// `deploy` or `routing`.
    pub category: &'static str,
    /// What happened: `agent_changed`, `safety_gate_rejected`, …
    pub what: String,
    /// Who did it.
    pub actor: String,
    /// What sort of thing it happened to.
    pub resource_type: String,
    /// Which one.
    pub resource_id: String,
    /// The event it refers to, where it is a fact of a run.
    pub event: Option<EventRef>,
    /// Everything else.
    pub detail: Value,
}

/// A place in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRef {
    /// The run.
    pub run: RunId,
    /// The event's id.
    pub event: u64,
    /// Its hash.
    pub hash: Hash,
}

/// An entry as it stands in the audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place in the store's order.
    pub place: u64,
    /// The writer whose chain it is in.
    pub writer: NodeId,
    /// Its number in that chain, from 1.
    pub seq: u64,
    /// What was written, exactly: canonical JSON.
    pub text: String,
    /// The hash of it and of the entry before.
    pub hash: Hash,
    /// Whether a process with the store's key wrote it. One that is not is no fact.
    pub is_authentic: bool,
}

/// What no seal covers yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unsealed {
    /// The newest seal: its number and its own hash.
    pub last: Option<(u64, Hash)>,
    /// Runs that changed since: run, version, hash of its last event. By run.
    pub heads: Vec<(RunId, u64, Hash)>,
    /// Writers whose chains grew since: writer, last number, its hash. By writer.
    pub writers: Vec<(NodeId, u64, Hash)>,
    /// Where in the store's order the next seal goes on.
    pub upto: SealMark,
}

/// How far in the store's order a seal has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SealMark {
    /// Frames.
    pub frames: u64,
    /// Entries.
    pub entries: u64,
}

/// A seal to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealing {
    /// Its number, from 1. Refused unless it is the next.
    pub number: u64,
    /// What it covers and who signed it: canonical JSON.
    pub text: String,
    /// Its leaves, encoded: what the root was made from.
    pub leaves: Vec<u8>,
    /// The hash of the text.
    pub hash: Hash,
    /// Where the next one goes on.
    pub upto: SealMark,
}

/// What became of a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// It is durable.
    Done,
    /// Another process sealed first. Nothing was written.
    Stale,
}

/// A seal as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealRow {
    /// Its number.
    pub number: u64,
    /// What it covers and who signed it.
    pub text: String,
    /// Its leaves, encoded.
    pub leaves: Vec<u8>,
}

/// Payloads to be erased.
#[derive(Debug, Clone, PartialEq)]
pub struct Erasure {
    /// Of which run.
    pub run: RunId,
    /// Frames by their first event, with what is left of them.
    pub bodies: Vec<(u64, Vec<u8>)>,
    /// What is left beside frames that have something there, by their first event.
    pub besides: Vec<(u64, Vec<u8>)>,
    /// Blobs that go, unless another run refers to them by the same hash: the
    /// caller knows.
    pub blobs: Vec<Hash>,
    /// Who writes.
    pub node: NodeId,
    /// What the audit says of it.
    pub entries: Vec<Entry>,
}

/// What became of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// It is durable.
    Done,
    /// There is no such run, or no such frame. Nothing was written.
    NoFrame,
}
