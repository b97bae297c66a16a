//! A store that can refuse writes or reads, withhold its answers, and watch a counter
//! after every append.

use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::deliveries::{Ahead, Deliveries, Delivering, Delivery};
use sluice_core::port::feed::{Feed, Placed};
use sluice_core::port::inspect::{Each, Inspect};
use sluice_core::port::ledger::{
    Change, Changed, Count, Counter, Entry, Erased, Erasure, Ledger, Recorded, Rows, SealRow,
    Sealed, Sealing, Unsealed,
};
use sluice_core::port::lineage::{Consumer, Lineage};
use sluice_core::port::remembered_output::RememberedOutput;
use sluice_core::port::slots::{Mark, Slot, Slots};
use sluice_core::port::store::{
    Answer, Append, Appended, Claim, Filter, Frame, Loaded, MailboxMessage, Mailboxes, NodeId,
    Posted, Received, RunRow, Store, StoreError, Taken,
};
use sluice_govern::account;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Forwards every operation that is not closed.
pub(crate) struct Gate {
    store: Arc<dyn Store>,
    closed: Mutex<Option<(StoreOperation, String)>>,
    trap: Mutex<Option<Trap>>,
    /// A counter, and its maximum after any append.
    watched: Mutex<Option<(String, i64)>>,
    /// Whether a sweep has reached its claims.
    swept: AtomicBool,
}

/// What happens at the next append of a kind.
enum Trap {
    /// It is written, but never answered.
    Mute(fn(&Append) -> bool),
    /// The registry is changed first.
    Change(fn(&Append) -> bool, Box<Change>),
}

/// A kind of store operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreOperation {
    /// Reads of journals and blobs.
    Read,
    /// All writes.
    Write,
    /// Reads of the registry.
    Rules,
}

/// Whether an append depends on the rows: it starts a run or dispatches a step.
pub(crate) fn dispatches(append: &Append) -> bool {
    append.guards.iter().any(|guard| guard.counter == account::REGISTRY)
}

/// Whether an append settles a cost.
pub(crate) fn settles(append: &Append) -> bool {
    append.guards.iter().any(|guard| guard.counter.starts_with("spent:"))
}

impl Gate {
    pub(crate) fn new(store: Arc<dyn Store>) -> Gate {
        Gate {
            store,
            closed: Mutex::default(),
            trap: Mutex::default(),
            watched: Mutex::default(),
            swept: AtomicBool::new(false),
        }
    }

    /// Whether a sweep has read the registry, which comes before its claims.
    pub(crate) fn is_swept(&self) -> bool {
        self.swept.load(Ordering::Relaxed)
    }

    /// The next matching append is written, but never answered.
    pub(crate) fn mute(&self, which: fn(&Append) -> bool) {
        *self.trap.lock().expect("the lock is not poisoned") = Some(Trap::Mute(which));
    }

    /// Whether the trap was triggered.
    pub(crate) fn is_sprung(&self) -> bool {
        self.trap.lock().expect("the lock is not poisoned").is_none()
    }

    /// Changes rows just before the next append that dispatches a step.
    pub(crate) fn change_before_dispatch(&self, change: Change) {
        self.change_before(dispatches, change);
    }

    /// Changes rows just before the next matching append.
    pub(crate) fn change_before(&self, which: fn(&Append) -> bool, change: Change) {
        let trap = Trap::Change(which, Box::new(change));
        *self.trap.lock().expect("the lock is not poisoned") = Some(trap);
    }

    /// Watches a counter after every append.
    pub(crate) fn watch(&self, counter: &str) {
        let watched = Some((counter.to_owned(), 0));
        *self.watched.lock().expect("the lock is not poisoned") = watched;
    }

    /// The maximum of the watched counter.
    pub(crate) fn most(&self) -> i64 {
        let watched = self.watched.lock().expect("the lock is not poisoned");
        watched.as_ref().map_or(0, |(_, most)| *most)
    }

    fn sprung(&self, append: &Append) -> Option<Trap> {
        let mut trap = self.trap.lock().expect("the lock is not poisoned");
        let springs = match &*trap {
            Some(Trap::Mute(which) | Trap::Change(which, _)) => which(append),
            None => false,
        };
        if springs { trap.take() } else { None }
    }

    async fn append(&self, append: Arc<Append>) -> Result<Appended, StoreError> {
        let trap = self.sprung(&append);
        if let Some(Trap::Change(_, change)) = trap {
            self.store.change(*change).await?;
            return self.store.append(append).await;
        }
        let appended = self.store.append(Arc::clone(&append)).await?;
        if let (Appended::Done { counts }, Some((counter, most))) =
            (&appended, self.watched.lock().expect("the lock is not poisoned").as_mut())
        {
            for (guard, count) in append.guards.iter().zip(counts) {
                if guard.counter == **counter {
                    *most = (*most).max(*count);
                }
            }
        }
        if trap.is_some() {
            return std::future::pending().await;
        }
        Ok(appended)
    }

    pub(crate) fn close(&self, operation: StoreOperation, reason: &str) {
        let mut closed = self.closed.lock().expect("the lock is not poisoned");
        *closed = Some((operation, reason.to_owned()));
    }

    pub(crate) fn open(&self) {
        *self.closed.lock().expect("the lock is not poisoned") = None;
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        operation: StoreOperation,
        ask: impl FnOnce() -> Answer<'a, T>,
    ) -> Answer<'a, T> {
        let closed = self.closed.lock().expect("the lock is not poisoned").clone();
        match closed {
            Some((closed, reason)) if closed == operation => {
                Box::pin(ready(Err(StoreError::Unavailable(reason))))
            }
            _ => ask(),
        }
    }
}

impl Store for Gate {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        self.pass(StoreOperation::Write, || Box::pin(self.append(append)))
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        self.pass(StoreOperation::Read, || self.store.load(run))
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        self.pass(StoreOperation::Read, || self.store.frames(run, after, bytes_max))
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        self.pass(StoreOperation::Read, || self.store.blob(hash))
    }

    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted> {
        self.pass(StoreOperation::Write, || self.store.post(message))
    }

    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>> {
        self.store.messages(of)
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        self.pass(StoreOperation::Write, || self.store.renew(node, ttl_ms))
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        self.pass(StoreOperation::Write, || self.store.leave(node))
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        self.swept.store(true, Ordering::Relaxed);
        self.pass(StoreOperation::Write, || self.store.claim(node, due_by_ms, limit))
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        self.pass(StoreOperation::Write, || self.store.take(run, node))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        self.store.list(filter)
    }

    fn changed(&self, patience_ms: u64) -> Later<'_, ()> {
        self.store.changed(patience_ms)
    }
}

impl Ledger for Gate {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        self.pass(StoreOperation::Read, || self.store.counts(counters))
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        self.pass(StoreOperation::Read, || self.store.counters(after, before, limit))
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        self.pass(StoreOperation::Rules, || self.store.registry(at))
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        self.pass(StoreOperation::Write, || self.store.change(change))
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        self.pass(StoreOperation::Write, || self.store.record(node, entries))
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        self.pass(StoreOperation::Read, || self.store.entries(after, limit))
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        self.pass(StoreOperation::Read, || self.store.unsealed(limit))
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        self.pass(StoreOperation::Write, || self.store.seal(seal))
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        self.pass(StoreOperation::Read, || self.store.seals(from, limit))
    }

    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>> {
        self.pass(StoreOperation::Read, || self.store.remembered_outputs(agents))
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        self.pass(StoreOperation::Write, || self.store.erase(erasure))
    }
}

impl Slots for Gate {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        self.pass(StoreOperation::Read, || self.store.slots(schedule, before_ms, limit))
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        self.pass(StoreOperation::Write, || self.store.mark(marks))
    }
}

impl Deliveries for Gate {
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering> {
        self.pass(StoreOperation::Read, || self.store.delivering(webhook))
    }

    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool> {
        self.pass(StoreOperation::Write, || self.store.deliver(ahead))
    }

    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.pass(StoreOperation::Write, || self.store.take_due(webhook, by_ms, until_ms, limit))
    }

    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()> {
        self.pass(StoreOperation::Write, || self.store.delivered(done))
    }

    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.pass(StoreOperation::Read, || self.store.deliveries(webhook, before, limit))
    }

    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()> {
        self.pass(StoreOperation::Write, || self.store.forget_deliveries(webhook))
    }
}

impl Lineage for Gate {
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>> {
        self.pass(StoreOperation::Read, || self.store.consumers(run, after, limit))
    }

    fn taken(&self, run: RunId) -> Answer<'_, u64> {
        self.pass(StoreOperation::Read, || self.store.taken(run))
    }
}

impl Feed for Gate {
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>> {
        self.pass(StoreOperation::Read, || self.store.feed(after, bytes_max))
    }

    fn feed_end(&self) -> Answer<'_, u64> {
        self.pass(StoreOperation::Read, || self.store.feed_end())
    }
}

impl Inspect for Gate {
    fn inspect(&self, each: Each) -> Answer<'_, ()> {
        self.pass(StoreOperation::Read, || self.store.inspect(each))
    }
}
