//! What an engine does by itself: stay alive, look after runs nobody owns.

use crate::config::Claims;
use crate::engine::Inner;
use crate::mail::Mail;
use sluice_core::port::store::{Claim, Filter, Inbox, RunRow, StoreError, Taken};
use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// An epoch under which nobody owns a run.
const NOT_OURS: u64 = 0;
/// Most runs claimed at once.
const CLAIM_MAX: usize = 512;
/// Most runs the watchdog looks at in one go.
const WATCH_MAX: usize = 1000;

impl Inner {
    /// Starts what an engine does by itself.
    pub(crate) fn keep_working(self: &Arc<Self>) {
        self.spawn(Arc::clone(self).renew());
        self.spawn(Arc::clone(self).sweep());
        self.spawn(Arc::clone(self).take_pulses());
        if self.sealer.is_some() {
            self.spawn(Arc::clone(self).keep_sealing());
        }
    }

    /// Says again and again that this process lives.
    async fn renew(self: Arc<Self>) {
        let pause = Duration::from_millis(self.config.lease_ms / 3);
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(pause).await;
            if self.stop.is_cancelled() {
                return;
            }
            let asked = Instant::now();
            // Written also when nothing else is: whether the store takes writes.
            match self.store.renew(self.node, self.config.lease_ms).await {
                Ok(()) => {
                    if asked - renewed > Duration::from_millis(self.config.lease_ms) {
                        let engine = Arc::clone(&self);
                        self.spawn(async move { engine.look_at_own().await });
                    }
                    renewed = asked;
                    if !self.trust.is_refused() {
                        self.untroubled();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease could not be renewed");
                    self.troubled(&error.to_string());
                }
            }
        }
    }

    /// The lease had run out: others may have taken up what is in memory here. What is
    /// not ours any more is let go, and what it has in flight is stopped; its next
    /// append would be refused, but that may be long in coming.
    async fn look_at_own(self: &Arc<Self>) {
        let runs: Vec<RunId> = self.residents().keys().copied().collect();
        for run in runs {
            match self.store.take(run, self.node).await {
                Ok(Taken::Already(_)) => {}
                // Another had it, and has left it: it is taken up anew.
                Ok(Taken::Done(claim)) => self.mail(run, Mail::Claimed(claim.epoch)).await,
                Ok(Taken::Held(_) | Taken::NoRun) => {
                    if let Some(sender) = self.resident(run) {
                        // One that has just left need not be told.
                        let _ = sender.send(Mail::Claimed(NOT_OURS)).await;
                    }
                }
                // Its next append says so.
                Err(error) => tracing::warn!(%run, %error, "whose run this is cannot be told now"),
            }
        }
    }

    /// Looks after runs until the engine stops.
    async fn sweep(self: Arc<Self>) {
        let mut watched_at_ms = self.clock.now_ms();
        while !self.stop.is_cancelled() {
            if let Err(error) = self.look(&mut watched_at_ms).await {
                tracing::warn!(%error, "the sweep failed and is tried again");
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = self.store.changed(self.config.sweep_ms) => self.feed.grown(),
                () = tokio::time::sleep(Duration::from_millis(self.config.sweep_ms)) => {}
            }
        }
    }

    async fn look(self: &Arc<Self>, watched_at_ms: &mut u64) -> Result<(), StoreError> {
        let letters = self.store.letters(Inbox::Owner(self.node)).await?;
        let runs: BTreeSet<_> = letters.into_iter().map(|one| one.letter.run).collect();
        let quarantined = self.quarantined();
        for run in runs.difference(&quarantined) {
            self.deliver(*run);
        }
        if let Err(error) = self.look_at_gates().await {
            // Timers and letters do not wait for rules that cannot be read.
            tracing::warn!(%error, "the gates cannot be looked at now");
        }
        match self.config.claims {
            Claims::All => {}
            Claims::Own => return self.wake_family().await,
            Claims::None | Claims::ReadOnly => return Ok(()),
        }
        if self.missed.load(Ordering::Relaxed) {
            self.find_own().await?;
            self.missed.store(false, Ordering::Relaxed);
        }
        self.claim().await?;
        let now_ms = self.clock.now_ms();
        if now_ms.saturating_sub(*watched_at_ms) >= self.config.watchdog_ms {
            *watched_at_ms = now_ms;
            self.watch().await?;
        }
        Ok(())
    }

    /// Takes up what is due of the runs that were in memory here.
    async fn wake_family(self: &Arc<Self>) -> Result<(), StoreError> {
        let family = self.family().clone();
        for run in family.into_iter().filter(|run| self.resident(*run).is_none()) {
            let filter = Filter { run: Some(run), ..Filter::default() };
            let rows = self.store.list(filter).await?;
            // One that failed may be taken up again by itself.
            let recovers =
                |row: &RunRow| row.status == RunStatus::Failed && row.due_at_ms.is_some();
            let wanted = |row: &&RunRow| !row.status.is_terminal() || recovers(row);
            let Some(row) = rows.first().filter(wanted) else {
                self.family().remove(&run);
                continue;
            };
            let due = row.due_at_ms.is_some_and(|due_ms| due_ms <= self.clock.now_ms());
            if due && row.owner.is_none() {
                self.deliver(run);
            }
        }
        Ok(())
    }

    /// Takes up everything that is due, as far as there is room.
    async fn claim(self: &Arc<Self>) -> Result<(), StoreError> {
        loop {
            if self.stop.is_cancelled() {
                return Ok(());
            }
            // The places are taken first: what is claimed must not wait for one.
            let room = self.room.available_permits().min(CLAIM_MAX);
            let many = u32::try_from(room).expect("a claim is bounded");
            let places = Arc::clone(&self.room).try_acquire_many_owned(many);
            let Some(mut places) = places.ok().filter(|_| room > 0) else {
                self.queue_for_room();
                return Ok(());
            };
            let claims = self.claim_up_to(room).await?;
            let more = claims.len() == room;
            for claim in claims {
                let place = places.split(1).expect("no more are claimed than there is room for");
                let engine = Arc::clone(self);
                self.spawn(async move { engine.take_claimed(claim, place).await });
            }
            if !more {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    async fn claim_up_to(&self, limit: usize) -> Result<Vec<Claim>, StoreError> {
        let claims = self.store.claim(self.node, self.clock.now_ms(), limit).await;
        if let Err(StoreError::Unknown(_)) = claims {
            self.missed.store(true, Ordering::Relaxed);
        }
        claims
    }

    /// In a full house those who start runs stand in line for room; what is due
    /// stands there with them, else it would never have its turn.
    fn queue_for_room(self: &Arc<Self>) {
        if self.queues.swap(true, Ordering::Relaxed) {
            return;
        }
        let engine = Arc::clone(self);
        self.spawn(async move {
            let permit = Arc::clone(&engine.room).acquire_owned().await;
            engine.queues.store(false, Ordering::Relaxed);
            let Ok(permit) = permit else { return };
            match engine.claim_up_to(1).await {
                Ok(mut claims) => {
                    if let Some(claim) = claims.pop() {
                        engine.take_claimed(claim, permit).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "nothing can be claimed now"),
            }
        });
    }

    /// Takes up runs that are ours without our knowing: claimed, and the answer lost.
    async fn find_own(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut before = None;
        loop {
            let filter = Filter { limit: WATCH_MAX, before, ..Filter::default() };
            let rows = self.store.list(filter).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            before = Some(last.run);
            let now_ms = self.clock.now_ms();
            for row in rows {
                let ours = match row.owner {
                    Some(owner) => owner == self.node,
                    // Ours too, if our lease has just run out.
                    None => row.due_at_ms.map_or(!row.status.is_terminal(), |due| due <= now_ms),
                };
                // Also one that is here: it may be about to leave.
                if ours {
                    self.insist(row.run);
                }
            }
        }
    }

    /// The net under everything: a run that should move, that nobody owns and
    /// that nothing will wake, is taken up.
    async fn watch(self: &Arc<Self>) -> Result<(), StoreError> {
        let statuses =
            [RunStatus::Queued, RunStatus::Running, RunStatus::Cancelling, RunStatus::Recovered];
        let mut filter =
            Filter { statuses: statuses.to_vec(), limit: WATCH_MAX, ..Filter::default() };
        loop {
            let page = self.store.list(filter.clone()).await?;
            for row in &page {
                let forgotten = row.owner.is_none() && row.due_at_ms.is_none();
                let lost = row.owner == Some(self.node) && self.resident(row.run).is_none();
                if forgotten || lost {
                    self.deliver(row.run);
                }
            }
            filter.before = page.last().map(|row| row.run);
            if page.len() < WATCH_MAX || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }
}
