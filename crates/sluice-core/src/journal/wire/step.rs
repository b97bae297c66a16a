//! Encodes and decodes events: first the step of an event, then the fields of its declaration.

use super::deltas::DELTA;
use super::fields::{Fields, ParsedEvent};
use super::object::{FrameWriter, PayloadWriter, json};
use super::{WireError, malformed};
use crate::journal::chain::Salt;
use crate::journal::declare::{PayloadPart, Read};
use crate::journal::event::{Delta, DeltaPart, Event, StepAt, StepEvent};
use crate::plan::Plan;

pub(super) fn write_event(frame: &mut FrameWriter, event: &Event, salt: &Salt, plan: &Plan) {
    frame.event(event.name(), salt, |payload| {
        if let Event::Step(at, _) = event {
            write_step(payload, *at, plan);
        }
        event.write(payload);
    });
}

/// Writes the stand-in of a stream delta: the fields that the fold needs, which are the
/// beginning of the payload of the delta.
pub(super) fn write_stand_in(frame: &mut FrameWriter, at: StepAt, delta: &Delta, plan: &Plan) {
    let Delta { index, attempt, dispatch_no, .. } = *delta;
    let stand_in = Delta { index, attempt, dispatch_no, part: DeltaPart::Beside };
    frame.stand_in(DELTA, |payload| {
        write_step(payload, at, plan);
        stand_in.write(payload);
    });
}

fn write_step(payload: &mut PayloadWriter<'_>, at: StepAt, plan: &Plan) {
    let id = &plan.steps[at.step as usize].id;
    payload.raw("nodeId", |out| {
        json(out, id);
        if let Some(item) = at.item {
            // The instance goes before the closing quote.
            out.pop();
            out.push(b'[');
            json(out, &item);
            out.extend_from_slice(b"]\"");
        }
    });
}

/// Reads one event. An error names the event.
pub(super) fn read_event(written: &ParsedEvent<'_>, plan: Option<&Plan>) -> Read<Event> {
    read(&written.kind, &written.payload, plan).map_err(|error| match error {
        WireError::Malformed(why) => malformed(format_args!("{}: {why}", written.kind)),
        other => other,
    })
}

fn read(kind: &str, fields: &Fields<'_>, plan: Option<&Plan>) -> Read<Event> {
    if let Some(event) = StepEvent::read(kind, fields)? {
        return Ok(Event::Step(read_step(fields, plan)?, event));
    }
    // The name is cut short: it can come from a damaged file.
    let unknown = || WireError::UnknownEvent(kind.chars().take(64).collect());
    Event::read(kind, fields)?.ok_or_else(unknown)
}

/// `step` or `step[3]`. No id of a step contains a bracket.
fn read_step(fields: &Fields<'_>, plan: Option<&Plan>) -> Read<StepAt> {
    let Some(plan) = plan else {
        return Err(malformed("the event names a step, but no plan is given"));
    };
    let find = |text: &str| {
        let (id, item) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((id, item)) => (id, Some(item.parse().ok()?)),
            None => (text, None),
        };
        let step = u32::try_from(plan.graph.position(id)?).ok()?;
        Some(StepAt { step, item })
    };
    fields.text("nodeId", |text| {
        find(text).ok_or_else(|| malformed("nodeId: not a step of the plan"))
    })
}
