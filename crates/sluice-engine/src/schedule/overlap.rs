//! Active runs and waiting slots of a schedule.

use super::slot::{STARTED, STARTING, WAITING};
use crate::engine::Inner;
use crate::limits::SCHEDULE_QUEUE_MAX;
use sluice_core::id::RunId;
use sluice_core::port::slots::Slot;
use sluice_core::port::store::{Filter, StoreError};
use std::sync::Arc;

/// Newest runs of a schedule that are checked; older ones have ended.
const LOOKED_AT_MAX: usize = 10;

/// Active runs of a schedule, and slots that wait for them to end.
pub(super) struct SlotQueue {
    pub(super) running: Vec<RunId>,
    /// Oldest first.
    pub(super) waiting: Vec<Slot>,
}

impl SlotQueue {
    /// Reads the queue from the schedule's slots, newest first.
    pub(super) async fn load(engine: &Arc<Inner>, known: &[Slot]) -> Result<SlotQueue, StoreError> {
        let mut running = Vec::new();
        let mut looked = 0;
        for slot in known {
            let Some(run) = slot.run.filter(|_| looked < LOOKED_AT_MAX) else { continue };
            looked += 1;
            match slot.outcome.as_str() {
                // A node is about to start it.
                STARTING => running.push(run),
                STARTED => {
                    let filter = Filter { run: Some(run), limit: 1, ..Filter::default() };
                    let rows = engine.store.list(filter).await?;
                    if rows.iter().any(|row| !row.status.is_terminal()) {
                        running.push(run);
                    }
                }
                _ => {}
            }
        }
        let waiting = known.iter().rev().filter(|slot| slot.outcome == WAITING).cloned().collect();
        Ok(SlotQueue { running, waiting })
    }

    /// Whether the next run may start at once.
    pub(super) fn is_free(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Whether no more slots may wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= SCHEDULE_QUEUE_MAX
    }
}
