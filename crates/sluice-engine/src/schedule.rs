//! Schedules: starts the runs of slots that are due.
//!
//! The slot's row is written before its run is started, together with the run's id. If
//! a node crashes in between, any other node starts the same run; starts are idempotent.
//!
//! INVARIANT: one slot, one run: the run's id is in the slot's row, which only the first
//! writer creates.
//! INVARIANT: every slot that is due gets a row, even if nothing is started.

mod overlap;
mod slot;

use crate::engine::{Engine, Inner};
use crate::error::StartError;
use crate::limits::{RESOLVE_TRIES_MAX, SCHEDULE_SLOTS_SEEN};
use crate::registered;
use crate::start::Start;
use overlap::SlotQueue;
use slot::{REFUSED, STARTED, STARTING, WAITING};
use sluice_core::id::RunId;
use sluice_core::port::ledger::Rows;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::StoreError;
use sluice_core::rows;
use sluice_core::schedule::{Due, Timing, What, due};
use sluice_govern::registry::{Kind, Overlap, Schedule};
use std::sync::Arc;
use std::time::Duration;

/// After this time another node finishes an interrupted start.
const TAKE_OVER_MS: u64 = 10_000;

/// Settings of scheduled runs.
#[derive(Debug, Clone, Default)]
pub struct Starting {
    /// Agent of steps that name none.
    pub default_agent: Option<String>,
}

/// Result of checking all schedules once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Started runs, each with schedule name and slot time.
    pub started: Vec<(String, u64, RunId)>,
    /// Time of the next slot of an enabled schedule.
    pub next_ms: Option<u64>,
    /// Whether slots wait for earlier runs to end.
    pub waiting: bool,
}

struct ScheduleCheck<'a> {
    engine: &'a Arc<Inner>,
    rows: &'a Rows,
    name: &'a str,
    schedule: &'a Schedule,
    starting: &'a Starting,
    now_ms: u64,
}

/// Whether a slot's row was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotWrite {
    Written,
    /// Another node wrote a row first: the next check sees it.
    Overtaken,
}

impl Engine {
    /// Checks every schedule once and starts what is due.
    pub async fn tick(&self, starting: &Starting) -> Result<Ticked, StoreError> {
        self.inner().tick(starting).await
    }

    /// Checks the schedules periodically until the engine stops.
    pub fn keep_schedules(&self, starting: Starting) {
        let inner = Arc::clone(self.inner());
        self.inner().spawn(async move {
            while !inner.stop.is_cancelled() {
                if let Err(error) = inner.tick(&starting).await {
                    tracing::warn!(%error, "the schedules cannot be checked now");
                }
                tokio::select! {
                    biased;
                    () = inner.stop.cancelled() => {}
                    () = tokio::time::sleep(Duration::from_millis(inner.config.sweep_ms)) => {}
                }
            }
        });
    }
}

impl Inner {
    async fn tick(self: &Arc<Self>, starting: &Starting) -> Result<Ticked, StoreError> {
        let rows = self.store.registry(None).await?;
        let mut ticked = Ticked::default();
        for row in rows.rows.iter().filter(|row| row.kind == Kind::Schedule) {
            let schedule: Schedule = match serde_json::from_value(row.body.clone()) {
                Ok(schedule) => schedule,
                Err(error) => {
                    tracing::error!(schedule = row.name, %error, "the schedule cannot be read");
                    continue;
                }
            };
            let timing = match Timing::of(&schedule) {
                Ok(timing) => timing,
                Err(error) => {
                    tracing::error!(schedule = row.name, error, "the schedule has no valid times");
                    continue;
                }
            };
            let now_ms = self.clock.now_ms();
            let (name, schedule) = (row.name.as_str(), &schedule);
            let check =
                ScheduleCheck { engine: self, rows: &rows, name, schedule, starting, now_ms };
            check.run(&timing, &mut ticked).await?;
            if schedule.enabled {
                let next_ms = timing.next(now_ms);
                ticked.next_ms = ticked.next_ms.into_iter().chain(next_ms).min();
            }
        }
        Ok(ticked)
    }
}

impl ScheduleCheck<'_> {
    async fn run(&self, timing: &Timing, ticked: &mut Ticked) -> Result<(), StoreError> {
        let known = self.engine.store.slots(self.name.to_owned(), None, SCHEDULE_SLOTS_SEEN);
        let known = known.await?;
        self.finish_started(&known, ticked).await?;
        let newest_ms = known.first().map_or(0, |slot| slot.slot_ms);
        let after_ms = newest_ms.max(self.schedule.since_ms);
        let slots = due(self.schedule, timing, after_ms, self.now_ms);
        let waits = known.iter().any(|slot| slot.outcome == WAITING);
        ticked.waiting |= waits;
        if slots.is_empty() && !waits {
            return Ok(());
        }
        let mut queued = SlotQueue::load(self.engine, &known).await?;
        for slot in slots {
            let written = match slot.what {
                What::Skip(why) => self.skip(&slot, why).await?,
                What::Start => self.start_or_overlap(&slot, &mut queued, ticked).await?,
                What::MakeUp => self.queue(&slot, &mut queued, ticked).await?,
            };
            if written == SlotWrite::Overtaken {
                return Ok(());
            }
        }
        self.start_next_waiting(&mut queued, ticked).await
    }

    /// Finishes starts that another node, or an earlier check, left incomplete.
    async fn finish_started(&self, known: &[Slot], ticked: &mut Ticked) -> Result<(), StoreError> {
        let late = |slot: &&Slot| {
            slot.outcome == STARTING && slot.at_ms.saturating_add(TAKE_OVER_MS) <= self.now_ms
        };
        for slot in known.iter().rev().filter(late) {
            self.start(slot.clone(), ticked).await?;
        }
        Ok(())
    }

    /// Starts the run of a slot, or applies the overlap rule if an earlier run is active.
    async fn start_or_overlap(
        &self,
        slot: &Due,
        queued: &mut SlotQueue,
        ticked: &mut Ticked,
    ) -> Result<SlotWrite, StoreError> {
        if queued.is_free() {
            return self.start_now(slot, queued, ticked).await;
        }
        match self.schedule.overlap {
            Overlap::Skip => self.skip(slot, "overlap").await,
            Overlap::Queue => self.queue(slot, queued, ticked).await,
            Overlap::CancelPrevious => {
                for older in std::mem::take(&mut queued.waiting) {
                    let skipped = slot::skipped(older, "superseded", self.now_ms);
                    self.write_slot(skipped, &[WAITING]).await?;
                }
                for run in &queued.running {
                    self.cancel_earlier(*run, slot).await;
                }
                self.queue(slot, queued, ticked).await
            }
        }
    }

    /// Starts the run of a slot, or queues it until earlier runs have ended.
    async fn queue(
        &self,
        slot: &Due,
        queued: &mut SlotQueue,
        ticked: &mut Ticked,
    ) -> Result<SlotWrite, StoreError> {
        if queued.is_free() {
            return self.start_now(slot, queued, ticked).await;
        }
        if queued.is_full() {
            return self.skip(slot, "queue_full").await;
        }
        let waiting = slot::slot_row(self.name, slot, WAITING, self.now_ms);
        ticked.waiting = true;
        queued.waiting.push(waiting.clone());
        self.write_slot(waiting, &[]).await
    }

    /// Writes the slot's row and starts its run.
    async fn start_now(
        &self,
        slot: &Due,
        queued: &mut SlotQueue,
        ticked: &mut Ticked,
    ) -> Result<SlotWrite, StoreError> {
        let run = self.engine.new_run_id();
        let row = Slot { run: Some(run), ..slot::slot_row(self.name, slot, STARTING, self.now_ms) };
        if self.write_slot(row.clone(), &[]).await? == SlotWrite::Overtaken {
            return Ok(SlotWrite::Overtaken);
        }
        queued.running.push(run);
        self.start(row, ticked).await?;
        Ok(SlotWrite::Written)
    }

    /// Starts the run of the slot that has waited longest, if no run is active.
    async fn start_next_waiting(
        &self,
        queued: &mut SlotQueue,
        ticked: &mut Ticked,
    ) -> Result<(), StoreError> {
        if !queued.running.is_empty() || queued.waiting.is_empty() {
            return Ok(());
        }
        let run = self.engine.new_run_id();
        let outcome = STARTING.to_owned();
        let row = Slot { run: Some(run), outcome, at_ms: self.now_ms, ..queued.waiting.remove(0) };
        match self.write_slot(row.clone(), &[WAITING]).await? {
            SlotWrite::Written => self.start(row, ticked).await,
            SlotWrite::Overtaken => Ok(()),
        }
    }

    /// Starts the run of a slot, and writes the outcome to its row.
    async fn start(&self, slot: Slot, ticked: &mut Ticked) -> Result<(), StoreError> {
        let Some(run) = slot.run else { return Ok(()) };
        let (outcome, why, from) = match self.try_start(run).await {
            Ok(()) => (STARTED, None, &[STARTING, REFUSED][..]),
            // The row stays as it is: a later check retries.
            Err(StartError::Stopping | StartError::Moved) => return Ok(()),
            Err(StartError::Store(error)) => return Err(error),
            Err(StartError::Load(crate::error::LoadError::Store(error))) => return Err(error),
            Err(error) => (REFUSED, Some(error.to_string()), &[STARTING][..]),
        };
        if outcome == STARTED {
            ticked.started.push((slot.schedule.clone(), slot.slot_ms, run));
        }
        let at_ms = self.engine.clock.now_ms();
        // A refused slot has no run.
        let run = Some(run).filter(|_| outcome == STARTED);
        let settled = Slot { outcome: outcome.to_owned(), why, run, at_ms, ..slot };
        self.write_slot(settled, from).await.map(drop)
    }

    /// Starts the run under the current registry. If the registry changes meanwhile,
    /// schedule and workflow are read again.
    async fn try_start(&self, run: RunId) -> Result<(), StartError> {
        let mut started = self.start_under(self.rows, self.schedule, run).await;
        for _ in 1..RESOLVE_TRIES_MAX {
            if !matches!(started, Err(StartError::Moved)) {
                break;
            }
            let rows = self.engine.store.registry(None).await?;
            let row = rows::find(&rows.rows, Kind::Schedule, self.name);
            let row = row.and_then(|row| serde_json::from_value(row.body.clone()).ok());
            let Some(schedule) = row.filter(|schedule: &Schedule| schedule.enabled) else {
                let message = format!("the schedule `{}` was removed or disabled", self.name);
                return Err(StartError::Unresolved(message));
            };
            started = self.start_under(&rows, &schedule, run).await;
        }
        started
    }

    async fn start_under(
        &self,
        rows: &Rows,
        schedule: &Schedule,
        run: RunId,
    ) -> Result<(), StartError> {
        let start = registered::start(rows, &schedule.workflow, schedule.args.clone())?;
        let start = Start {
            id: Some(run),
            initiator: format!("schedule:{}", self.name),
            on_behalf_of: schedule.authors(),
            default_agent: self.starting.default_agent.clone(),
            ..start
        };
        self.engine.start(start).await.map(drop)
    }
}
