//! A frame as its bytes stand: what hashes are made from.
//!
//! INVARIANT: a frame of version 2 or 3 reads here only if it is byte for byte what
//! this format writes. A blank, another order of keys or one key more would be
//! a change that no hash covers.

use super::beside::DELTA;
use super::fields::read_version;
use super::{WireError, malformed};
use crate::hash::Hash;
use crate::hex;
use crate::journal::chain::{Salt, commitment};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame<'a> {
    /// The version of the format.
    pub version: u64,
    /// When it was written.
    pub at_ms: u64,
    /// Its events, in order.
    pub events: Vec<RawEvent<'a>>,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Its name.
    pub kind: &'a str,
    /// How its payload is committed to.
    pub bond: Bond,
    /// The payload, or what is left of it.
    pub payload: &'a str,
    /// The hashes of what was too long for the payload.
    pub blobs: Option<&'a str>,
}

/// How the payload of an event is committed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// By this salt.
    Salt(Salt),
    /// The payload was erased; this is what committed to it.
    Erased(Hash),
    /// Not at all: it is older than hashes.
    None,
    /// Not at all, and it was erased.
    ErasedNone,
    /// It only stands for an event that is kept beside the frame.
    Beside,
    /// It stands for one that was kept there; this is what committed to it.
    Elided(Hash),
}

impl Bond {
    /// Whether the payload is gone.
    pub fn is_erased(self) -> bool {
        matches!(self, Bond::Erased(_) | Bond::ErasedNone | Bond::Elided(_))
    }
}

impl RawEvent<'_> {
    /// What commits to the payload; none for an event older than hashes.
    pub fn commitment(&self) -> Option<Hash> {
        match self.bond {
            Bond::Salt(salt) => {
                let blobs = self.blobs.unwrap_or_default();
                Some(commitment(&salt, self.payload.as_bytes(), blobs.as_bytes()))
            }
            Bond::Erased(committed) | Bond::Elided(committed) => Some(committed),
            Bond::None | Bond::ErasedNone | Bond::Beside => None,
        }
    }

    /// Writes the event as a frame holds it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.kind.as_bytes());
        out.push(b'"');
        match self.bond {
            Bond::Salt(salt) => {
                out.extend_from_slice(b",\"salt\":\"");
                hex::push(out, &salt);
                out.push(b'"');
            }
            Bond::Erased(committed) => {
                out.extend_from_slice(b",\"erased\":true,\"commitment\":\"");
                hex::push(out, &committed.0);
                out.push(b'"');
            }
            Bond::None => {}
            Bond::ErasedNone => out.extend_from_slice(b",\"erased\":true"),
            Bond::Beside | Bond::Elided(_) => out.extend_from_slice(b",\"beside\":true"),
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
    /// The places, from 0, of events that are kept beside the frame.
    pub(super) fn stand_ins(&self) -> impl Iterator<Item = usize> {
        let events = self.events.iter().enumerate();
        events.filter(|(_, event)| event.bond == Bond::Beside).map(|(place, _)| place)
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

/// Reads a frame down to its bytes.
pub fn raw(body: &[u8]) -> Result<RawFrame<'_>, WireError> {
    #[derive(Deserialize)]
    struct Outside<'a> {
        v: u64,
        at: u64,
        #[serde(borrow)]
        events: Vec<Inside<'a>>,
    }
    #[derive(Deserialize)]
    struct Inside<'a> {
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
    let outside: Outside<'_> =
        read_version(body, serde_json::from_slice(body), |outside: &Outside<'_>| outside.v)?;
    let bond = |inside: &Inside<'_>| -> Result<Bond, WireError> {
        if inside.beside {
            let plain = (inside.salt, inside.erased, inside.commitment) == (None, false, None);
            let known = outside.v == 3 && inside.kind == DELTA && plain;
            return if known { Ok(Bond::Beside) } else { Err(malformed("a stand-in is none")) };
        }
        match (outside.v, inside.salt, inside.erased, inside.commitment) {
            (1, None, false, None) => Some(Bond::None),
            (1, None, true, None) => Some(Bond::ErasedNone),
            (2 | 3, Some(salt), false, None) => hex::parse(salt).map(Bond::Salt),
            (2 | 3, None, true, Some(committed)) => Hash::parse(committed).map(Bond::Erased),
            _ => None,
        }
        .ok_or_else(|| malformed(format_args!("{}: it is bound to nothing", inside.kind)))
    };
    let mut events = Vec::with_capacity(outside.events.len());
    for inside in &outside.events {
        let (payload, blobs) = (inside.payload.get(), inside.blobs.map(RawValue::get));
        events.push(RawEvent { kind: inside.kind, bond: bond(inside)?, payload, blobs });
    }
    let frame = RawFrame { version: outside.v, at_ms: outside.at, events };
    // It is of version 3 because something is beside it, and else is not.
    if (frame.version > 2) != frame.stand_ins().next().is_some() {
        return Err(malformed("its version is not that of what it holds"));
    }
    // Old frames have no hashes that a change could slip past.
    if frame.version > 1 && frame.write() != body {
        return Err(malformed("it is not written as frames are"));
    }
    Ok(frame)
}
