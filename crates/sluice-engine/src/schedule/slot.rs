//! Rows of schedule slots and their outcomes.

use super::{ScheduleCheck, SlotWrite};
use crate::engine::Inner;
use sluice_core::id::RunId;
use sluice_core::port::slots::{Mark, Slot};
use sluice_core::port::store::{MailboxMessage, StoreError};
use sluice_core::run::command::Command;
use sluice_core::run::message;
use sluice_core::schedule::Due;

/// The slot is taken: a node is about to start its run.
pub(super) const STARTING: &str = "starting";
/// Its run exists.
pub(super) const STARTED: &str = "started";
/// It waits until earlier runs have ended.
pub(super) const WAITING: &str = "queued";
/// No run is started for it.
pub(super) const SKIPPED: &str = "skipped";
/// Its run could not be started.
pub(super) const REFUSED: &str = "refused";

/// A new row for a slot.
pub(super) fn slot_row(schedule: &str, slot: &Due, outcome: &str, at_ms: u64) -> Slot {
    Slot {
        schedule: schedule.to_owned(),
        slot_ms: slot.slot_ms,
        count: slot.count,
        outcome: outcome.to_owned(),
        why: None,
        run: None,
        at_ms,
    }
}

/// The row of a skipped slot, with the reason.
pub(super) fn skipped(slot: Slot, why: &str, at_ms: u64) -> Slot {
    Slot { outcome: SKIPPED.to_owned(), why: Some(why.to_owned()), at_ms, ..slot }
}

impl ScheduleCheck<'_> {
    /// Writes that a slot is skipped.
    pub(super) async fn skip(&self, slot: &Due, why: &str) -> Result<SlotWrite, StoreError> {
        let row = slot_row(self.name, slot, SKIPPED, self.now_ms);
        self.write_slot(skipped(row, why, self.now_ms), &[]).await
    }

    /// Writes a slot's row if its current outcome is one of `from`.
    pub(super) async fn write_slot(
        &self,
        slot: Slot,
        from: &[&str],
    ) -> Result<SlotWrite, StoreError> {
        let from = from.iter().map(|outcome| (*outcome).to_owned()).collect();
        let noted = self.engine.store.mark(vec![Mark { slot, from }]).await?;
        Ok(if noted == [true] { SlotWrite::Written } else { SlotWrite::Overtaken })
    }

    /// Cancels an earlier run of the schedule, with one idempotent message per slot.
    pub(super) async fn cancel_earlier(&self, run: RunId, slot: &Due) {
        let by = format!("schedule:{}", self.name);
        let reason = "the next run of its schedule is due".to_owned();
        let body =
            message::encode(&Command::Cancel { by, reason }).expect("a cancel can be encoded");
        let key = format!("schedule:{}:{}", self.name, slot.slot_ms);
        match self.engine.store.post(MailboxMessage { run, key, body }).await {
            Ok(_) => self.engine.notify_messages(run),
            // The queued slot starts when the run ends by itself.
            Err(error) => tracing::warn!(%run, %error, "the earlier run cannot be cancelled now"),
        }
    }
}

impl Inner {
    pub(super) fn new_run_id(&self) -> RunId {
        RunId::new(self.clock.now_ms(), &mut *(self.entropy)())
    }
}
