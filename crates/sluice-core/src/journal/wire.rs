//! How the events of one append are written down: a frame.
//!
//! Version 2 is compact JSON, `{"v":2,"at":ms,"events":[{"type","salt","payload"}]}`.
//! The salt is 16 random bytes in hexadecimal, for the commitment to the payload
//! that the event's hash covers (see [`evidence::event`](crate::evidence::event)).
//! Version 1 had no salts, and its events have no hashes. A payload holds what the public stream shows of the event, under the same
//! names, so that showing a frame copies bytes and encodes nothing again; the
//! run is not named, since whoever has a frame knows whose it is. What is
//! absent, empty or zero is left out, except figures that count from zero.
//!
//! A field of a payload longer than `BLOB_BYTES_MIN` is stored by its hash and
//! named in `blobs` beside the payload, where no author's value can stand.
//!
//! Version 3 is that of frames with parts of answers: at their places are stand-ins,
//! `{"type","beside":true,"payload"}`, and the parts are kept beside the frame
//! (see [`beside`]). Version 2 had them inside.
//!
//! A payload can be [`erase`]d. Then the event is `{"type","erased":true,
//! "commitment","payload"}`: the commitment stands for what was there, so that
//! the hashes stay as they are, and the payload is what the fold cannot do without.
//!
//! INVARIANT: `decode` gives back what `encode` was given. Two things are lost,
//! neither of which we write: the keys `runId` and `nodeId` of a decision or an
//! alert, which the envelope around them has already; and a field whose value
//! nests deeper than 127 levels can be written but not read.
//!
//! INVARIANT: what any version wrote is read for ever. A change of the format is
//! a new version; `decode` then knows them all.

mod beside;
mod erase;
pub(super) mod fields;
pub(super) mod object;
mod raw;
mod residue;
mod step;
#[cfg(test)]
mod tests;

use super::event::{Delta, Event, RunStarted, StepAt, StepEvent};
use crate::journal::chain::{Chain, HASH_BYTES, Link, Salt, commitment};
use crate::plan::Plan;
use crate::port::Entropy;
use crate::port::store::{Blob, Hash};
use object::FrameWriter;
use std::collections::{BTreeMap, BTreeSet};

pub use beside::{Elided, blobs_of, elide, whole};
pub use erase::{Erased, erase};
pub use raw::{Bond, RawEvent, RawFrame, raw};

pub(super) use beside::{Beside, read as read_beside};
pub(super) use fields::{Written, frame};

/// The newest version of the format. A frame is of the oldest that can say what it holds.
const VERSION: u64 = 3;

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
    /// What stands beside the frame is not at hand: this event, and perhaps others.
    #[error("event {0} is missing beside its frame")]
    MissingBeside(u64),
    /// The frame is not one, or not of this plan.
    #[error("the frame is unreadable: {0}")]
    Malformed(String),
}

/// A frame, and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// The frame.
    pub body: Vec<u8>,
    /// The parts of answers that stand beside it; empty where there are none.
    pub beside: Vec<u8>,
    /// The fields that were too long for them.
    pub blobs: Vec<Blob>,
    /// The hash of each event, 32 bytes each.
    pub chain: Vec<u8>,
}

/// What a frame holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// When it was written.
    pub at_ms: u64,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Writes the events of one append, decided at `at_ms` for a run of `plan`. The
/// link says where in the run's chain they go, and is moved along; `entropy`
/// gives the salts.
pub fn encode(
    events: &[Event],
    at_ms: u64,
    plan: &Plan,
    link: &mut Link,
    entropy: &mut dyn Entropy,
) -> Encoded {
    let parts = events.iter().filter(|event| delta(event).is_some()).count();
    let mut writer = FrameWriter::new(events.len());
    let mut beside = FrameWriter::new(parts);
    let mut hashes = Chain::new(link);
    let mut chain = Vec::with_capacity(events.len() * HASH_BYTES);
    writer.begin(if parts > 0 { 3 } else { 2 }, at_ms);
    beside.begin(2, at_ms);
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            writer.out.push(b',');
        }
        let salt = salt(entropy);
        let target = match delta(event) {
            None => &mut writer,
            Some((at, part)) => {
                step::write_stand_in(&mut writer, at, part, plan);
                if beside.is_begun() {
                    beside.out.push(b',');
                }
                &mut beside
            }
        };
        step::write_event(target, event, &salt, plan);
        let payload = &target.out[target.payload.clone()];
        let committed = commitment(&salt, payload, &target.out[target.moved_at.clone()]);
        chain.extend_from_slice(&hashes.add(event.name(), at_ms, committed).0);
    }
    let (body, mut blobs) = writer.end();
    let mut encoded = Encoded { body, beside: Vec::new(), blobs: Vec::new(), chain };
    if parts > 0 {
        let (bytes, moved) = beside.end();
        encoded.beside = bytes;
        blobs.extend(moved);
    }
    encoded.blobs = blobs;
    encoded
}

/// A part of an answer, which is kept beside the frame.
fn delta(event: &Event) -> Option<(StepAt, &Delta)> {
    match event {
        Event::Step(at, StepEvent::Delta(delta)) => Some((*at, delta)),
        _ => None,
    }
}

fn salt(entropy: &mut dyn Entropy) -> Salt {
    let bits = u128::from(entropy.bits()) << 64 | u128::from(entropy.bits());
    bits.to_be_bytes()
}

/// The hashes of everything a frame refers to by itself, each once.
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
    open(body)?.started(blobs)
}

/// Reads a frame, without what stands beside it. Without a plan only events that name no step can be read.
/// `blobs` holds at least what [`blobs`] lists.
pub fn decode(
    body: &[u8],
    plan: Option<&Plan>,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Decoded, WireError> {
    open(body)?.decode(plan, blobs)
}

/// A frame whose events can be read.
pub struct Opened<'a>(fields::Frame<'a>);

/// Opens a frame: for who reads its first event before the others.
pub fn open(body: &[u8]) -> Result<Opened<'_>, WireError> {
    frame(body).map(Opened)
}

impl<'a> Opened<'a> {
    /// See [`started`].
    pub fn started(&mut self, blobs: &'a BTreeMap<Hash, Vec<u8>>) -> Result<RunStarted, WireError> {
        let Some(first) = self.0.events.first_mut() else {
            return Err(malformed("it holds no event"));
        };
        first.restore(blobs)?;
        match step::read_event(first, None)? {
            Event::RunStarted(started) => Ok(*started),
            other => {
                Err(malformed(format!("the first event is {}, not run.started", other.name())))
            }
        }
    }

    /// See [`decode`].
    pub fn decode(
        self,
        plan: Option<&Plan>,
        blobs: &'a BTreeMap<Hash, Vec<u8>>,
    ) -> Result<Decoded, WireError> {
        let Opened(frame) = self;
        let mut events = Vec::with_capacity(frame.events.len());
        for mut event in frame.events {
            event.restore(blobs)?;
            events.push(step::read_event(&event, plan)?);
        }
        Ok(Decoded { at_ms: frame.at_ms, events })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over by value")]
pub(super) fn malformed(why: impl ToString) -> WireError {
    WireError::Malformed(why.to_string())
}
