//! The raw bytes of a frame, which its hashes are computed from.
//!
//! INVARIANT: a frame of version 2 or 3 is accepted only if it is in canonical form, byte for
//! byte. No hash covers a blank, the order of keys or an extra key.

use super::deltas::DELTA;
use super::fields::read_version;
use super::{WireError, malformed};
use crate::hash::Hash;
use crate::hex;
use crate::journal::chain::{Salt, commitment};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The raw content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame<'a> {
    /// The version of the format.
    pub version: u64,
    /// When it was written.
    pub at_ms: u64,
    /// Its events, in order.
    pub events: Vec<RawEvent<'a>>,
}

/// The raw content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Its type.
    pub kind: &'a str,
    /// The commitment to its payload.
    pub(crate) commitment_kind: CommitmentKind,
    /// The payload, or the rest of an erased one.
    pub payload: &'a str,
    /// The hashes of the fields that are stored as blobs.
    pub blobs: Option<&'a str>,
}

/// How an event commits to its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitmentKind {
    /// The commitment is computed with this salt.
    Salt(Salt),
    /// The payload was erased; this is its commitment.
    Erased(Hash),
    /// There is no commitment: events of version 1 have no hashes.
    None,
    /// There is no commitment, and the payload was erased.
    ErasedNone,
    /// The event is the stand-in of a stream delta, which has the commitment.
    StandIn,
    /// The event is the stand-in of an elided stream delta; this is the commitment to it.
    Elided(Hash),
}

impl CommitmentKind {
    /// Whether the payload was erased or elided.
    pub(crate) fn is_erased(self) -> bool {
        matches!(
            self,
            CommitmentKind::Erased(_) | CommitmentKind::ErasedNone | CommitmentKind::Elided(_)
        )
    }
}

impl RawEvent<'_> {
    /// The commitment to the payload; `None` for events of version 1 and for stand-ins.
    pub fn commitment(&self) -> Option<Hash> {
        match self.commitment_kind {
            CommitmentKind::Salt(salt) => {
                let blobs = self.blobs.unwrap_or_default();
                Some(commitment(&salt, self.payload.as_bytes(), blobs.as_bytes()))
            }
            CommitmentKind::Erased(committed) | CommitmentKind::Elided(committed) => {
                Some(committed)
            }
            CommitmentKind::None | CommitmentKind::ErasedNone | CommitmentKind::StandIn => None,
        }
    }

    /// Writes the event as a frame holds it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.kind.as_bytes());
        out.push(b'"');
        match self.commitment_kind {
            CommitmentKind::Salt(salt) => {
                out.extend_from_slice(b",\"salt\":\"");
                hex::push(out, &salt);
                out.push(b'"');
            }
            CommitmentKind::Erased(committed) => {
                out.extend_from_slice(b",\"erased\":true,\"commitment\":\"");
                hex::push(out, &committed.0);
                out.push(b'"');
            }
            CommitmentKind::None => {}
            CommitmentKind::ErasedNone => out.extend_from_slice(b",\"erased\":true"),
            CommitmentKind::StandIn | CommitmentKind::Elided(_) => {
                out.extend_from_slice(b",\"beside\":true");
            }
        }
        out.extend_from_slice(b",\"payload\":");
        out.extend_from_slice(self.payload.as_bytes());
        if let Some(blobs) = self.blobs {
            out.extend_from_slice(b",\"blobs\":");
            out.extend_from_slice(blobs.as_bytes());
        }
        out.push(b'}');
    }
}

impl RawFrame<'_> {
    /// The positions of stand-ins, from 0.
    pub(super) fn stand_ins(&self) -> impl Iterator<Item = usize> {
        let events = self.events.iter().enumerate();
        events
            .filter(|(_, event)| event.commitment_kind == CommitmentKind::StandIn)
            .map(|(position, _)| position)
    }

    /// Writes the frame.
    pub(super) fn write(&self) -> Vec<u8> {
        let head = format!("{{\"v\":{},\"at\":{},\"events\":[", self.version, self.at_ms);
        let mut bytes = head.into_bytes();
        for (index, event) in self.events.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            event.write(&mut bytes);
        }
        bytes.extend_from_slice(b"]}");
        bytes
    }
}

/// Reads the raw content of a frame.
pub fn raw(body: &[u8]) -> Result<RawFrame<'_>, WireError> {
    #[derive(Deserialize)]
    struct WrittenFrame<'a> {
        v: u64,
        at: u64,
        #[serde(borrow)]
        events: Vec<WrittenEvent<'a>>,
    }
    #[derive(Deserialize)]
    struct WrittenEvent<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        salt: Option<&'a str>,
        #[serde(default)]
        erased: bool,
        commitment: Option<&'a str>,
        #[serde(default)]
        beside: bool,
        #[serde(borrow)]
        payload: &'a RawValue,
        #[serde(borrow)]
        blobs: Option<&'a RawValue>,
    }
    let written: WrittenFrame<'_> =
        read_version(body, serde_json::from_slice(body), |written: &WrittenFrame<'_>| written.v)?;
    let commitment_kind = |event: &WrittenEvent<'_>| -> Result<CommitmentKind, WireError> {
        if event.beside {
            let plain = (event.salt, event.erased, event.commitment) == (None, false, None);
            let known = written.v == 3 && event.kind == DELTA && plain;
            return if known {
                Ok(CommitmentKind::StandIn)
            } else {
                Err(malformed("a stand-in is not valid"))
            };
        }
        match (written.v, event.salt, event.erased, event.commitment) {
            (1, None, false, None) => Some(CommitmentKind::None),
            (1, None, true, None) => Some(CommitmentKind::ErasedNone),
            (2 | 3, Some(salt), false, None) => hex::parse(salt).map(CommitmentKind::Salt),
            (2 | 3, None, true, Some(committed)) => {
                Hash::parse(committed).map(CommitmentKind::Erased)
            }
            _ => None,
        }
        .ok_or_else(|| malformed(format_args!("{}: the commitment is not valid", event.kind)))
    };
    let mut events = Vec::with_capacity(written.events.len());
    for event in &written.events {
        let (payload, blobs) = (event.payload.get(), event.blobs.map(RawValue::get));
        events.push(RawEvent {
            kind: event.kind,
            commitment_kind: commitment_kind(event)?,
            payload,
            blobs,
        });
    }
    let frame = RawFrame { version: written.v, at_ms: written.at, events };
    // Version 3 is for frames with stream deltas, and only for those.
    if (frame.version > 2) != frame.stand_ins().next().is_some() {
        return Err(malformed("its version does not match its content"));
    }
    // Frames of version 1 have no hashes, so their form does not matter.
    if frame.version > 1 && frame.write() != body {
        return Err(malformed("it is not in canonical form"));
    }
    Ok(frame)
}
