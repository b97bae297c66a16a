//! Slots on their way into the store.

use super::{Look, Pace};
use crate::engine::Inner;
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{Letter, StoreError};
use sluice_core::run::command::Command;
use sluice_core::run::id::RunId;
use sluice_core::run::letter;
use sluice_core::schedule::Due;

/// The slot is somebody's: its run is about to exist.
pub(super) const STARTING: &str = "starting";
/// Its run exists.
pub(super) const STARTED: &str = "started";
/// Its run comes when those before it have ended.
pub(super) const WAITING: &str = "queued";
/// Nothing was started for it.
pub(super) const SKIPPED: &str = "skipped";
/// Its run could not be started.
pub(super) const REFUSED: &str = "refused";

/// A slot with its first fate.
pub(super) fn row(schedule: &str, slot: &Due, fate: &str, at_ms: u64) -> Slot {
    Slot {
        schedule: schedule.to_owned(),
        slot_ms: slot.slot_ms,
        count: slot.count,
        fate: fate.to_owned(),
        why: None,
        run: None,
        at_ms,
    }
}

/// A slot for which nothing is started, and why.
pub(super) fn skipped(slot: Slot, why: &str, at_ms: u64) -> Slot {
    Slot { fate: SKIPPED.to_owned(), why: Some(why.to_owned()), at_ms, ..slot }
}

impl Look<'_> {
    /// Notes that nothing is started for a slot.
    pub(super) async fn skip(&self, slot: &Due, why: &str) -> Result<Pace, StoreError> {
        let row = row(self.name, slot, SKIPPED, self.now_ms);
        self.note(skipped(row, why, self.now_ms), &[]).await
    }

    /// Notes a slot, unless another process was faster.
    pub(super) async fn note(&self, slot: Slot, from: &[&str]) -> Result<Pace, StoreError> {
        let from = from.iter().map(|fate| (*fate).to_owned()).collect();
        let noted = self.engine.store.mark(vec![Mark { slot, from }]).await?;
        Ok(if noted == [true] { Pace::Done } else { Pace::Overtaken })
    }

    /// Tells an earlier run to make way. By letter, once for each slot.
    pub(super) async fn cancel(&self, run: RunId, slot: &Due) {
        let by = format!("schedule:{}", self.name);
        let reason = "the next run of its schedule is due".to_owned();
        let body = letter::encode(&Command::Cancel { by, reason }).expect("a cancel travels");
        let key = format!("schedule:{}:{}", self.name, slot.slot_ms);
        match self.engine.store.post(Letter { run, key, body }).await {
            Ok(_) => self.engine.deliver(run),
            // What waits for it is started when it ends by itself.
            Err(error) => tracing::warn!(%run, %error, "the run cannot be told to make way"),
        }
    }
}

impl Inner {
    /// An id for a run that does not exist yet.
    pub(super) fn fresh(&self) -> RunId {
        RunId::new(self.clock.now_ms(), &mut *(self.entropy)())
    }
}
