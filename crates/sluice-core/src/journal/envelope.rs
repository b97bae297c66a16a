//! Events as the world sees them: one line of JSON each.
//!
//! What a frame holds is copied, never encoded again, so that a stream shows
//! exactly what was journalled and costs little more than the bytes. What the
//! journal leaves out because it goes without saying is said here: a reader
//! finds every field of an event's payload.

mod cause;

use super::wire::{Beside, WireError, Written, frame, read_beside};
use crate::id::RunId;
use crate::plan::graph::Graph;
use crate::port::store::{Frame, Hash};
use cause::{Causes, whole};
use serde_json::Map;
use sluice_govern::decision::{BRIEF, Known, expand};
use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where events come from: the engine journals them. What a transport or a
/// client adds says so itself.
const PHASE: &str = "engine";

/// An event, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its place in the run's journal, from 1.
    pub id: u64,
    /// Its name.
    pub kind: String,
    /// When it was journalled.
    pub at_ms: u64,
    /// The envelope, in one line.
    pub json: String,
}

/// What a reader is shown of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// An event.
    Event(Shown),
    /// Parts of answers that were elided: every event from the first to the last.
    Elided {
        /// The id of the first.
        first: u64,
        /// The id of the last.
        last: u64,
    },
}

impl Seen {
    /// How far a reader has come with it: the cursor to go on from.
    pub fn id(&self) -> u64 {
        match self {
            Seen::Event(shown) => shown.id,
            Seen::Elided { last, .. } => *last,
        }
    }

    /// Both as one, where both are elided and nothing is between them.
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

/// What the envelopes of a run say of it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The run.
    pub run: RunId,
    /// What it is a run of.
    pub workflow: &'a str,
    /// Whether that comes from the registry.
    pub registered: bool,
    /// SHA-256 of it.
    pub definition_hash: &'a str,
    /// The trace it belongs to.
    pub trace_id: &'a str,
    /// Its steps: their waves, and what they depend on. None of a run whose
    /// definition is not at hand.
    pub graph: Option<&'a Graph>,
}

/// The envelopes of a frame's events, with those that stand beside it in their
/// places. `blobs` holds at least what [`wire::blobs_of`](super::wire::blobs_of) lists.
pub fn envelopes(
    subject: Subject<'_>,
    stored: &Frame,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Vec<Seen>, WireError> {
    let mut frame = frame(&stored.body)?;
    if frame.events.len() != stored.count as usize {
        let held = frame.events.len();
        let message = format!("it holds {held} events instead of {}", stored.count);
        return Err(WireError::Malformed(message));
    }
    let Subject { run, workflow, registered, definition_hash, trace_id, graph } = subject;
    let about = About {
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
    put_back(stored, &mut frame.events)?;
    let mut seen = Vec::with_capacity(frame.events.len());
    for (id, mut event) in (stored.first..).zip(frame.events) {
        if event.beside {
            push(&mut seen, Seen::Elided { first: id, last: id });
            continue;
        }
        event.restore(blobs)?;
        let node = event.node();
        let parent = causes.next(id, &event.kind, node.as_deref());
        let json = about.envelope(id, parent, node.as_deref(), &event);
        let (kind, at_ms) = (event.kind.into_owned(), frame.at_ms);
        seen.push(Seen::Event(Shown { id, kind, at_ms, json }));
    }
    Ok(seen)
}

/// Puts what stands beside a frame into its place. Stand-ins are left only where
/// what they stood for is elided.
fn put_back<'a>(stored: &'a Frame, events: &mut [Written<'a>]) -> Result<(), WireError> {
    let mut places = (stored.first..).zip(events).filter(|(_, event)| event.beside);
    let mut beside = match read_beside(&stored.beside)? {
        Some(Beside::Events(bytes)) => frame(bytes)?.events.into_iter(),
        Some(Beside::Elided(_)) => return Ok(()),
        None => Vec::new().into_iter(),
    };
    places.try_for_each(|(id, event)| {
        *event = beside.next().ok_or(WireError::MissingBeside(id))?;
        Ok(())
    })
}

/// Adds to what a reader is shown. Elided events that follow each other are told
/// as one range.
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

/// What is the same for every event of a frame, plain and as JSON.
struct About<'a> {
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

impl About<'_> {
    fn envelope(
        &self,
        id: u64,
        parent: Option<u64>,
        node: Option<&str>,
        event: &Written<'_>,
    ) -> String {
        let About { run, workflow, trace_id, timestamp, .. } = self;
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
        match self.put_back(event) {
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
        self.spell_out(&mut json, event);
        json.push('}');
        if event.erased {
            json.push_str(",\"erased\":true");
        }
        json.push('}');
        json
    }

    /// The wave of a step, or of the step of an instance.
    fn wave(&self, node: &str) -> Option<u32> {
        let graph = self.graph?;
        graph.position(whole(node)).map(|position| graph.layer_of(position))
    }

    /// The fields of a decision that was written in brief, each after a comma;
    /// none of any other event.
    fn put_back(&self, event: &Written<'_>) -> Option<String> {
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

    /// What the journal leaves out because it is what it usually is.
    fn spell_out(&self, json: &mut String, event: &Written<'_>) {
        let missing = |name: &str| event.payload.raw(name).is_none();
        // Where it is this run.
        if event.kind == "node.provenance" && missing("sourceRunId") {
            let _ = write!(json, ",\"sourceRunId\":{}", self.run);
        }
        // Of an erased event nobody knows what else it said.
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
            // Of waits, only one before another attempt has a cause.
            "node.waiting" if missing("delayMs") && !missing("cause") => {
                json.push_str(",\"delayMs\":0");
            }
            _ => {}
        }
    }
}

/// What the payload of an event always shows, and the journal leaves out where
/// it is this.
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

/// Quotes a text of the frame again: one that could be borrowed has no escapes.
#[expect(clippy::ptr_arg, reason = "whether it is borrowed is what matters")]
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
/// Years are taken to begin in March, so that the leap day is the last of its
/// year; 400 of them are an era, always of the same length.
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
