//! A store in memory, for tests and the simulator.
//!
//! Every method completes at its first poll, and the same calls in the same order give
//! the same results: there is one lock, ordered maps and no clock of its own. Several
//! handles on one store simulate several processes.

mod append;
mod claim;
mod count;
mod deliver;
mod feed;
mod ledger;
mod read;
mod seal;
mod stored;
mod trigger;

use crate::window::Window;
use serde_json::Value;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::ledger::{Recorded, Sealing};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::{
    Answer, Append, Appended, Claim, Filter, Frame, Loaded, MailboxMessage, Mailboxes, MessageId,
    NodeId, Posted, Received, RunRow, Store, Taken,
};
use sluice_core::port::{Clock, Later};
use sluice_core::status::RunStatus;
use sluice_govern::registry::Kind;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The active safeguards: all of them, except in the simulator, which disables them one
/// by one to show that each is needed and that its checkers notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Refuses an append at a stale version. Without it the store keeps the frame at
    /// the ids that the writer claims, so readers see ids twice.
    pub version: bool,
    /// Lets only the owner append, under its epoch.
    pub epoch: bool,
    /// Drops a second message, or a second run, with the same key.
    pub dedupe: bool,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks { version: true, epoch: true, dedupe: true }
    }
}

/// Journals in memory. This is a handle: `beside` returns another one on the same
/// journals.
pub struct MemoryStore {
    shared: Arc<Shared>,
    /// Changes made through this handle.
    own: AtomicU64,
    /// Changes by other handles that `changed` has already reported.
    reported: AtomicU64,
}

struct Shared {
    clock: Arc<dyn Clock>,
    checks: Checks,
    state: Mutex<MemoryState>,
    /// Changes made through all handles.
    changes: watch::Sender<u64>,
}

/// Everything that is stored.
#[derive(Default)]
struct MemoryState {
    runs: BTreeMap<RunId, Record>,
    blobs: BTreeMap<Hash, Vec<u8>>,
    /// Unread messages.
    messages: BTreeMap<MessageId, MailboxMessage>,
    letters_posted: u64,
    /// All messages ever posted, by key.
    letter_keys: BTreeMap<(RunId, String), MessageId>,
    counters: BTreeMap<String, i64>,
    /// Counters over windows, by name and length.
    windows: BTreeMap<(String, u64), Window>,
    /// All versions of each row by epoch; `None` marks a removal.
    registry: BTreeMap<(Kind, String), BTreeMap<u64, Option<Value>>>,
    entries: Vec<Recorded>,
    /// Last sequence number and hash of each writer's entry chain.
    chains: BTreeMap<NodeId, (u64, Hash)>,
    seals: Vec<Sealing>,
    /// All frames, in append order.
    order: Vec<Ordered>,
    keys: BTreeMap<String, KeyRow>,
    /// Schedule slots, by schedule and time.
    slots: BTreeMap<(String, u64), Slot>,
    /// Deliveries, by webhook.
    webhooks: BTreeMap<String, deliver::WebhookState>,
    /// Provenance edges: number of values by source run, then consumer run.
    edges: BTreeMap<(RunId, RunId), u64>,
    /// Remembered outputs by agent, newest first, each with its number across all
    /// agents.
    remembered_outputs: BTreeMap<String, VecDeque<(u64, RememberedOutput)>>,
    remembered_outputs_kept: u64,
    /// Lease expiry by node.
    leases: BTreeMap<NodeId, u64>,
}

/// A frame in append order.
struct Ordered {
    run: RunId,
    /// Index among the frames of its run.
    frame: usize,
    /// The run's version after this frame.
    version: u64,
    /// Hash of the last event.
    hash: Option<Hash>,
}

struct KeyRow {
    run: RunId,
    fingerprint: Hash,
    expires_at_ms: u64,
}

struct Record {
    workflow: String,
    workflow_version: Option<u64>,
    initiator: String,
    started_at_ms: u64,
    parent: Option<RunId>,
    fingerprint: Option<Hash>,
    status: RunStatus,
    ended_at_ms: Option<u64>,
    due_at_ms: Option<u64>,
    asks: bool,
    owner: Option<NodeId>,
    epoch: u64,
    version: u64,
    frames: Vec<Frame>,
    snapshot: Option<(u64, Vec<u8>)>,
}

impl MemoryStore {
    /// An empty store with every safeguard.
    pub fn new(clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore::with_checks(clock, Checks::default())
    }

    /// An empty store with some of the safeguards.
    pub fn with_checks(clock: Arc<dyn Clock>, checks: Checks) -> MemoryStore {
        let state = Mutex::new(MemoryState::default());
        let changes = watch::Sender::new(0);
        MemoryStore::handle(Arc::new(Shared { clock, checks, state, changes }))
    }

    /// Another handle on the same journals, as another process would have: a write
    /// through one handle completes `changed` on the others.
    pub fn beside(&self) -> MemoryStore {
        MemoryStore::handle(Arc::clone(&self.shared))
    }

    fn handle(shared: Arc<Shared>) -> MemoryStore {
        let made = *shared.changes.borrow();
        MemoryStore { shared, own: AtomicU64::new(0), reported: AtomicU64::new(made) }
    }

    fn read<T>(&self, read: impl FnOnce(&MemoryState, u64) -> T) -> T {
        let now_ms = self.shared.clock.now_ms();
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        read(&state, now_ms)
    }

    fn write<T>(&self, write: impl FnOnce(&mut MemoryState, u64) -> T) -> T {
        let now_ms = self.shared.clock.now_ms();
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = write(&mut state, now_ms);
        self.own.fetch_add(1, Ordering::SeqCst);
        self.shared.changes.send_modify(|made| *made += 1);
        answer
    }
}

impl MemoryState {
    fn is_live(&self, node: NodeId, now_ms: u64) -> bool {
        self.leases.get(&node).is_some_and(|ends_at_ms| *ends_at_ms > now_ms)
    }
}

impl Store for MemoryStore {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        crate::assert_sound(&append);
        let checks = self.shared.checks;
        let append = Arc::unwrap_or_clone(append);
        Box::pin(
            async move { Ok(self.write(|state, now_ms| state.append(checks, append, now_ms))) },
        )
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        Box::pin(async move { Ok(self.read(|state, _| state.load(run))) })
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        Box::pin(async move { Ok(self.read(|state, _| state.frames(run, after, bytes_max))) })
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move { Ok(self.read(|state, _| state.blobs.get(&hash).cloned())) })
    }

    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted> {
        let checks = self.shared.checks;
        Box::pin(async move { Ok(self.write(|state, now_ms| state.post(checks, message, now_ms))) })
    }

    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>> {
        Box::pin(async move { Ok(self.read(|state, _| state.unread(of))) })
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        Box::pin(async move {
            self.write(|state, now_ms| state.leases.insert(node, now_ms.saturating_add(ttl_ms)));
            Ok(())
        })
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        Box::pin(async move {
            self.write(|state, _| state.leases.remove(&node));
            Ok(())
        })
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        Box::pin(async move {
            Ok(self.write(|state, now_ms| state.claim(node, due_by_ms, limit, now_ms)))
        })
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        Box::pin(async move { Ok(self.write(|state, now_ms| state.take(run, node, now_ms))) })
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        Box::pin(async move { Ok(self.read(|state, now_ms| state.list(&filter, now_ms))) })
    }

    /// Completes at the next change through another handle. It ignores the patience,
    /// because this store cannot miss a change.
    fn changed(&self, _patience_ms: u64) -> Later<'_, ()> {
        Box::pin(async move {
            let reported = self.reported.load(Ordering::SeqCst);
            let mut changes = self.shared.changes.subscribe();
            loop {
                let made = *changes.borrow_and_update();
                // The handle counts its own change before the shared counter does, so
                // the difference is never too large.
                let by_others = made.saturating_sub(self.own.load(Ordering::SeqCst));
                if by_others > reported {
                    self.reported.fetch_max(by_others, Ordering::SeqCst);
                    return;
                }
                changes.changed().await.expect("the store holds the sender");
            }
        })
    }
}

#[cfg(test)]
mod tests;
