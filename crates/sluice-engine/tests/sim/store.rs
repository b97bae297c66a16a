//! A store that is slow, fails, loses answers, and crashes its node.

use crate::fault::Fault;
use crate::sabotage::{Sabotage, acknowledgement};
use crate::world::World;
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
    Ownership, Posted, Received, RunRow, Store, StoreError, Taken,
};
use sluice_store::memory::MemoryStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The store as one node sees it.
pub(crate) struct FaultyStore {
    inner: Arc<MemoryStore>,
    world: Arc<World>,
    process: usize,
    dead: CancellationToken,
    /// Until when lease renewals are lost.
    cut_until_ms: AtomicU64,
}

impl FaultyStore {
    pub(crate) fn new(
        inner: MemoryStore,
        world: Arc<World>,
        process: usize,
        dead: CancellationToken,
    ) -> FaultyStore {
        let inner = Arc::new(inner);
        FaultyStore { inner, world, process, dead, cut_until_ms: AtomicU64::new(0) }
    }

    /// Runs before every call: a dead node gets no answer.
    async fn ask(&self, slow: Fault) -> Result<(), StoreError> {
        if self.world.spins() {
            self.world.fails(format!("time goes on: process {} spins", self.process));
        }
        if self.dead.is_cancelled() || self.world.broken.is_cancelled() {
            return std::future::pending().await;
        }
        if self.world.strikes(slow) {
            self.pause(2500).await;
        }
        if self.world.strikes(Fault::Unavailable) {
            return Err(StoreError::Unavailable("scripted".to_owned()));
        }
        Ok(())
    }

    /// Runs after every write.
    async fn answer(&self) -> Result<(), StoreError> {
        if self.world.strikes(Fault::SlowAnswer) {
            self.pause(2500).await;
        }
        if self.world.strikes(Fault::UnknownWritten) {
            return Err(StoreError::Unknown("scripted, written".to_owned()));
        }
        Ok(())
    }

    async fn pause(&self, longest_ms: u64) {
        let pause_ms = self.world.chance().between(1, longest_ms);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }

    async fn crash(&self) -> ! {
        if !self.dead.is_cancelled() {
            self.dead.cancel();
            // The receiver is gone only when the seed is over.
            let _ = self.world.crashes.send(self.process);
        }
        std::future::pending().await
    }

    /// Notifies the other nodes.
    fn notify(&self) {
        for (process, notice) in self.world.notices.iter().enumerate() {
            if process != self.process && !self.world.strikes(Fault::NoticeLost) {
                notice.notify_one();
            }
        }
    }

    /// A read, with delays and faults.
    fn reading<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            call.await
        })
    }

    /// A write, with delays and faults.
    fn writing<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            let written = call.await?;
            self.answer().await?;
            Ok(written)
        })
    }

    /// Writes in the background, some time after the caller has its answer.
    fn write_later(&self, append: Arc<Append>) {
        let (inner, world) = (Arc::clone(&self.inner), Arc::clone(&self.world));
        let late_ms = world.chance().between(1, 3000);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(late_ms)).await;
            // The caller does not wait for this answer.
            drop(write(&inner, &world, append).await);
        });
    }

    fn owns(&self, run: RunId, epoch: u64) {
        self.world.journal().owned(run, epoch);
    }
}

/// Writes, and checks what was written.
async fn write(
    inner: &MemoryStore,
    world: &World,
    append: Arc<Append>,
) -> Result<Appended, StoreError> {
    let copy = Arc::clone(&append);
    let appended = inner.append(append).await?;
    match &appended {
        Appended::Done { counts } => {
            let now_ms = world.now_ms();
            let mut journal = world.journal();
            let checked = journal.appended(&copy, counts, now_ms, &mut world.tally());
            let tail = |what| format!("{what}\n{}", journal.tail(copy.run));
            world.holds(checked.map_err(tail));
        }
        Appended::Refused { counter, .. } => {
            let kind = counter.split(':').next().unwrap_or_default();
            world.tally().reach(format!("refused {kind}"));
        }
        _ => {}
    }
    Ok(appended)
}

impl Store for FaultyStore {
    fn append(&self, append: Arc<Append>) -> Answer<'_, Appended> {
        let append = self.world.sabotaged(append);
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            if self.world.strikes(Fault::CrashBeforeAppend) {
                self.crash().await;
            }
            if self.world.strikes(Fault::UnknownUnwritten) {
                return Err(StoreError::Unknown("scripted, not written".to_owned()));
            }
            if self.world.strikes(Fault::UnknownWrittenLate) {
                self.write_later(append);
                return Err(StoreError::Unknown("scripted, written later".to_owned()));
            }
            if self.world.sabotage == Some(Sabotage::DispatchBeforeLog) {
                let acknowledged = acknowledgement(&self.inner, &append).await;
                self.write_later(append);
                return acknowledged;
            }
            let matters = !append.messages.is_empty()
                || append.head.as_ref().is_some_and(|head| head.ownership == Ownership::Release);
            let appended = write(&self.inner, &self.world, append).await?;
            if matters {
                self.notify();
            }
            if self.world.strikes(Fault::CrashAfterAppend) {
                self.crash().await;
            }
            self.answer().await?;
            Ok(appended)
        })
    }

    fn load(&self, run: RunId) -> Answer<'_, Option<Loaded>> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            self.inner.load(run).await
        })
    }

    fn frames(&self, run: RunId, after: u64, bytes_max: usize) -> Answer<'_, Vec<Frame>> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            self.inner.frames(run, after, bytes_max).await
        })
    }

    fn blob(&self, hash: Hash) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            self.inner.blob(hash).await
        })
    }

    fn post(&self, message: MailboxMessage) -> Answer<'_, Posted> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            let posted = self.inner.post(message).await?;
            self.notify();
            self.answer().await?;
            Ok(posted)
        })
    }

    fn messages(&self, of: Mailboxes) -> Answer<'_, Vec<Received>> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            let messages = self.inner.messages(of).await?;
            self.world.journal().received(&messages);
            Ok(messages)
        })
    }

    fn renew(&self, node: NodeId, ttl_ms: u64) -> Answer<'_, ()> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            let now_ms = self.world.elapsed_ms();
            if self.world.strikes(Fault::LeaseLost) {
                self.cut_until_ms.store(now_ms + 2 * ttl_ms, Ordering::Relaxed);
            }
            if self.world.is_faulty() && now_ms < self.cut_until_ms.load(Ordering::Relaxed) {
                return Err(StoreError::Unavailable("scripted, the lease is lost".to_owned()));
            }
            self.inner.renew(node, ttl_ms).await
        })
    }

    fn leave(&self, node: NodeId) -> Answer<'_, ()> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            self.inner.leave(node).await
        })
    }

    fn claim(&self, node: NodeId, due_by_ms: u64, limit: usize) -> Answer<'_, Vec<Claim>> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            let claims = self.inner.claim(node, due_by_ms, limit).await?;
            for claim in &claims {
                self.owns(claim.run, claim.epoch);
            }
            if !claims.is_empty() {
                self.answer().await?;
            }
            Ok(claims)
        })
    }

    fn take(&self, run: RunId, node: NodeId) -> Answer<'_, Taken> {
        Box::pin(async move {
            self.ask(Fault::SlowWrite).await?;
            let taken = self.inner.take(run, node).await?;
            if let Taken::Done(claim) = taken {
                self.owns(claim.run, claim.epoch);
            }
            self.answer().await?;
            Ok(taken)
        })
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<RunRow>> {
        Box::pin(async move {
            self.ask(Fault::SlowRead).await?;
            self.inner.list(filter).await
        })
    }

    fn changed(&self, patience_ms: u64) -> Later<'_, ()> {
        Box::pin(async move {
            let patience = Duration::from_millis(patience_ms);
            let noticed = self.world.notices[self.process].notified();
            // The caller does not depend on whether one came.
            let _ = tokio::time::timeout(patience, noticed).await;
            let late_ms = self.world.chance().between(1, 40);
            tokio::time::sleep(Duration::from_millis(late_ms)).await;
        })
    }
}

impl Ledger for FaultyStore {
    fn counts(&self, counters: Vec<Counter>) -> Answer<'_, Vec<i64>> {
        self.reading(self.inner.counts(counters))
    }

    fn counters(&self, after: String, before: String, limit: usize) -> Answer<'_, Vec<Count>> {
        self.reading(self.inner.counters(after, before, limit))
    }

    fn registry(&self, at: Option<u64>) -> Answer<'_, Rows> {
        self.reading(self.inner.registry(at))
    }

    fn change(&self, change: Change) -> Answer<'_, Changed> {
        self.writing(self.inner.change(change))
    }

    fn record(&self, node: NodeId, entries: Vec<Entry>) -> Answer<'_, ()> {
        self.writing(self.inner.record(node, entries))
    }

    fn entries(&self, after: u64, limit: usize) -> Answer<'_, Vec<Recorded>> {
        self.reading(self.inner.entries(after, limit))
    }

    fn unsealed(&self, limit: usize) -> Answer<'_, Unsealed> {
        self.reading(self.inner.unsealed(limit))
    }

    fn seal(&self, seal: Sealing) -> Answer<'_, Sealed> {
        self.writing(self.inner.seal(seal))
    }

    fn seals(&self, from: u64, limit: usize) -> Answer<'_, Vec<SealRow>> {
        self.reading(self.inner.seals(from, limit))
    }

    fn remembered_outputs(&self, agents: Vec<String>) -> Answer<'_, Vec<RememberedOutput>> {
        self.reading(self.inner.remembered_outputs(agents))
    }

    fn erase(&self, erasure: Erasure) -> Answer<'_, Erased> {
        self.writing(self.inner.erase(erasure))
    }
}

impl Slots for FaultyStore {
    fn slots(
        &self,
        schedule: String,
        before_ms: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Slot>> {
        self.reading(self.inner.slots(schedule, before_ms, limit))
    }

    fn mark(&self, marks: Vec<Mark>) -> Answer<'_, Vec<bool>> {
        self.writing(self.inner.mark(marks))
    }
}

impl Deliveries for FaultyStore {
    fn delivering(&self, webhook: String) -> Answer<'_, Delivering> {
        self.reading(self.inner.delivering(webhook))
    }

    fn deliver(&self, ahead: Ahead) -> Answer<'_, bool> {
        self.writing(self.inner.deliver(ahead))
    }

    fn take_due(
        &self,
        webhook: String,
        by_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.writing(self.inner.take_due(webhook, by_ms, until_ms, limit))
    }

    fn delivered(&self, done: Vec<Delivery>) -> Answer<'_, ()> {
        self.writing(self.inner.delivered(done))
    }

    fn deliveries(
        &self,
        webhook: String,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<'_, Vec<Delivery>> {
        self.reading(self.inner.deliveries(webhook, before, limit))
    }

    fn forget_deliveries(&self, webhook: String) -> Answer<'_, ()> {
        self.writing(self.inner.forget_deliveries(webhook))
    }
}

impl Lineage for FaultyStore {
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>> {
        self.reading(self.inner.consumers(run, after, limit))
    }

    fn taken(&self, run: RunId) -> Answer<'_, u64> {
        self.reading(self.inner.taken(run))
    }
}

impl Feed for FaultyStore {
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>> {
        self.reading(self.inner.feed(after, bytes_max))
    }

    fn feed_end(&self) -> Answer<'_, u64> {
        self.reading(self.inner.feed_end())
    }
}

impl Inspect for FaultyStore {
    fn inspect(&self, each: Each) -> Answer<'_, ()> {
        self.reading(self.inner.inspect(each))
    }
}
