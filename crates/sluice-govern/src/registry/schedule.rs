//! Schedules as rows.

use super::row::row;
use super::webhook::authors;
use crate::choice::choices;
use serde_json::{Map, Value};

row! {
    /// A schedule that starts a workflow at given times or in an interval.
    pub struct Schedule, "ScheduleDoc" {
        /// A workflow of the registry: its name, or `name@version`.
        required workflow: String,
        /// The arguments of the run.
        optional args: Map<String, Value>,
        /// Minute, hour, day of the month, month and day of the week, as in cron.
        optional cron: Option<String>,
        /// The interval: a duration, or seconds.
        optional every: Option<Value>,
        /// The time zone by its IANA name (UTC).
        stored time_zone: String = "UTC".to_owned(),
        /// What happens at a slot while an earlier run is active (skip).
        stored overlap: Overlap,
        /// What happens to slots that were missed (run_once).
        stored missed: Missed,
        /// Days without runs: `2026-12-24`.
        optional skip_dates: Vec<String>,
        /// The only days with runs.
        optional only_dates: Vec<String>,
        /// Whether runs are started; unchanged if not set.
        kept enabled: bool = true,
        /// Earlier slots are ignored.
        maintained since_ms: u64,
        /// Author of the row; with `changed_by`, an initiator of the runs that it starts.
        /// The server sets both.
        maintained created_by: Option<String>,
        /// Last editor of the row.
        maintained changed_by: Option<String>,
    }
}

impl Schedule {
    /// People who are initiators of its runs.
    pub fn authors(&self) -> Vec<String> {
        authors(self.created_by.as_ref(), self.changed_by.as_ref())
    }
}

choices! {
    /// What happens to a slot while an earlier run is active.
    #[derive(Default)]
    pub enum Overlap, "a policy for overlapping runs" {
        /// The slot is skipped.
        #[default]
        Skip = "skip",
        /// The slot waits until the earlier run has ended.
        Queue = "queue",
        /// The earlier run is cancelled first.
        CancelPrevious = "cancel_previous",
    }
}

choices! {
    /// What happens to slots that were missed while no server was running.
    #[derive(Default)]
    pub enum Missed, "a policy for missed slots" {
        /// They are skipped.
        Skip = "skip",
        /// One run is started for all of them.
        #[default]
        RunOnce = "run_once",
        /// The last ten are started, one after the other.
        Backfill = "backfill",
    }
}
