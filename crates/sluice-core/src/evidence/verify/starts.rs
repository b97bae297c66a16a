//! Verifies what started the runs: idempotency keys and schedule slots.
//!
//! The row of a run contains the fingerprint of its key, and its journal the schedule. Both are
//! deleted after some time; until then they must exist.

use super::{Trouble, Verifier};
use crate::hash::Hash;
use crate::id::RunId;
use crate::limits::{KEY_MS, SLOTS_KEPT};
use crate::port::inspect::StoredRun;
use crate::port::slots::Slot;
use crate::run::state::Run;
use std::collections::{BTreeMap, BTreeSet};

/// The largest difference between the clocks of two nodes, in milliseconds.
const CLOCKS_APART_MS: u64 = 60 * 60 * 1000;

/// The keys and slots of a store.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Idempotency keys, by run.
    keys: BTreeMap<RunId, Hash>,
    /// The start of the newest run with a key: a later start deletes expired keys.
    newest_keyed_ms: u64,
    /// Runs without the key that they were started with, and the time of the start.
    keyless: Vec<(RunId, u64)>,
    /// Runs that a slot started, and the slot.
    started: BTreeMap<RunId, String>,
    /// Runs that have a slot, including one that has not finished its start.
    slotted: BTreeSet<RunId>,
    /// The number of slots of each schedule, and the time of the oldest.
    schedules: BTreeMap<String, (usize, u64)>,
}

impl Starts {
    pub(super) fn key(&mut self, run: RunId, fingerprint: Hash) {
        self.keys.insert(run, fingerprint);
    }

    pub(super) fn slot(&mut self, slot: Slot, key: String) {
        let (count, oldest_ms) = self.schedules.entry(slot.schedule).or_insert((0, slot.slot_ms));
        *count += 1;
        *oldest_ms = slot.slot_ms.min(*oldest_ms);
        self.slotted.extend(slot.run);
        let started = slot.run.filter(|_| slot.outcome == "started");
        self.started.extend(started.map(|run| (run, key)));
    }

    /// Forgets a run that cannot be read: rows that name it are not compared.
    pub(super) fn forget(&mut self, run: RunId) {
        self.keys.remove(&run);
        self.slotted.remove(&run);
        self.started.remove(&run);
    }

    /// Whether the slot of a run may have been deleted.
    fn is_forgotten(&self, schedule: &str, started_at_ms: u64) -> bool {
        let (count, oldest_ms) = self.schedules.get(schedule).copied().unwrap_or_default();
        // A schedule with slightly fewer slots than the limit has still deleted the
        // oldest.
        count >= SLOTS_KEPT / 2 && started_at_ms <= oldest_ms.saturating_add(CLOCKS_APART_MS)
    }
}

impl Verifier {
    /// Compares the start of a run with the keys and slots.
    pub(super) fn check_start(&mut self, row: &StoredRun, run: &Run) {
        let starts = &mut self.rows.starts;
        let key = starts.keys.remove(&row.run);
        let is_scheduled = starts.slotted.remove(&row.run);
        starts.started.remove(&row.run);
        if row.fingerprint.is_some() {
            starts.newest_keyed_ms = starts.newest_keyed_ms.max(row.started_at_ms);
            if key.is_none() {
                starts.keyless.push((row.run, row.started_at_ms));
            }
        }
        // Child runs and derived runs have the initiator of the run that they come
        // from.
        let is_own = run.started.parent.is_none() && run.started.origin.is_none();
        let schedule = run.started.initiator.strip_prefix("schedule:").filter(|_| is_own);
        let slotless =
            schedule.filter(|name| !is_scheduled && !starts.is_forgotten(name, run.started_at_ms));
        if let Some(name) = slotless {
            let detail = format!("schedule `{name}` started {}, and no slot says so", row.run);
            self.wrong_row("slot", &name, Trouble::Missing, &detail);
        }
        if key.is_some() && key != row.fingerprint {
            let detail = "`fingerprint` is not that of its idempotency key";
            self.wrong_row("run", &row.run, Trouble::Changed, detail);
        }
    }

    /// Called after the last run: what is left names runs that do not exist.
    pub(super) fn end_starts(&mut self) {
        let starts = std::mem::take(&mut self.rows.starts);
        for (run, started_at_ms) in starts.keyless {
            let expires_ms = started_at_ms.saturating_add(KEY_MS);
            if expires_ms > starts.newest_keyed_ms.saturating_add(CLOCKS_APART_MS) {
                let detail = format!("{run} was started with a key that is not there");
                self.wrong_row("key", &run, Trouble::Missing, &detail);
            }
        }
        for run in starts.keys.into_keys() {
            self.wrong_row("key", &run, Trouble::Missing, "there is no such run");
        }
        for (run, slot) in starts.started {
            let detail = format!("it started {run}, and there is no such run");
            self.wrong_row("slot", &slot, Trouble::Missing, &detail);
        }
    }
}
