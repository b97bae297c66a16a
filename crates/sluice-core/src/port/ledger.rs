//! What a store keeps besides journals: counters, the registry and the evidence.
//!
//! The store commits them in the same transactions as journals. It does not interpret them:
//! governance and evidence give rows and entries their meaning.

use super::remembered_output::RememberedOutput;
use super::store::{Answer, NodeId};
use crate::hash::Hash;
use crate::id::RunId;
use serde_json::Value;
use sluice_govern::registry::Row;

/// Counters, registry rows, audit entries and seals.
pub trait Ledger: Send + Sync {
    /// Reads counters; a counter that was never changed is 0.
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>>;

    /// Lists plain counters that are not 0, by name, between `after` and `before` (both
    /// exclusive). Returns at most `limit`: the next page starts after the last name.
    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>>;

    /// Reads the registry as it is, or as it was at an earlier epoch, by kind, then name.
    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows>;

    /// Changes rows, all or nothing. Each change starts an epoch and adds 1 to the counter
    /// `registry`.
    fn change(&self, change: Change) -> Answer<'_, Changed>;

    /// Appends audit entries to the writer's chain.
    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()>;

    /// Reads audit entries after a position, in the order in which they were written.
    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>>;

    /// Reads what no seal covers yet, up to about `limit` run heads.
    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed>;

    /// Appends a seal after the newest one.
    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed>;

    /// Reads seals from number `from` on, oldest first.
    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>>;

    /// Reads the remembered outputs of agents, in the order of `agents`, newest first. A
    /// store keeps a limited number for each agent.
    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>>;

    /// Replaces frame bodies of a run by bodies without some payloads. The hashes stay. The
    /// run's snapshots, unused blobs and remembered outputs are deleted.
    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased>;
}

/// A counter to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The counter's name.
    pub name: String,
    /// Length of the window, for a sliding sum.
    pub window_ms: Option<u64>,
}

impl Counter {
    /// A counter without a window.
    pub fn plain(name: impl Into<String>) -> Counter {
        Counter { name: name.into(), window_ms: None }
    }
}

/// A counter and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The counter's name.
    pub name: String,
    /// The current value.
    pub count: i64,
}

/// Why no row of a registry is used that another process rolled back.
pub const ROLLED_BACK: &str =
    "the newest registry rows in the store are not those that were last written";

/// The rows of the registry at one epoch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The number of changes that led to these rows.
    pub epoch: u64,
    /// The newest version of every row that was not removed.
    pub rows: Vec<Row>,
    /// Kind and name of rows whose newest version is not authentic: no process with the
    /// store's key wrote it. They are not in `rows`.
    pub foreign: Vec<(String, String)>,
    /// Whether a version was deleted or put back by another process. Then every row is in
    /// `foreign`, because any of them may be an old one.
    pub is_rolled_back: bool,
}

/// A change of registry rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The epoch on which the change is based. The store refuses it if another change came
    /// since.
    pub expect: Option<u64>,
    /// Rows to write.
    pub put: Vec<Row>,
    /// Rows to remove: kind and name.
    pub remove: Vec<(sluice_govern::registry::Kind, String)>,
    /// The writing node.
    pub node: NodeId,
    /// Audit entries about the change.
    pub entries: Vec<Entry>,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The change is durable.
    Done {
        /// The epoch that the change started.
        epoch: u64,
    },
    /// Another change came first. Nothing was written.
    Stale {
        /// The current epoch.
        epoch: u64,
    },
}

/// An audit entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Time of the event.
    pub at_ms: u64,
    /// `governance`, `execution`, `lifecycle`, `security`, `configuration`,
    /// `deploy` or `routing`.
    pub category: &'static str,
    /// The fact: `agent_changed`, `safety_gate_rejected`, …
    pub what: String,
    /// The principal or component that acted.
    pub actor: String,
    /// The type of the resource that it concerns.
    pub resource_type: String,
    /// The id or name of that resource.
    pub resource_id: String,
    /// The journalled event it refers to, if it is a fact about a run.
    pub event: Option<EventRef>,
    /// More facts, as JSON.
    pub detail: Value,
}

/// A reference to a journalled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRef {
    /// The run that journalled the event.
    pub run: RunId,
    /// The event's id.
    pub event: u64,
    /// The event's hash.
    pub hash: Hash,
}

/// An audit entry as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its position in the store's order.
    pub place: u64,
    /// The writer whose chain it is in.
    pub writer: NodeId,
    /// Its number in that chain, from 1.
    pub seq: u64,
    /// The exact text: canonical JSON.
    pub text: String,
    /// The hash of the text and of the entry before.
    pub hash: Hash,
    /// Whether a process with the store's key wrote it. Other entries prove nothing.
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
    /// The position at which the next seal starts.
    pub upto: SealMark,
}

/// How far in the store's order the seals reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SealMark {
    /// Position of the last sealed frame.
    pub frames: u64,
    /// Position of the last sealed entry.
    pub entries: u64,
}

/// A new seal.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealing {
    /// Its number, from 1. Refused unless it is the next number.
    pub number: u64,
    /// Canonical JSON: what the seal covers, and the signature.
    pub text: String,
    /// The encoded leaves that the root was computed from.
    pub leaves: Vec<u8>,
    /// The hash of the text.
    pub hash: Hash,
    /// The position at which the next seal starts.
    pub upto: SealMark,
}

/// The result of adding a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// The seal is durable.
    Done,
    /// Another process sealed first. Nothing was written.
    Stale,
}

/// A seal as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealRow {
    /// The seal's number, from 1.
    pub number: u64,
    /// Canonical JSON: what the seal covers, and the signature.
    pub text: String,
    /// The encoded leaves.
    pub leaves: Vec<u8>,
}

/// Payloads to erase.
#[derive(Debug, Clone, PartialEq)]
pub struct Erasure {
    /// The run whose payloads are erased.
    pub run: RunId,
    /// The remaining bodies of frames, by first event.
    pub bodies: Vec<(u64, Vec<u8>)>,
    /// The remaining stream deltas of frames that have any, by first event.
    pub besides: Vec<(u64, Vec<u8>)>,
    /// Blobs to delete. The caller has checked that no other run refers to them.
    pub blobs: Vec<Hash>,
    /// The writing node.
    pub node: NodeId,
    /// Audit entries about the erasure.
    pub entries: Vec<Entry>,
}

/// The result of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// The erasure is durable.
    Done,
    /// The run or a frame does not exist. Nothing was written.
    NoFrame,
}
