//! Public events: one line of JSON each.
//!
//! Payloads are copied from the frame and never encoded again, so that a stream has exactly the
//! journalled text and is cheap. Fields that the journal leaves out because they have their
//! usual value are added, so that a reader finds every field of a payload.

mod cause;

use super::wire::{ParsedEvent, StoredDeltas, WireError, frame, read_deltas};
use crate::hash::Hash;
use crate::id::RunId;
use crate::plan::graph::Graph;
use crate::port::store::Frame;
use cause::{Causes, whole};
use serde_json::Map;
use sluice_govern::decision::{BRIEF, Known, expand};
use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The value of `correlation.phase`: the engine journals all events.
const PHASE: &str = "engine";

/// A public event, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its id: the position in the run's journal, from 1.
    pub id: u64,
    /// Its type.
    pub kind: String,
    /// When it was journalled.
    pub at_ms: u64,
    /// The envelope, as one line of JSON.
    pub json: String,
}

/// An item of a public stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A journalled event in its wire form.
    Event(Shown),
    /// Stream deltas that were elided: every event from the first to the last.
    Elided {
        /// The id of the first event.
        first: u64,
        /// The id of the last event.
        last: u64,
    },
}

impl Seen {
    /// The id of its last event: the cursor from which a reader continues.
    pub fn id(&self) -> u64 {
        match self {
            Seen::Event(shown) => shown.id,
            Seen::Elided { last, .. } => *last,
        }
    }

    /// The union of two adjacent elided ranges; `None` if the items cannot be joined.
    fn joined(&self, next: &Seen) -> Option<Seen> {
        match (self, next) {
            (Seen::Elided { first, last }, Seen::Elided { first: next, last: end })
                if last + 1 == *next =>
            {
                Some(Seen::Elided { first: *first, last: *end })
            }
            _ => None,
        }
    }

    /// The event, if it is one.
    pub fn event(self) -> Option<Shown> {
        match self {
            Seen::Event(shown) => Some(shown),
            Seen::Elided { .. } => None,
        }
    }
}

/// The run of the events, as far as their envelopes need it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The run that every envelope names.
    pub run: RunId,
    /// The name of its workflow.
    pub workflow: &'a str,
    /// Whether its definition comes from the registry.
    pub registered: bool,
    /// SHA-256 of its plan.
    pub definition_hash: &'a str,
    /// Its W3C trace id.
    pub trace_id: &'a str,
    /// The graph of its steps; `None` if its definition was not loaded.
    pub graph: Option<&'a Graph>,
}

/// The public events of a frame, its stream deltas included. `blobs` must contain the blobs
/// that [`wire::blobs_of`](super::wire::blobs_of) lists.
pub fn envelopes(
    subject: Subject<'_>,
    stored: &Frame,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Vec<Seen>, WireError> {
    let mut frame = frame(&stored.body)?;
    if frame.events.len() != stored.count as usize {
        let found = frame.events.len();
        let message = format!("it has {found} events instead of {}", stored.count);
        return Err(WireError::Malformed(message));
    }
    let Subject { run, workflow, registered, definition_hash, trace_id, graph } = subject;
    let writer = EnvelopeWriter {
        id: run.to_string(),
        name: workflow,
        registered,
        definition: definition_hash,
        at_ms: frame.at_ms,
        run: format!("\"{run}\""),
        workflow: quoted(workflow),
        trace_id: quoted(trace_id),
        timestamp: timestamp(frame.at_ms),
        graph,
    };
    let mut causes = Causes::new(graph);
    restore_deltas(stored, &mut frame.events)?;
    let mut seen = Vec::with_capacity(frame.events.len());
    for (id, mut event) in (stored.first..).zip(frame.events) {
        if event.is_stand_in {
            push(&mut seen, Seen::Elided { first: id, last: id });
            continue;
        }
        event.restore(blobs)?;
        let node = event.node();
        let parent = causes.next(id, &event.kind, node.as_deref());
        let json = writer.envelope(id, parent, node.as_deref(), &event);
        let (kind, at_ms) = (event.kind.into_owned(), frame.at_ms);
        seen.push(Seen::Event(Shown { id, kind, at_ms, json }));
    }
    Ok(seen)
}

/// Replaces stand-ins by their stream deltas. The stand-ins of elided deltas stay.
fn restore_deltas<'a>(stored: &'a Frame, events: &mut [ParsedEvent<'a>]) -> Result<(), WireError> {
    let mut stand_ins = (stored.first..).zip(events).filter(|(_, event)| event.is_stand_in);
    let mut deltas = match read_deltas(&stored.beside)? {
        Some(StoredDeltas::Events(bytes)) => frame(bytes)?.events.into_iter(),
        Some(StoredDeltas::Elided(_)) => return Ok(()),
        None => Vec::new().into_iter(),
    };
    stand_ins.try_for_each(|(id, event)| {
        *event = deltas.next().ok_or(WireError::MissingDelta(id))?;
        Ok(())
    })
}

/// Adds an item to a page. Adjacent elided ranges become one.
pub fn push<S: Borrow<Seen> + From<Seen>>(page: &mut Vec<S>, next: S) {
    let joined = page.last().and_then(|last| last.borrow().joined(next.borrow()));
    match joined {
        None => page.push(next),
        Some(both) => {
            page.pop();
            page.push(both.into());
        }
    }
}

/// A time as ISO 8601 in UTC, to the millisecond: `2026-01-31T23:59:59.000Z`.
pub fn timestamp(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Writes the envelopes of a frame. Has the values that all its events share, plain and as JSON.
struct EnvelopeWriter<'a> {
    id: String,
    name: &'a str,
    registered: bool,
    definition: &'a str,
    at_ms: u64,
    run: String,
    workflow: String,
    trace_id: String,
    timestamp: String,
    graph: Option<&'a Graph>,
}

impl EnvelopeWriter<'_> {
    fn envelope(
        &self,
        id: u64,
        parent: Option<u64>,
        node: Option<&str>,
        event: &ParsedEvent<'_>,
    ) -> String {
        let EnvelopeWriter { run, workflow, trace_id, timestamp, .. } = self;
        let fields = &event.payload.0;
        let length: usize = fields.iter().map(|(name, raw)| name.len() + raw.get().len() + 4).sum();
        let mut json = String::with_capacity(384 + workflow.len() + trace_id.len() + length);
        let _ = write!(json, "{{\"eventId\":{id},\"sequence\":{id},\"type\":");
        push_quoted(&mut json, &event.kind);
        let _ = write!(
            json,
            ",\"runId\":{run},\
             \"workflowId\":{workflow},\"timestamp\":\"{timestamp}\",\
             \"correlation\":{{\"traceId\":{trace_id}"
        );
        if let Some(parent) = parent {
            let _ = write!(json, ",\"parentEventId\":{parent}");
        }
        if let Some(wave) = event.payload.raw("wave") {
            let _ = write!(json, ",\"wave\":{wave}");
        } else if let Some(wave) = node.and_then(|node| self.wave(node)) {
            let _ = write!(json, ",\"wave\":{wave}");
        }
        let _ = write!(json, ",\"phase\":\"{PHASE}\"}},\"payload\":{{\"runId\":{run}");
        match self.expand_decision(event) {
            Some(whole) => json.push_str(&whole),
            None => {
                for (name, raw) in fields {
                    json.push(',');
                    push_quoted(&mut json, name);
                    json.push(':');
                    json.push_str(raw.get());
                }
            }
        }
        self.add_usual_fields(&mut json, event);
        json.push('}');
        if event.erased {
            json.push_str(",\"erased\":true");
        }
        json.push('}');
        json
    }

    /// The wave of a step or instance.
    fn wave(&self, node: &str) -> Option<u32> {
        let graph = self.graph?;
        graph.position(whole(node)).map(|position| graph.layer_of(position))
    }

    /// The fields of a decision that was written in the short form, each after a comma; `None`
    /// for other events.
    fn expand_decision(&self, event: &ParsedEvent<'_>) -> Option<String> {
        let fields = &event.payload;
        if event.kind != "governance.decided" || fields.raw(BRIEF).is_none() {
            return None;
        }
        let step = event.node()?;
        let known = Known {
            at_ms: self.at_ms,
            run: &self.id,
            workflow: self.name,
            step: &step,
            registered: self.registered,
            definition: self.definition,
        };
        let mut record = Map::new();
        for (name, raw) in &fields.0 {
            record.insert(name.to_string(), serde_json::from_str(raw.get()).ok()?);
        }
        let node = record.shift_remove("nodeId")?;
        let mut text = format!(",\"nodeId\":{node}");
        for (name, value) in expand(record, &known) {
            let _ = write!(text, ",{}:{value}", quoted(&name));
        }
        Some(text)
    }

    /// Adds the fields that the journal leaves out because they have their usual value.
    fn add_usual_fields(&self, json: &mut String, event: &ParsedEvent<'_>) {
        let missing = |name: &str| event.payload.raw(name).is_none();
        // Left out if it is this run.
        if event.kind == "node.provenance" && missing("sourceRunId") {
            let _ = write!(json, ",\"sourceRunId\":{}", self.run);
        }
        // For an erased event, a missing field may have been erased.
        if event.erased {
            return;
        }
        for (name, value) in usual(&event.kind).iter().filter(|(name, _)| missing(name)) {
            let _ = write!(json, ",\"{name}\":{value}");
        }
        match &*event.kind {
            // A node of a lens document has an envelope instead.
            "node.completed" if missing("envelope") && missing("outputs") => {
                json.push_str(",\"outputs\":{}");
            }
            // A wait with a cause is one before another attempt.
            "node.waiting" if missing("delayMs") && !missing("cause") => {
                json.push_str(",\"delayMs\":0");
            }
            _ => {}
        }
    }
}

/// Fields that public payloads of an event type always have, with the values for which the
/// journal leaves them out.
fn usual(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        "node.completed" => &[
            ("model", "null"),
            ("inputTokens", "0"),
            ("outputTokens", "0"),
            ("thinkingTokens", "0"),
            ("cost", "0.00"),
            ("coercions", "[]"),
        ],
        "node.skipped" => &[("reason", "\"\""), ("waitingReason", "null")],
        "node.provenance" => &[("transform", "null")],
        "governance.decided" => &[("blockedBy", "null")],
        "contract.violated" => &[("errors", "[]")],
        "moderation.flagged" => &[("decision", "{}")],
        "run.completed" => &[("outputs", "{}")],
        _ => &[],
    }
}

/// Quotes a text of the frame. A borrowed text has no escapes.
#[expect(clippy::ptr_arg, reason = "the function asks whether it is borrowed")]
fn push_quoted(json: &mut String, text: &Cow<'_, str>) {
    match text {
        Cow::Borrowed(plain) => {
            json.push('"');
            json.push_str(plain);
            json.push('"');
        }
        Cow::Owned(escaped) => json.push_str(&quoted(escaped)),
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text always serialises")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last day of its year. 400 years are
/// an era, and all eras have the same length.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const EPOCH: u64 = 719_468;
    let days = days + EPOCH;
    let (era, in_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

#[cfg(test)]
mod tests;
