//! Schedules as rows: what is started by itself, and when.

use super::webhook::authors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A workflow that is started by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The workflow: `name`, or `name@version`.
    pub workflow: String,
    /// What it is given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// When, in the five fields of cron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How often, as a document writes a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Value>,
    /// The zone whose clocks and days count, by its IANA name.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// What becomes of a slot while an earlier run goes on.
    #[serde(default)]
    pub overlap: Overlap,
    /// What becomes of slots that nobody was there for.
    #[serde(default)]
    pub missed: Missed,
    /// Days without runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_dates: Vec<String>,
    /// The only days with runs, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_dates: Vec<String>,
    /// Whether anything is started.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Slots before this time are not its own.
    #[serde(default)]
    pub since_ms: u64,
    /// Who made it, and who changed it last. The server notes them; both count as
    /// initiators of the runs that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// See `created_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

impl Schedule {
    /// People who count as initiators of its runs.
    pub fn authors(&self) -> Vec<String> {
        authors(self.created_by.as_ref(), self.changed_by.as_ref())
    }
}

/// What becomes of a slot while an earlier run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Nothing is started.
    #[default]
    Skip,
    /// It is started when the earlier run has ended.
    Queue,
    /// The earlier run is cancelled, then it is started.
    CancelPrevious,
}

/// What becomes of slots that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing.
    Skip,
    /// One run stands for all of them.
    #[default]
    RunOnce,
    /// The last ten of them are made up for, one after the other.
    Backfill,
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn yes() -> bool {
    true
}
