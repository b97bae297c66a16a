//! Takes payloads out of a frame.

use super::fields::{Written, frame, hash};
use super::raw::{Bond, RawEvent, raw};
use super::residue::residue;
use super::{WireError, malformed};
use crate::evidence::event;
use crate::port::store::Hash;
use std::collections::{BTreeMap, BTreeSet};

/// A frame without some of its payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// The frame.
    pub body: Vec<u8>,
    /// The events whose payloads went now: their places in the frame from 0, and
    /// the hash of what is left of each. The audit keeps it, since the event's
    /// own hash covers only what was there before.
    pub gone: Vec<(usize, Hash)>,
    /// What those payloads referred to and the frame no longer does.
    pub blobs: Vec<Hash>,
}

/// Erases the payloads of the events at the places that `which` names, and
/// leaves those that are erased already. The hashes of all events stay as they
/// are. `blobs` holds at least what [`blobs`](super::blobs) lists.
pub fn erase(
    body: &[u8],
    which: impl Fn(usize) -> bool,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Erased, WireError> {
    let mut raw = raw(body)?;
    let mut read = frame(body)?.events;
    if read.len() != raw.events.len() {
        return Err(malformed("it is not the same when read twice"));
    }
    let (mut dropped, mut used) = (BTreeSet::new(), BTreeSet::new());
    let mut residues = BTreeMap::new();
    for (place, (event, raw)) in read.iter_mut().zip(&raw.events).enumerate() {
        let goes = which(place) && !raw.bond.is_erased();
        let named = if goes { &mut dropped } else { &mut used };
        named.extend(hashes(event)?);
        if goes {
            event.restore(blobs)?;
            residues.insert(place, residue(&event.kind, &event.payload));
        }
    }
    let mut gone = Vec::with_capacity(residues.len());
    for (place, left) in &residues {
        let event = &mut raw.events[*place];
        gone.push((*place, event::residue(left.as_bytes())));
        let bond = event.commitment().map_or(Bond::ErasedNone, Bond::Erased);
        *event = RawEvent { bond, payload: left, blobs: None, ..*event };
    }
    let blobs = dropped.difference(&used).copied().collect();
    Ok(Erased { body: raw.write(), gone, blobs })
}

fn hashes(event: &Written<'_>) -> Result<Vec<Hash>, WireError> {
    event.blobs.values().map(|text| hash(text)).collect()
}
