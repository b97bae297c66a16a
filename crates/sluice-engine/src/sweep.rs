//! Background tasks: renewing the lease, and claiming runs that are due or have no
//! owner.

use crate::config::Claims;
use crate::engine::Inner;
use crate::mailbox::Mail;
use sluice_core::id::RunId;
use sluice_core::port::store::{Claim, Filter, Mailboxes, RunRow, StoreError, Taken};
use sluice_core::status::RunStatus;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// An epoch that no owner has.
const LOST_EPOCH: u64 = 0;
/// Most runs claimed at once.
const CLAIM_MAX: usize = 512;
/// Page size of full scans.
const WATCH_MAX: usize = 1000;

impl Inner {
    /// Spawns the background tasks of the engine.
    pub(crate) fn spawn_background_tasks(self: &Arc<Self>) {
        self.spawn(Arc::clone(self).renew());
        self.spawn(Arc::clone(self).sweep());
        self.spawn(Arc::clone(self).watch_gateways());
        if self.sealer.is_some() {
            self.spawn(Arc::clone(self).seal_loop());
        }
    }

    /// Renews the lease of this node until the engine stops.
    async fn renew(self: Arc<Self>) {
        let pause = Duration::from_millis(self.config.lease_ms / 3);
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(pause).await;
            if self.stop.is_cancelled() {
                return;
            }
            let attempted = Instant::now();
            // Also detects whether the store accepts writes while the node is idle.
            match self.store.renew(self.node, self.config.lease_ms).await {
                Ok(()) => {
                    if attempted - renewed > Duration::from_millis(self.config.lease_ms) {
                        let engine = Arc::clone(&self);
                        self.spawn(async move { engine.recheck_ownership().await });
                    }
                    renewed = attempted;
                    if !self.trust.is_refused() {
                        self.untroubled();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease could not be renewed");
                    self.report_trouble(&error.to_string());
                }
            }
        }
    }

    /// The lease had expired, so another node may have claimed runs that are loaded here.
    /// Drops those and stops their calls: their next append would be refused, but that may
    /// take long.
    async fn recheck_ownership(self: &Arc<Self>) {
        let runs: Vec<RunId> = self.loaded_runs().keys().copied().collect();
        for run in runs {
            match self.store.take(run, self.node).await {
                Ok(Taken::Already(_)) => {}
                // Another node owned and released it meanwhile: reload it.
                Ok(Taken::Done(claim)) => self.send_mail(run, Mail::Claimed(claim.epoch)).await,
                Ok(Taken::Held(_) | Taken::NoRun) => {
                    if let Some(sender) = self.mailbox(run) {
                        // A closed mailbox belongs to a run that has already left memory.
                        let _ = sender.send(Mail::Claimed(LOST_EPOCH)).await;
                    }
                }
                // Its next append checks ownership.
                Err(error) => tracing::warn!(%run, %error, "ownership cannot be checked now"),
            }
        }
    }

    /// Sweeps until the engine stops.
    async fn sweep(self: Arc<Self>) {
        let mut watched_at_ms = self.clock.now_ms();
        while !self.stop.is_cancelled() {
            if let Err(error) = self.sweep_once(&mut watched_at_ms).await {
                tracing::warn!(%error, "the sweep failed and is retried");
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = self.store.changed(self.config.sweep_ms) => self.feed.notify_appended(),
                () = tokio::time::sleep(Duration::from_millis(self.config.sweep_ms)) => {}
            }
        }
    }

    async fn sweep_once(self: &Arc<Self>, watched_at_ms: &mut u64) -> Result<(), StoreError> {
        let messages = self.store.messages(Mailboxes::Owner(self.node)).await?;
        let runs: BTreeSet<_> = messages.into_iter().map(|one| one.message.run).collect();
        let quarantined = self.quarantined();
        for run in runs.difference(&quarantined) {
            self.notify_messages(*run);
        }
        if let Err(error) = self.check_gates().await {
            // Timers and messages do not depend on the rules.
            tracing::warn!(%error, "the gates cannot be checked now");
        }
        match self.config.claims {
            Claims::All => {}
            Claims::Own => return self.wake_own_runs().await,
            Claims::None | Claims::ReadOnly => return Ok(()),
        }
        if self.claims_unacknowledged.load(Ordering::Relaxed) {
            self.reload_own_runs().await?;
            self.claims_unacknowledged.store(false, Ordering::Relaxed);
        }
        self.claim().await?;
        let now_ms = self.clock.now_ms();
        if now_ms.saturating_sub(*watched_at_ms) >= self.config.watchdog_ms {
            *watched_at_ms = now_ms;
            self.run_watchdog().await?;
        }
        Ok(())
    }

    /// Loads those of this process's own runs that are due.
    async fn wake_own_runs(self: &Arc<Self>) -> Result<(), StoreError> {
        let family = self.own_runs().clone();
        for run in family.into_iter().filter(|run| self.mailbox(*run).is_none()) {
            let filter = Filter { run: Some(run), ..Filter::default() };
            let rows = self.store.list(filter).await?;
            // A failed run may recover by itself.
            let recovers =
                |row: &RunRow| row.status == RunStatus::Failed && row.due_at_ms.is_some();
            let wanted = |row: &&RunRow| !row.status.is_terminal() || recovers(row);
            let Some(row) = rows.first().filter(wanted) else {
                self.own_runs().remove(&run);
                continue;
            };
            let due = row.due_at_ms.is_some_and(|due_ms| due_ms <= self.clock.now_ms());
            if due && row.owner.is_none() {
                self.notify_messages(run);
            }
        }
        Ok(())
    }

    /// Claims and loads runs that are due, as far as there are permits.
    async fn claim(self: &Arc<Self>) -> Result<(), StoreError> {
        loop {
            if self.stop.is_cancelled() {
                return Ok(());
            }
            // Permits come first: a claimed run must not wait for one.
            let room = self.room.available_permits().min(CLAIM_MAX);
            let many = u32::try_from(room).expect("a claim is bounded");
            let places = Arc::clone(&self.room).try_acquire_many_owned(many);
            let Some(mut places) = places.ok().filter(|_| room > 0) else {
                self.queue_claim();
                return Ok(());
            };
            let claims = self.claim_up_to(room).await?;
            let more = claims.len() == room;
            for claim in claims {
                let place =
                    places.split(1).expect("no more runs are claimed than permits are held");
                let engine = Arc::clone(self);
                self.spawn(async move { engine.load_claimed(claim, place).await });
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
            self.claims_unacknowledged.store(true, Ordering::Relaxed);
        }
        claims
    }

    /// Queues one claim for the next free permit. Without it, starts that wait for permits
    /// would starve the runs that are due.
    fn queue_claim(self: &Arc<Self>) {
        if self.claim_queued.swap(true, Ordering::Relaxed) {
            return;
        }
        let engine = Arc::clone(self);
        self.spawn(async move {
            let permit = Arc::clone(&engine.room).acquire_owned().await;
            engine.claim_queued.store(false, Ordering::Relaxed);
            let Ok(permit) = permit else { return };
            match engine.claim_up_to(1).await {
                Ok(mut claims) => {
                    if let Some(claim) = claims.pop() {
                        engine.load_claimed(claim, permit).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "no runs can be claimed now"),
            }
        });
    }

    /// Loads runs that were claimed although the answer was lost.
    async fn reload_own_runs(self: &Arc<Self>) -> Result<(), StoreError> {
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
                    // Still assigned to this node, if its lease has just expired.
                    None => row.due_at_ms.map_or(!row.status.is_terminal(), |due| due <= now_ms),
                };
                // Even a loaded run: it may be about to leave memory.
                if ours {
                    self.retry_load(row.run);
                }
            }
        }
    }

    /// The fallback behind all wake-ups: loads runs that should progress but have no owner
    /// and no due time.
    async fn run_watchdog(self: &Arc<Self>) -> Result<(), StoreError> {
        let statuses =
            [RunStatus::Queued, RunStatus::Running, RunStatus::Cancelling, RunStatus::Recovered];
        let mut filter =
            Filter { statuses: statuses.to_vec(), limit: WATCH_MAX, ..Filter::default() };
        loop {
            let page = self.store.list(filter.clone()).await?;
            for row in &page {
                let forgotten = row.owner.is_none() && row.due_at_ms.is_none();
                let lost = row.owner == Some(self.node) && self.mailbox(row.run).is_none();
                if forgotten || lost {
                    self.notify_messages(row.run);
                }
            }
            filter.before = page.last().map(|row| row.run);
            if page.len() < WATCH_MAX || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }
}
