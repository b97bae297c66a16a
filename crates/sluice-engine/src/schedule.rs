//! Schedules: what is due is started, by whichever process looks first.
//!
//! A slot is noted before its run is started, together with the run's id. So a
//! process that dies in between is made up for by any other, and starting twice
//! is starting once.
//!
//! INVARIANT: one slot, one run: the run's id is in the slot's row, which only
//! the first to note it writes.
//! INVARIANT: every slot that is due gets a row, also where nothing is started.

mod overlap;
mod slot;

use crate::engine::{Engine, Inner};
use crate::error::StartError;
use crate::limits::{RESOLVE_TRIES_MAX, SCHEDULE_SLOTS_SEEN};
use crate::registered;
use crate::start::Start;
use overlap::Line;
use slot::{REFUSED, STARTED, STARTING, WAITING};
use sluice_core::port::ledger::Rows;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::StoreError;
use sluice_core::rows;
use sluice_core::run::id::RunId;
use sluice_core::schedule::{Due, Timing, What, due};
use sluice_govern::registry::{Kind, Overlap, Schedule};
use std::sync::Arc;
use std::time::Duration;

/// After so long another process starts what one began to, in milliseconds.
const TAKE_OVER_MS: u64 = 10_000;

/// How scheduled runs are started.
#[derive(Debug, Clone, Default)]
pub struct Starting {
    /// Who does steps that name nobody.
    pub default_agent: Option<String>,
}

/// What one look at the schedules came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Runs that were started, with the schedule and the slot of each.
    pub started: Vec<(String, u64, RunId)>,
    /// When the next slot of an enabled schedule is.
    pub next_ms: Option<u64>,
    /// Whether slots wait for runs to end.
    pub waiting: bool,
}

/// One schedule, looked at.
struct Look<'a> {
    engine: &'a Arc<Inner>,
    rows: &'a Rows,
    name: &'a str,
    schedule: &'a Schedule,
    starting: &'a Starting,
    now_ms: u64,
}

/// Whether a look went through to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Done,
    /// Another process noted something first: the next look sees it.
    Overtaken,
}

impl Engine {
    /// Looks at every schedule once, and starts what is due.
    pub async fn tick(&self, starting: &Starting) -> Result<Ticked, StoreError> {
        self.inner().tick(starting).await
    }

    /// Looks at the schedules again and again until the engine stops.
    pub fn keep_schedules(&self, starting: Starting) {
        let inner = Arc::clone(self.inner());
        self.inner().spawn(async move {
            while !inner.stop.is_cancelled() {
                if let Err(error) = inner.tick(&starting).await {
                    tracing::warn!(%error, "the schedules cannot be looked at now");
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
                    tracing::error!(schedule = row.name, error, "the schedule has no times");
                    continue;
                }
            };
            let now_ms = self.clock.now_ms();
            let (name, schedule) = (row.name.as_str(), &schedule);
            let look = Look { engine: self, rows: &rows, name, schedule, starting, now_ms };
            look.go(&timing, &mut ticked).await?;
            if schedule.enabled {
                let next_ms = timing.next(now_ms);
                ticked.next_ms = ticked.next_ms.into_iter().chain(next_ms).min();
            }
        }
        Ok(ticked)
    }
}

impl Look<'_> {
    async fn go(&self, timing: &Timing, ticked: &mut Ticked) -> Result<(), StoreError> {
        let known = self.engine.store.slots(self.name.to_owned(), None, SCHEDULE_SLOTS_SEEN);
        let known = known.await?;
        self.finish(&known, ticked).await?;
        let newest_ms = known.first().map_or(0, |slot| slot.slot_ms);
        let after_ms = newest_ms.max(self.schedule.since_ms);
        let slots = due(self.schedule, timing, after_ms, self.now_ms);
        let waits = known.iter().any(|slot| slot.fate == WAITING);
        ticked.waiting |= waits;
        if slots.is_empty() && !waits {
            return Ok(());
        }
        let mut line = Line::of(self.engine, &known).await?;
        for slot in slots {
            let pace = match slot.what {
                What::Skip(why) => self.skip(&slot, why).await?,
                What::Start => self.take(&slot, &mut line, ticked).await?,
                What::MakeUp => self.queue(&slot, &mut line, ticked).await?,
            };
            if pace == Pace::Overtaken {
                return Ok(());
            }
        }
        self.next_in_line(&mut line, ticked).await
    }

    /// Starts what another process, or an earlier look, only began to.
    async fn finish(&self, known: &[Slot], ticked: &mut Ticked) -> Result<(), StoreError> {
        let late = |slot: &&Slot| {
            slot.fate == STARTING && slot.at_ms.saturating_add(TAKE_OVER_MS) <= self.now_ms
        };
        for slot in known.iter().rev().filter(late) {
            self.start(slot.clone(), ticked).await?;
        }
        Ok(())
    }

    /// A slot whose run is started unless an earlier one goes on.
    async fn take(
        &self,
        slot: &Due,
        line: &mut Line,
        ticked: &mut Ticked,
    ) -> Result<Pace, StoreError> {
        if line.is_free() {
            return self.begin(slot, line, ticked).await;
        }
        match self.schedule.overlap {
            Overlap::Skip => self.skip(slot, "overlap").await,
            Overlap::Queue => self.queue(slot, line, ticked).await,
            Overlap::CancelPrevious => {
                for older in std::mem::take(&mut line.waiting) {
                    let skipped = slot::skipped(older, "superseded", self.now_ms);
                    self.note(skipped, &[WAITING]).await?;
                }
                for run in &line.running {
                    self.cancel(*run, slot).await;
                }
                self.queue(slot, line, ticked).await
            }
        }
    }

    /// A slot whose run is started when those before it have ended.
    async fn queue(
        &self,
        slot: &Due,
        line: &mut Line,
        ticked: &mut Ticked,
    ) -> Result<Pace, StoreError> {
        if line.is_free() {
            return self.begin(slot, line, ticked).await;
        }
        if line.is_full() {
            return self.skip(slot, "queue_full").await;
        }
        let waiting = slot::row(self.name, slot, WAITING, self.now_ms);
        ticked.waiting = true;
        line.waiting.push(waiting.clone());
        self.note(waiting, &[]).await
    }

    /// Starts the run of a slot that nothing stands in the way of.
    async fn begin(
        &self,
        slot: &Due,
        line: &mut Line,
        ticked: &mut Ticked,
    ) -> Result<Pace, StoreError> {
        let run = self.engine.fresh();
        let row = Slot { run: Some(run), ..slot::row(self.name, slot, STARTING, self.now_ms) };
        if self.note(row.clone(), &[]).await? == Pace::Overtaken {
            return Ok(Pace::Overtaken);
        }
        line.running.push(run);
        self.start(row, ticked).await?;
        Ok(Pace::Done)
    }

    /// Starts the run of the slot that has waited longest, if its turn has come.
    async fn next_in_line(&self, line: &mut Line, ticked: &mut Ticked) -> Result<(), StoreError> {
        if !line.running.is_empty() || line.waiting.is_empty() {
            return Ok(());
        }
        let run = self.engine.fresh();
        let fate = STARTING.to_owned();
        let row = Slot { run: Some(run), fate, at_ms: self.now_ms, ..line.waiting.remove(0) };
        match self.note(row.clone(), &[WAITING]).await? {
            Pace::Done => self.start(row, ticked).await,
            Pace::Overtaken => Ok(()),
        }
    }

    /// Starts the run of a slot, or notes why it cannot be.
    async fn start(&self, slot: Slot, ticked: &mut Ticked) -> Result<(), StoreError> {
        let Some(run) = slot.run else { return Ok(()) };
        let (fate, why, from) = match self.try_start(run).await {
            Ok(()) => (STARTED, None, &[STARTING, REFUSED][..]),
            // It stays as it is: a later look tries again.
            Err(StartError::Stopping | StartError::Moved) => return Ok(()),
            Err(StartError::Store(error)) => return Err(error),
            Err(StartError::Load(crate::error::LoadError::Store(error))) => return Err(error),
            Err(error) => (REFUSED, Some(error.to_string()), &[STARTING][..]),
        };
        if fate == STARTED {
            ticked.started.push((slot.schedule.clone(), slot.slot_ms, run));
        }
        let at_ms = self.engine.clock.now_ms();
        // What was refused has no run.
        let run = Some(run).filter(|_| fate == STARTED);
        let settled = Slot { fate: fate.to_owned(), why, run, at_ms, ..slot };
        self.note(settled, from).await.map(drop)
    }

    /// Starts a run of the workflow as it is registered. If the registry changes
    /// meanwhile, schedule and workflow are read again.
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
