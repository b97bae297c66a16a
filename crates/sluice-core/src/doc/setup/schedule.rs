//! The format of schedules in a setup.

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, PathPart, Read, document};
use crate::doc::schema::Defs;
use crate::node::Node;
use crate::schedule::Timing;
use serde_json::{Map, Value};
use sluice_govern::registry::{Missed, Overlap, Schedule};

document! {
    /// A schedule that starts a workflow at given times or in an interval.
    pub(crate) struct ScheduleDoc {
        /// A workflow of the registry: its name, or `name@version`.
        required "workflow" workflow: String,
        /// The arguments of the run.
        optional "args" args: Table<Value>,
        /// Minute, hour, day of the month, month and day of the week, as in cron.
        optional "cron" cron: String,
        /// The interval: a duration, or seconds.
        optional "every" every: Value,
        /// The time zone by its IANA name (UTC).
        optional "time_zone" time_zone: String,
        /// What happens at a slot while an earlier run is active (skip).
        optional "overlap" overlap: Overlap,
        /// What happens to slots that were missed (run_once).
        optional "missed" missed: Missed,
        /// Days without runs: `2026-12-24`.
        optional "skip_dates" skip_dates: Vec<String>,
        /// The only days with runs.
        optional "only_dates" only_dates: Vec<String>,
        /// Whether runs are started; unchanged if not set.
        optional "enabled" enabled: bool,
    }
}

/// A schedule with valid times.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleRow;

impl Read for ScheduleRow {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ScheduleRow> {
        let doc = ScheduleDoc::read(node, cx)?;
        let schedule = Schedule {
            workflow: String::new(),
            args: Map::new(),
            cron: doc.cron,
            every: doc.every.filter(|every| !every.is_null()),
            time_zone: doc.time_zone.unwrap_or_else(|| "UTC".to_owned()),
            overlap: Overlap::default(),
            missed: Missed::default(),
            skip_dates: doc.skip_dates.unwrap_or_default(),
            only_dates: doc.only_dates.unwrap_or_default(),
            enabled: true,
            since_ms: 0,
            created_by: None,
            changed_by: None,
        };
        if let Err((field, fault)) = Timing::read(&schedule) {
            let written = node.get(field);
            let code = match (&schedule.cron, &schedule.every) {
                (None, None) => Code::MissingField,
                (Some(_), Some(_)) => Code::ConflictingFields,
                _ if field == "every" => Code::BadDuration,
                _ => Code::BadValue,
            };
            let problem = Problem::new(code, written.unwrap_or(node).span, fault.message);
            let problem = match fault.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            };
            match written {
                Some(_) => cx.within(PathPart::Key(field), |cx| cx.add(problem)),
                None => cx.add(problem),
            }
        }
        Some(ScheduleRow)
    }

    fn schema(defs: &mut Defs) -> Value {
        ScheduleDoc::schema(defs)
    }
}
