//! What stands beside a frame: the parts of answers, which the fold does not need.
//!
//! A frame has a stand-in at the place of each part, which names the step, the
//! part's index and the attempt. The events themselves are a frame of version 2
//! of their own, in the same order, stored beside it in the same transaction, and
//! put back where someone wants to see them. Once a run has ended they can be
//! [`elide`]d: then only what commits to them is left, `{"elided":[…]}`, so that
//! the hashes of all events stay as they are.
//!
//! INVARIANT: a stand-in is the beginning of the payload it stands for, byte for
//! byte. What the fold read is what was hashed.

use super::raw::{Bond, RawEvent, RawFrame, raw};
use super::{WireError, blobs, malformed};
use crate::hex;
use crate::port::store::{Frame, Hash};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The event that is kept beside.
pub(super) const DELTA: &str = "node.stream.delta";

/// A frame whose parts of answers are elided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elided {
    /// What is left beside the frame.
    pub beside: Vec<u8>,
    /// The events that went: their ids, and the stand-ins that are left of them.
    pub gone: Vec<(u64, String)>,
    /// What they referred to and the frame does not.
    pub blobs: Vec<Hash>,
}

/// What stands beside a frame.
pub(in crate::journal) enum Beside<'a> {
    /// The events, as a frame.
    Events(&'a [u8]),
    /// What committed to them.
    Elided(Vec<Hash>),
}

/// Reads what stands beside a frame; none where nothing does.
pub(in crate::journal) fn read(bytes: &[u8]) -> Result<Option<Beside<'_>>, WireError> {
    const ELIDED: &[u8] = b"{\"elided\":";
    #[derive(Deserialize)]
    struct Left<'a> {
        #[serde(borrow)]
        elided: Vec<&'a str>,
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    if !bytes.starts_with(ELIDED) {
        return Ok(Some(Beside::Events(bytes)));
    }
    let left: Left<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
    let hashes = left.elided.into_iter().map(Hash::parse).collect::<Option<Vec<Hash>>>();
    let hashes = hashes.ok_or_else(|| malformed("what commits to a part is no hash"))?;
    if write(&hashes) != bytes {
        return Err(malformed("what is beside it is not written as that is"));
    }
    Ok(Some(Beside::Elided(hashes)))
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

/// Reads a frame down to its bytes, with what stands beside it in its place.
pub fn whole(frame: &Frame) -> Result<RawFrame<'_>, WireError> {
    let mut raw_frame = raw(&frame.body)?;
    let mut beside = match read(&frame.beside)? {
        None if raw_frame.stand_ins().next().is_some() => {
            let place = raw_frame.stand_ins().next().unwrap_or_default();
            return Err(WireError::MissingBeside(frame.first + place as u64));
        }
        None => return Ok(raw_frame),
        Some(Beside::Elided(hashes)) => Parts::Elided(hashes.into_iter()),
        Some(Beside::Events(bytes)) => {
            let beside = raw(bytes)?;
            if beside.at_ms != raw_frame.at_ms || beside.stand_ins().next().is_some() {
                return Err(malformed("what is beside it belongs to another frame"));
            }
            Parts::Events(beside.events.into_iter())
        }
    };
    for event in raw_frame.events.iter_mut().filter(|event| event.bond == Bond::Beside) {
        *event = beside.next(event)?;
    }
    if beside.is_left() {
        return Err(malformed("more is beside it than it has a place for"));
    }
    Ok(raw_frame)
}

/// What is put into the places of stand-ins.
enum Parts<'a> {
    Events(std::vec::IntoIter<RawEvent<'a>>),
    Elided(std::vec::IntoIter<Hash>),
}

impl<'a> Parts<'a> {
    fn next(&mut self, stand_in: &RawEvent<'a>) -> Result<RawEvent<'a>, WireError> {
        match self {
            Parts::Elided(hashes) => {
                let hash = hashes.next().ok_or_else(|| malformed("a part is missing beside it"))?;
                Ok(RawEvent { bond: Bond::Elided(hash), ..*stand_in })
            }
            Parts::Events(events) => {
                let event =
                    events.next().ok_or_else(|| malformed("a part is missing beside it"))?;
                let begins = stand_in.payload.strip_suffix('}').is_some_and(|begin| {
                    event.payload.strip_prefix(begin).is_some_and(|rest| rest.starts_with(','))
                });
                if event.kind != stand_in.kind || !begins {
                    return Err(malformed("what is beside it is not what it stands for"));
                }
                Ok(event)
            }
        }
    }

    fn is_left(&self) -> bool {
        match self {
            Parts::Events(events) => events.len() > 0,
            Parts::Elided(hashes) => hashes.len() > 0,
        }
    }
}

/// The hashes of everything a frame and what stands beside it refer to, each once.
pub fn blobs_of(frame: &Frame) -> Result<Vec<Hash>, WireError> {
    let mut found = blobs(&frame.body)?;
    if let Some(Beside::Events(bytes)) = read(&frame.beside)? {
        found.extend(blobs(bytes)?);
        found.sort_unstable();
        found.dedup();
    }
    Ok(found)
}

/// Elides what stands beside a frame; none where nothing is left to elide.
pub fn elide(frame: &Frame) -> Result<Option<Elided>, WireError> {
    let Some(Beside::Events(bytes)) = read(&frame.beside)? else { return Ok(None) };
    let stand_ins = raw(&frame.body)?;
    let mut commitments = Vec::new();
    let mut gone = Vec::new();
    for ((id, event), stand_in) in (frame.first..).zip(whole(frame)?.events).zip(stand_ins.events) {
        if stand_in.bond == Bond::Beside {
            let committed = event.commitment();
            commitments.push(committed.ok_or_else(|| malformed("a part has no commitment"))?);
            gone.push((id, stand_in.payload.to_owned()));
        }
    }
    let used: BTreeSet<Hash> = blobs(&frame.body)?.into_iter().collect();
    let blobs = blobs(bytes)?.into_iter().filter(|hash| !used.contains(hash)).collect();
    Ok(Some(Elided { beside: write(&commitments), gone, blobs }))
}
