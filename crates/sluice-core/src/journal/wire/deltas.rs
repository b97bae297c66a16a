//! Stream deltas, which are stored next to their frame because the fold does not need them.
//!
//! In place of each delta, a frame has a stand-in with the step, the index and the attempt. The
//! deltas are a frame of version 2 of their own, in the same order, stored in the same
//! transaction. A reader of the stream puts them back in place of their stand-ins. Once a run
//! has ended, its deltas can be [`elide`]d: then only their commitments are left,
//! `{"elided":[…]}`, so that no hash of an event changes.
//!
//! INVARIANT: a stand-in is the beginning of the payload of its delta, byte for byte, so the
//! hash covers what the fold has read.

use super::raw::{CommitmentKind, RawEvent, RawFrame, raw};
use super::{WireError, blobs, malformed};
use crate::hash::Hash;
use crate::hex;
use crate::port::store::Frame;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The type of the event of a stream delta.
pub(super) const DELTA: &str = "node.stream.delta";

/// The result of eliding the stream deltas of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elided {
    /// The bytes that replace the deltas: their commitments.
    pub beside: Vec<u8>,
    /// The elided events: their ids and the payloads of their stand-ins.
    pub gone: Vec<(u64, String)>,
    /// Blobs that only the elided events referred to.
    pub blobs: Vec<Hash>,
}

/// The stored stream deltas of a frame.
pub(in crate::journal) enum StoredDeltas<'a> {
    /// The deltas, encoded as a frame.
    Events(&'a [u8]),
    /// The commitments of elided deltas.
    Elided(Vec<Hash>),
}

/// Reads the stored stream deltas of a frame; `None` if it has none.
pub(in crate::journal) fn read(bytes: &[u8]) -> Result<Option<StoredDeltas<'_>>, WireError> {
    const ELIDED: &[u8] = b"{\"elided\":";
    #[derive(Deserialize)]
    struct Commitments<'a> {
        #[serde(borrow)]
        elided: Vec<&'a str>,
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    if !bytes.starts_with(ELIDED) {
        return Ok(Some(StoredDeltas::Events(bytes)));
    }
    let read: Commitments<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
    let hashes = read.elided.into_iter().map(Hash::parse).collect::<Option<Vec<Hash>>>();
    let hashes = hashes
        .ok_or_else(|| malformed("the commitment of an elided stream delta is not a valid hash"))?;
    if write(&hashes) != bytes {
        return Err(malformed("its elided stream deltas are not in canonical form"));
    }
    Ok(Some(StoredDeltas::Elided(hashes)))
}

fn write(commitments: &[Hash]) -> Vec<u8> {
    let mut out = b"{\"elided\":[".to_vec();
    for (index, hash) in commitments.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",\"" } else { b"\"" });
        hex::push(&mut out, &hash.0);
        out.push(b'"');
    }
    out.extend_from_slice(b"]}");
    out
}

/// Reads the raw events of a frame, with its stream deltas in place of their stand-ins.
pub fn whole(frame: &Frame) -> Result<RawFrame<'_>, WireError> {
    let mut raw_frame = raw(&frame.body)?;
    let mut deltas = match read(&frame.beside)? {
        None if raw_frame.stand_ins().next().is_some() => {
            let place = raw_frame.stand_ins().next().unwrap_or_default();
            return Err(WireError::MissingDelta(frame.first + place as u64));
        }
        None => return Ok(raw_frame),
        Some(StoredDeltas::Elided(hashes)) => Replacements::Elided(hashes.into_iter()),
        Some(StoredDeltas::Events(bytes)) => {
            let deltas = raw(bytes)?;
            if deltas.at_ms != raw_frame.at_ms || deltas.stand_ins().next().is_some() {
                return Err(malformed("its stream deltas belong to another frame"));
            }
            Replacements::Events(deltas.events.into_iter())
        }
    };
    for event in
        raw_frame.events.iter_mut().filter(|event| event.commitment_kind == CommitmentKind::StandIn)
    {
        *event = deltas.next(event)?;
    }
    if deltas.is_left() {
        return Err(malformed("it has more stream deltas than stand-ins"));
    }
    Ok(raw_frame)
}

/// The events or commitments that replace stand-ins.
enum Replacements<'a> {
    Events(std::vec::IntoIter<RawEvent<'a>>),
    Elided(std::vec::IntoIter<Hash>),
}

impl<'a> Replacements<'a> {
    fn next(&mut self, stand_in: &RawEvent<'a>) -> Result<RawEvent<'a>, WireError> {
        match self {
            Replacements::Elided(hashes) => {
                let hash = hashes.next().ok_or_else(|| malformed("a stream delta is missing"))?;
                Ok(RawEvent { commitment_kind: CommitmentKind::Elided(hash), ..*stand_in })
            }
            Replacements::Events(events) => {
                let event = events.next().ok_or_else(|| malformed("a stream delta is missing"))?;
                let begins = stand_in.payload.strip_suffix('}').is_some_and(|begin| {
                    event.payload.strip_prefix(begin).is_some_and(|rest| rest.starts_with(','))
                });
                if event.kind != stand_in.kind || !begins {
                    return Err(malformed("a stream delta does not match its stand-in"));
                }
                Ok(event)
            }
        }
    }

    fn is_left(&self) -> bool {
        match self {
            Replacements::Events(events) => events.len() > 0,
            Replacements::Elided(hashes) => hashes.len() > 0,
        }
    }
}

/// The hashes of the blobs that a frame and its stream deltas refer to, each once.
pub fn blobs_of(frame: &Frame) -> Result<Vec<Hash>, WireError> {
    let mut found = blobs(&frame.body)?;
    if let Some(StoredDeltas::Events(bytes)) = read(&frame.beside)? {
        found.extend(blobs(bytes)?);
        found.sort_unstable();
        found.dedup();
    }
    Ok(found)
}

/// Elides the stream deltas of a frame; `None` if there are none left.
pub fn elide(frame: &Frame) -> Result<Option<Elided>, WireError> {
    let Some(StoredDeltas::Events(bytes)) = read(&frame.beside)? else { return Ok(None) };
    let stand_ins = raw(&frame.body)?;
    let mut commitments = Vec::new();
    let mut gone = Vec::new();
    for ((id, event), stand_in) in (frame.first..).zip(whole(frame)?.events).zip(stand_ins.events) {
        if stand_in.commitment_kind == CommitmentKind::StandIn {
            let committed = event.commitment();
            commitments
                .push(committed.ok_or_else(|| malformed("a stream delta has no commitment"))?);
            gone.push((id, stand_in.payload.to_owned()));
        }
    }
    let used: BTreeSet<Hash> = blobs(&frame.body)?.into_iter().collect();
    let blobs = blobs(bytes)?.into_iter().filter(|hash| !used.contains(hash)).collect();
    Ok(Some(Elided { beside: write(&commitments), gone, blobs }))
}
