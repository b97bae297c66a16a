//! Schedules as rows.

use super::webhook::authors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A schedule that starts a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The workflow: `name`, or `name@version`.
    pub workflow: String,
    /// Arguments of the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// Times, as a cron expression with five fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Interval, as a document writes a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Value>,
    /// Time zone, by its IANA name.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// What happens to a slot while an earlier run is active.
    #[serde(default)]
    pub overlap: Overlap,
    /// What happens to slots that were missed while no server was running.
    #[serde(default)]
    pub missed: Missed,
    /// Days without runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_dates: Vec<String>,
    /// The only days with runs; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_dates: Vec<String>,
    /// Whether runs are started.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Earlier slots are ignored.
    #[serde(default)]
    pub since_ms: u64,
    /// Author of the row; with `changed_by`, an initiator of the runs that it starts.
    /// The server sets both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Last editor of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

impl Schedule {
    /// People who are initiators of its runs.
    pub fn authors(&self) -> Vec<String> {
        authors(self.created_by.as_ref(), self.changed_by.as_ref())
    }
}

/// What happens to a slot while an earlier run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The slot is skipped.
    #[default]
    Skip,
    /// The slot waits until the earlier run has ended.
    Queue,
    /// The earlier run is cancelled first.
    CancelPrevious,
}

/// What happens to slots that were missed while no server was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are skipped.
    Skip,
    /// One run is started for all of them.
    #[default]
    RunOnce,
    /// The last ten are started, one after the other.
    Backfill,
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn yes() -> bool {
    true
}
