//! The format of schedules in a setup.

use super::row::{read_fields, row_schema};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::schema::Defs;
use crate::node::Node;
use crate::schedule::Timing;
use serde_json::Value;
use sluice_govern::registry::{RowType as _, Schedule};

/// A schedule with valid times.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleRow;

impl Read for ScheduleRow {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ScheduleRow> {
        let mut body = read_fields(&Schedule::ROW, node, cx)?.to_json();
        body.entry("workflow").or_insert_with(|| "".into());
        // A list may have items that were reported.
        let Ok(schedule) = serde_json::from_value::<Schedule>(Value::Object(body)) else {
            return Some(ScheduleRow);
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
        row_schema(&Schedule::ROW, defs)
    }
}
