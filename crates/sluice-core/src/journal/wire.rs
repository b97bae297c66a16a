//! How the events of one append are written down: a frame.
//!
//! Version 1 is compact JSON, `{"v":1,"at":ms,"events":[{"type","payload"}]}`.
//! A payload holds what the public stream shows of the event, under the same
//! names, so that showing a frame copies bytes and encodes nothing again; the
//! run is not named, since whoever has a frame knows whose it is. What is
//! absent, empty or zero is left out, except figures that count from zero.
//!
//! A field of a payload longer than `BLOB_BYTES_MIN` is stored by its hash and
//! named in `blobs` beside the payload, where no author's value can stand.
//!
//! INVARIANT: `decode` gives back what `encode` was given. Two things are lost,
//! neither of which we write: the keys `runId` and `nodeId` of a decision or an
//! alert, which the envelope around them has already; and a field whose value
//! nests deeper than 127 levels can be written but not read.
//!
//! INVARIANT: what version 1 wrote is read for ever. A change of the format is
//! a new version; `decode` then knows both.

mod fields;
mod object;
mod read;
#[cfg(test)]
mod tests;
mod write;

use super::event::{Event, RunStarted};
use crate::plan::Plan;
use crate::port::store::{Blob, Hash};
use object::{FrameWriter, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) use fields::{Written, frame};

/// The version of the format that is written.
const VERSION: u64 = 1;

/// Why a frame could not be read. In each case the run is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A newer Sluice wrote it.
    #[error("the frame is of version {0}, this Sluice reads up to {VERSION}")]
    Newer(u64),
    /// A newer Sluice wrote it, or nobody did.
    #[error("there is no event `{0}`")]
    UnknownEvent(String),
    /// The frame refers to something that is not at hand.
    #[error("blob {0} is missing")]
    MissingBlob(Hash),
    /// The frame is not one, or not of this plan.
    #[error("the frame is unreadable: {0}")]
    Malformed(String),
}

/// A frame, and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The frame.
    pub body: Vec<u8>,
    /// The fields that were too long for it.
    pub blobs: Vec<Blob>,
}

/// What a frame holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// When it was written.
    pub at_ms: u64,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Writes the events of one append, decided at `at_ms` for a run of `plan`.
pub fn encode(events: &[Event], at_ms: u64, plan: &Plan) -> Encoded {
    let mut writer = FrameWriter::new(events.len());
    writer.out.extend_from_slice(b"{\"v\":1,\"at\":");
    json(&mut writer.out, &at_ms);
    writer.out.extend_from_slice(b",\"events\":[");
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            writer.out.push(b',');
        }
        write::event(&mut writer, event, plan);
    }
    writer.out.extend_from_slice(b"]}");
    let (mut body, blobs) = (writer.out, writer.blobs);
    if !blobs.is_empty() {
        // The long fields passed through here and left their room behind.
        body.shrink_to_fit();
    }
    Encoded { body, blobs }
}

/// The hashes of everything a frame refers to, each once.
pub fn blobs(body: &[u8]) -> Result<Vec<Hash>, WireError> {
    let text = std::str::from_utf8(body).map_err(malformed)?;
    // Inside a string the quotes would be escaped, so nearly no frame gets past this.
    if !text.contains("\"blobs\":") {
        return Ok(Vec::new());
    }
    let mut found = BTreeSet::new();
    for event in frame(body)?.events {
        for hash in event.blobs.values() {
            found.insert(fields::hash(hash)?);
        }
    }
    Ok(found.into_iter().collect())
}

/// The first event of a run: through it the plan is found that the others need.
pub fn started(body: &[u8], blobs: &BTreeMap<Hash, Vec<u8>>) -> Result<RunStarted, WireError> {
    let mut frame = frame(body)?;
    let Some(first) = frame.events.first_mut() else {
        return Err(malformed("it holds no event"));
    };
    first.restore(blobs)?;
    match read::event(first, None)? {
        Event::RunStarted(started) => Ok(*started),
        other => Err(malformed(format!("the first event is {}, not run.started", other.name()))),
    }
}

/// Reads a frame. Without a plan only events that name no step can be read.
/// `blobs` holds at least what [`blobs`] lists.
pub fn decode(
    body: &[u8],
    plan: Option<&Plan>,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Decoded, WireError> {
    let frame = frame(body)?;
    let mut events = Vec::with_capacity(frame.events.len());
    for mut event in frame.events {
        event.restore(blobs)?;
        events.push(read::event(&event, plan)?);
    }
    Ok(Decoded { at_ms: frame.at_ms, events })
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over by value")]
fn malformed(why: impl ToString) -> WireError {
    WireError::Malformed(why.to_string())
}
