//! Everything a store holds at one moment, row by row, for a verification.
//!
//! Journals are read run by run through the other ports. Inspection returns the rest: rows that
//! decide something without being events, and positions. A store reports what it holds and
//! checks only what no other component can see: whether a row has the MAC of the store's key,
//! and whether its own structure is intact.

use super::ledger::{Recorded, SealMark, SealRow};
use super::slots::Slot;
use super::store::{Answer, NodeId};
use crate::hash::Hash;
use crate::id::RunId;

/// A store that can list all of its rows.
pub trait Inspect: Send + Sync {
    /// Passes every row of one consistent snapshot to `each`, in the order of [`Stored`]. A
    /// row that cannot be read is reported as [`Stored::Damaged`], and the rows after it
    /// follow.
    fn inspect(&self, each: Each) -> Answer<'_, ()>;
}

/// Receives the rows, one after the other.
pub type Each = Box<dyn FnMut(Stored) + Send>;

/// A row of a store.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A part of the schema that is not as Sluice made it. It may change rows in Sluice's own
    /// transactions, as a trigger does.
    Schema {
        /// The kind and name of the object, such as `trigger audit on frame`.
        object: String,
        /// How it differs from the schema of this version.
        difference: SchemaDifference,
    },
    /// A seal, from the first on.
    Seal {
        /// The signed seal as stored.
        row: SealRow,
        /// The stored hash of the seal.
        hash: Hash,
        /// How far the seals reach.
        upto: SealMark,
    },
    /// An audit entry, in the order of positions.
    Entry(Recorded),
    /// A version of a registry row, by kind, name and epoch.
    Version(RowVersion),
    /// The stored end of a writer's chain of entries.
    ChainEnd {
        /// The node that wrote the entries.
        writer: NodeId,
        /// The number of its last entry.
        seq: u64,
        /// That entry's hash.
        hash: Hash,
    },
    /// A caller's idempotency key.
    Key {
        /// The stored key.
        key: String,
        /// The run that was started with the key.
        run: RunId,
        /// Hash of the inputs of that start.
        fingerprint: Hash,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// A schedule slot.
    Slot {
        /// The slot as stored.
        slot: Slot,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// A remembered output, by agent and position.
    RememberedOutput {
        /// The agent that may recall it.
        agent: String,
        /// Its position in the order of remembered outputs.
        place: u64,
        /// The run it comes from.
        run: RunId,
        /// When it was produced.
        at_ms: u64,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// A message to a run.
    Message {
        /// The receiving run.
        run: RunId,
        /// The deduplication key.
        key: String,
        /// Its position in the order of messages.
        id: u64,
        /// Whether it was read.
        is_read: bool,
        /// Whether a process with the store's key posted it, and read it if it was
        /// read.
        is_authentic: bool,
    },
    /// A counter without a window.
    Count {
        /// The counter's name.
        name: String,
        /// The current value.
        count: i64,
    },
    /// The number of values that a run consumed from another run.
    ProvenanceEdge {
        /// The run that the values come from.
        source: RunId,
        /// The run that consumed them.
        consumer: RunId,
        /// The number of values.
        count: u64,
    },
    /// A blob whose body does not match its hash. Intact blobs are not reported.
    ForeignBlob(Hash),
    /// A snapshot that is not authentic. Authentic ones are not reported.
    ForeignSnapshot(RunId),
    /// The position of a frame.
    Frame(FrameAt),
    /// The last positions that the store assigned, if it records them.
    Positions {
        /// Last position of frames.
        frames: u64,
        /// Last position of entries.
        entries: u64,
        /// Last position of messages.
        messages: u64,
        /// Last position of remembered outputs.
        remembered_outputs: u64,
    },
    /// The list columns of a run, by id.
    Run(StoredRun),
    /// A part of the store that is damaged or cannot be read.
    Damaged {
        /// The name of the damaged table.
        table: &'static str,
        /// The row, or the last readable row before it.
        key: String,
        /// What is damaged.
        detail: String,
    },
}

/// How an object of a schema differs from what Sluice made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaDifference {
    /// Sluice has no such object.
    Added,
    /// The object has another definition.
    Changed,
    /// The object is missing.
    Missing,
}

/// A version of a registry row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowVersion {
    /// The kind of row.
    pub kind: String,
    /// The name of the row.
    pub name: String,
    /// The epoch of the change that wrote it.
    pub epoch: u64,
    /// The body as JSON; `None` if the change removed the row.
    pub body: Option<String>,
    /// Whether a process with the store's key wrote it.
    pub is_authentic: bool,
}

/// The position of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAt {
    /// Its position in the order of appends over all runs.
    pub place: u64,
    /// The run whose journal contains the frame.
    pub run: RunId,
    /// The id of its first event.
    pub first: u64,
    /// The number of events in it.
    pub count: u32,
}

/// The list columns of a run, which claims use as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The id, which the journal's frames refer to.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub workflow_version: Option<u64>,
    /// The principal that started it; empty if it was not stored.
    pub initiator: String,
    /// The stored word; a damaged store may contain an unknown one.
    pub status: String,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// Hash of the inputs of the start, if the start had an idempotency key.
    pub fingerprint: Option<Hash>,
    /// Whether a node owns it.
    pub is_owned: bool,
    /// When it next needs an owner.
    pub due_at_ms: Option<u64>,
    /// Whether it waits for an approval.
    pub asks: bool,
    /// The id of the last event in its journal.
    pub version: u64,
}
