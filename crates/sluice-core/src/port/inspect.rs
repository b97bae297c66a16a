//! Everything a store holds at one moment, row by row, for a verification.
//!
//! Journals are read run by run, as everything reads them. This is what lies
//! around them: what decides something without being an event, and where rows
//! are stored. A store reports what it holds and judges only what no other
//! component can see: whether a row carries the MAC of the store's key, and
//! whether its own structure is whole.

use super::ledger::{Recorded, SealMark, SealRow};
use super::slots::Slot;
use super::store::{Answer, Hash, NodeId};
use crate::id::RunId;

/// A store that shows everything it holds.
pub trait Inspect: Send + Sync {
    /// Hands over every row of one moment, in the order of [`Stored`]. What cannot be
    /// read is reported as [`Stored::Damaged`], and the rows after it follow.
    fn inspect(&self, each: Each) -> Answer<'_, ()>;
}

/// Takes the rows, one after the other.
pub type Each = Box<dyn FnMut(Stored) + Send>;

/// A row of a store.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A seal, from the first on.
    Seal {
        /// The seal.
        row: SealRow,
        /// Its own hash, as it is stored next to it.
        hash: Hash,
        /// How far it has come.
        upto: SealMark,
    },
    /// An audit entry, in the order of places.
    Entry(Recorded),
    /// A version of a registry row, by kind, name and epoch.
    Version(RowVersion),
    /// Where a writer's chain of entries is said to end.
    ChainEnd {
        /// The writer.
        writer: NodeId,
        /// The number of its last entry.
        seq: u64,
        /// That entry's hash.
        hash: Hash,
    },
    /// A caller's idempotency key.
    Key {
        /// What it is kept under.
        key: String,
        /// The run it stands for.
        run: RunId,
        /// Of what that run was started with.
        fingerprint: Hash,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// A schedule slot.
    Slot {
        /// The slot.
        slot: Slot,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// An output that an agent remembers, by agent and place.
    Memo {
        /// The agent.
        agent: String,
        /// Its place in the order of remembered outputs.
        place: u64,
        /// The run it is from.
        run: RunId,
        /// When it was given.
        at_ms: u64,
        /// Whether a process with the store's key wrote it.
        is_authentic: bool,
    },
    /// A message to a run.
    Message {
        /// The addressee.
        run: RunId,
        /// The sender's name for it.
        key: String,
        /// Its place in the order of messages.
        id: u64,
        /// Whether it was read.
        is_read: bool,
        /// Whether a process with the store's key posted it, or read it.
        is_authentic: bool,
    },
    /// A counter without a window.
    Count {
        /// Its name.
        name: String,
        /// What it is.
        count: i64,
    },
    /// How many values a run took from another one.
    Taking {
        /// The run they are from.
        source: RunId,
        /// The run that took them.
        taker: RunId,
        /// How many.
        count: u64,
    },
    /// A large value whose body does not have its hash. Others are not reported.
    ForeignBlob(Hash),
    /// A snapshot that is not authentic. Others are not reported.
    ForeignSnapshot(RunId),
    /// Where a frame is, by place.
    Frame(FrameAt),
    /// The last places that the store gave out, where it notes them.
    Positions {
        /// Of frames.
        frames: u64,
        /// Of entries.
        entries: u64,
        /// Of messages.
        messages: u64,
        /// Of remembered outputs.
        memos: u64,
    },
    /// A run as lists and claims see it, by id.
    Run(StoredRun),
    /// A part of the store that is not whole, or cannot be read.
    Damaged {
        /// The table.
        table: &'static str,
        /// The row, or the last one before it that could be read.
        key: String,
        /// What is wrong.
        detail: String,
    },
}

/// A version of a registry row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowVersion {
    /// The kind of row.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The change it came with.
    pub epoch: u64,
    /// Its body, JSON; none where the change removed the row.
    pub body: Option<String>,
    /// Whether a process with the store's key wrote it.
    pub is_authentic: bool,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAt {
    /// Its place in the order of appends over all runs.
    pub place: u64,
    /// The run.
    pub run: RunId,
    /// The id of its first event.
    pub first: u64,
    /// How many events it holds.
    pub count: u32,
}

/// A run as lists and claims see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// Its id.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub workflow_version: Option<u64>,
    /// Who started it; empty where it was not kept.
    pub initiator: String,
    /// Its status.
    pub status: String,
    /// When it was started.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// Of what it was started with, if a key came with it.
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
