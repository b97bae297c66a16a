//! Compares rows with the journals: rows of runs, value flows between runs, and counters.

use super::{Place, Trouble, VerifiedPart, Verifier};
use crate::id::RunId;
use crate::port::inspect::StoredRun;
use crate::run::recount::Recount;
use crate::run::state::Run;
use sluice_govern::account::REGISTRY;
use std::cmp::Ordering;

impl Verifier {
    /// The runs to read, after every row was fed.
    pub fn runs(&mut self) -> Vec<StoredRun> {
        std::mem::take(&mut self.rows.runs)
    }

    /// Compares the folded state of a run, up to the event that its row names. An error
    /// says why the journal cannot be folded.
    pub fn folded(&mut self, row: &StoredRun, folded: Result<&Run, &str>) {
        let run = match folded {
            Ok(run) => run,
            Err(reason) => {
                self.rows.unfolded += 1;
                self.unreadable(row.run, reason);
                self.rows.forget(row.run);
                return;
            }
        };
        let wrong = |(column, expected): (&str, String)| {
            format!("`{column}` differs from the journal: {expected}")
        };
        for detail in differences(row, run).into_iter().map(wrong) {
            self.wrong_row("run", &row.run, Trouble::Changed, &detail);
        }
        self.check_start(row, run);
        self.check_frames(row);
        if self.scope == VerifiedPart::Everything {
            self.check_provenance_edges(run);
        }
    }

    /// Checks that the row names the last event of the frames.
    fn check_frames(&mut self, row: &StoredRun) {
        let events = self.rows.frames.remove(&row.run).unwrap_or(0);
        let detail = format!("it ends at event {}, and its frames at {events}", row.version);
        match events.cmp(&row.version) {
            // The events after the last frame are gone, also where no seal covers them yet.
            Ordering::Less => {
                self.report.add(Place::Event(row.run, events + 1), Trouble::Missing, &detail);
            }
            Ordering::Equal => {}
            Ordering::Greater => self.wrong_row("run", &row.run, Trouble::Changed, &detail),
        }
    }

    fn check_provenance_edges(&mut self, run: &Run) {
        let mut stored = self.rows.provenance_edges.remove(&run.id).unwrap_or_default();
        for (source, values) in run.taken.iter().filter(|(_, values)| **values > 0) {
            let count = stored.remove(source).unwrap_or(0);
            if count != *values {
                let detail = format!("it is {count}, and the journal says {values}");
                self.wrong_row("taking", &pair(*source, run.id), Trouble::Changed, &detail);
            }
        }
        for source in stored.into_keys() {
            let detail = "the journal does not contain it";
            self.wrong_row("taking", &pair(source, run.id), Trouble::Inserted, detail);
        }
    }

    /// Compares the counters, after every run was folded. If a run could not be folded, its
    /// share is unknown and nothing is compared.
    pub fn counted(&mut self, recount: &Recount) {
        if self.scope != VerifiedPart::Everything || self.rows.unfolded > 0 {
            self.report.uncounted = true;
            return;
        }
        for (name, expected) in recount.counts() {
            let count = self.rows.counts.remove(name).unwrap_or(0);
            if count != expected {
                let detail = format!("it is {count}, and the journals say {expected}");
                self.wrong_row("counter", &name, Trouble::Changed, &detail);
            }
        }
        for (name, count) in std::mem::take(&mut self.rows.counts) {
            if count != 0 && name != REGISTRY {
                let detail = format!("it is {count}, and the journals say 0");
                self.wrong_row("counter", &name, Trouble::Changed, &detail);
            } else {
                self.rows.counts.insert(name, count);
            }
        }
    }

    /// Called after the last run: rows that are left name runs that do not exist.
    pub(super) fn end_folded(&mut self) {
        self.end_starts();
        for run in std::mem::take(&mut self.rows.provenance_edges).into_keys() {
            self.wrong_row("taking", &run, Trouble::Missing, "there is no such run");
        }
        for run in std::mem::take(&mut self.rows.frames).into_keys() {
            let detail = "it has frames, and there is no such run";
            self.wrong_row("run", &run, Trouble::Missing, detail);
        }
    }
}

fn pair(source: RunId, consumer: RunId) -> String {
    format!("{source} {consumer}")
}

/// The columns of a run's row that differ from the journal.
fn differences(row: &StoredRun, run: &Run) -> Vec<(&'static str, String)> {
    let started = &run.started;
    let asks = run.approvals.values().any(|approval| approval.resolution.is_none());
    let mut found = Vec::new();
    let mut check = |column, is_right: bool, expected: String| {
        if !is_right {
            found.push((column, expected));
        }
    };
    check("workflow", row.workflow == started.workflow, started.workflow.clone());
    check("version", row.workflow_version == started.version, shown(started.version));
    let is_kept = !row.initiator.is_empty();
    // An erasure removes it from the journal.
    let is_known = is_kept && !started.initiator.is_empty();
    let is_initiator = row.initiator == started.initiator;
    check("initiator", !is_known || is_initiator, started.initiator.clone());
    check("status", row.status == run.status.as_str(), run.status.as_str().to_owned());
    check("started_at", row.started_at_ms == run.started_at_ms, run.started_at_ms.to_string());
    check("ended_at", row.ended_at_ms == run.ended_at_ms, shown(run.ended_at_ms));
    let parent = started.parent.as_ref().map(|parent| parent.run);
    check("parent", row.parent == parent, shown(parent));
    // Lists show runs that may wait for an approval, so a surplus `true` is harmless.
    check("asks", row.asks || !asks, asks.to_string());
    let due = due_by(run);
    let is_due = match (due, row.due_at_ms) {
        (None, _) => true,
        (Some(due), Some(noted)) => noted <= due,
        (Some(_), None) => false,
    };
    check("due_at", row.is_owned || is_due, shown(due));
    found
}

/// The latest time at which a run without an owner must be claimed.
fn due_by(run: &Run) -> Option<u64> {
    let waits = run.status.is_terminal() || run.is_parked();
    // A run with work to do, or at a gate, is claimed again soon; the node chooses the
    // exact time.
    if !waits || (run.gated().next().is_some() && !run.status.is_terminal()) {
        return Some(u64::MAX);
    }
    run.next_due_ms()
}

fn shown<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
