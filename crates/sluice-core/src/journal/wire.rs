//! The format of a frame: the encoded events of one append.
//!
//! Version 2 is compact JSON, `{"v":2,"at":ms,"events":[{"type","salt","payload"}]}`. The salt
//! is 16 random bytes in hexadecimal, for the commitment to the payload that the event's hash
//! covers (see [`chain`](crate::journal::chain)). Version 1 had no salts, and its events have
//! no hashes. A payload has the fields of the public event, under the same names, so that a
//! stream copies bytes and encodes nothing again. It does not name the run, because every
//! reader of a frame knows it. Absent, empty and zero values are left out, except numbers that
//! count from zero.
//!
//! A field of a payload that is longer than `BLOB_BYTES_MIN` is stored as a blob. Its hash is
//! in `blobs` next to the payload, where no field of an author can be mistaken for it.
//!
//! Version 3 is for frames with stream deltas. In place of each delta the frame has a stand-in,
//! `{"type","beside":true,"payload"}`; the deltas are stored next to the frame (see
//! [`deltas`]). Version 2 had them inside the frame.
//!
//! A payload can be [`erase`]d. Then the event is `{"type","erased":true,
//! "commitment","payload"}`. The commitment replaces the erased payload, so that no hash
//! changes. The payload has only the fields that the fold needs.
//!
//! INVARIANT: `decode` returns the events that `encode` was called with. There are two
//! exceptions, which the engine never writes: the keys `runId` and `nodeId` of a decision or an
//! alert are dropped, because the envelope around them has them; and a value that nests deeper
//! than 127 levels can be written but not read.
//!
//! INVARIANT: frames of all versions can be read for ever. A change of the format is a new
//! version.

mod deltas;
mod erase;
pub(super) mod fields;
pub(super) mod object;
mod raw;
mod residue;
mod step;
#[cfg(test)]
mod tests;

use super::event::{Delta, Event, RunStarted, StepAt, StepEvent};
use crate::hash::Hash;
use crate::id::Entropy;
use crate::journal::chain::{Chain, HASH_BYTES, Link, Salt, commitment};
use crate::plan::Plan;
use crate::port::store::Blob;
use object::FrameWriter;
use std::collections::{BTreeMap, BTreeSet};

pub use deltas::{Elided, blobs_of, elide, whole};
pub use erase::{Erased, erase};
pub use raw::{CommitmentKind, RawEvent, RawFrame, raw};

pub(super) use deltas::{StoredDeltas, read as read_deltas};
pub(super) use fields::{ParsedEvent, frame};

/// The newest version of the format. A frame has the oldest version that can express it.
const VERSION: u64 = 3;

/// Why a frame cannot be read. In each case the engine does not touch the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A newer version of Sluice wrote the frame.
    #[error("the frame has format version {0}; this version of Sluice reads up to {VERSION}")]
    Newer(u64),
    /// A newer version of Sluice wrote the event, or the frame is damaged.
    #[error("unknown event type `{0}`")]
    UnknownEvent(String),
    /// The caller did not pass a blob that the frame refers to.
    #[error("blob {0} is missing")]
    MissingBlob(Hash),
    /// The stream delta of this event, and perhaps of later ones, was not passed or is lost.
    #[error("the stream delta of event {0} is missing")]
    MissingDelta(u64),
    /// The bytes are not a valid frame, or not one of this plan.
    #[error("the frame cannot be read: {0}")]
    Malformed(String),
}

/// An encoded frame and its blobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// The frame.
    pub body: Vec<u8>,
    /// The stream deltas, which are stored next to the frame; empty if there are none.
    pub beside: Vec<u8>,
    /// The fields that are stored as blobs.
    pub blobs: Vec<Blob>,
    /// The hash of each event, 32 bytes each.
    pub chain: Vec<u8>,
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// When it was written.
    pub at_ms: u64,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Encodes the events of one append, which were decided at `at_ms` for a run of `plan`. The
/// events are linked to the end of the hash chain in `link`, which is advanced. The salts come
/// from `entropy`.
pub fn encode(
    events: &[Event],
    at_ms: u64,
    plan: &Plan,
    link: &mut Link,
    entropy: &mut dyn Entropy,
) -> Encoded {
    let deltas = events.iter().filter(|event| delta(event).is_some()).count();
    let mut writer = FrameWriter::new(events.len());
    let mut delta_writer = FrameWriter::new(deltas);
    let mut hashes = Chain::new(link);
    let mut chain = Vec::with_capacity(events.len() * HASH_BYTES);
    writer.begin(if deltas > 0 { 3 } else { 2 }, at_ms);
    delta_writer.begin(2, at_ms);
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            writer.out.push(b',');
        }
        let salt = salt(entropy);
        let target = match delta(event) {
            None => &mut writer,
            Some((at, delta)) => {
                step::write_stand_in(&mut writer, at, delta, plan);
                if delta_writer.is_begun() {
                    delta_writer.out.push(b',');
                }
                &mut delta_writer
            }
        };
        step::write_event(target, event, &salt, plan);
        let payload = &target.out[target.payload.clone()];
        let committed = commitment(&salt, payload, &target.out[target.moved_at.clone()]);
        chain.extend_from_slice(&hashes.add(event.name(), at_ms, committed).0);
    }
    let (body, mut blobs) = writer.end();
    let mut encoded = Encoded { body, beside: Vec::new(), blobs: Vec::new(), chain };
    if deltas > 0 {
        let (bytes, moved) = delta_writer.end();
        encoded.beside = bytes;
        blobs.extend(moved);
    }
    encoded.blobs = blobs;
    encoded
}

/// The stream delta of an event, if it is one.
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

/// The hashes of the blobs that the body of a frame refers to, each once.
pub fn blobs(body: &[u8]) -> Result<Vec<Hash>, WireError> {
    let text = std::str::from_utf8(body).map_err(malformed)?;
    // Most frames have no blobs. Inside a string the quotes would be escaped.
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

/// The first event of a run. The caller finds the plan through it, which `decode` needs.
pub fn started(body: &[u8], blobs: &BTreeMap<Hash, Vec<u8>>) -> Result<RunStarted, WireError> {
    open(body)?.started(blobs)
}

/// Decodes a frame without its stream deltas. Without a plan, events of steps cannot be decoded.
/// `blobs` must contain the blobs that [`blobs`] lists.
pub fn decode(
    body: &[u8],
    plan: Option<&Plan>,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Decoded, WireError> {
    open(body)?.decode(plan, blobs)
}

/// A parsed frame whose events are not decoded yet.
pub struct Opened<'a>(fields::Frame<'a>);

/// Parses a frame, for a caller that decodes its first event before the others.
pub fn open(body: &[u8]) -> Result<Opened<'_>, WireError> {
    frame(body).map(Opened)
}

impl<'a> Opened<'a> {
    /// See [`started`].
    pub fn started(&mut self, blobs: &'a BTreeMap<Hash, Vec<u8>>) -> Result<RunStarted, WireError> {
        let Some(first) = self.0.events.first_mut() else {
            return Err(malformed("it has no events"));
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
