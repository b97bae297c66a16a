//! Takes payloads out of a frame.

use super::beside::{Beside, read as read_beside};
use super::fields::{Written, frame, hash};
use super::raw::{Bond, RawEvent, raw};
use super::residue::residue;
use super::{WireError, malformed};
use crate::journal::chain;
use crate::port::store::{Frame, Hash};
use std::collections::{BTreeMap, BTreeSet};

/// A frame without some of its payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// The frame.
    pub body: Vec<u8>,
    /// What stands beside it.
    pub beside: Vec<u8>,
    /// The events whose payloads went now: their places in the frame from 0, and
    /// the hash of what is left of each. The audit keeps it, since the event's
    /// own hash covers only what was there before.
    pub gone: Vec<(usize, Hash)>,
    /// What those payloads referred to and the frame no longer does.
    pub blobs: Vec<Hash>,
}

/// Erases the payloads of the events at the places that `which` names, and
/// leaves those that are erased or elided already. The hashes of all events stay
/// as they are. `blobs` holds at least what [`blobs_of`](super::blobs_of) lists.
pub fn erase(
    stored: &Frame,
    which: impl Fn(usize) -> bool,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Erased, WireError> {
    let mut named = Named::default();
    let (body, mut gone) = erase_body(&stored.body, &which, blobs, &mut named)?;
    let mut beside = stored.beside.clone();
    if let Some(Beside::Events(bytes)) = read_beside(&stored.beside)? {
        // A part of an answer is erased where it is: its place is its stand-in's.
        let places: Vec<usize> = raw(&stored.body)?.stand_ins().collect();
        let of = |index: usize| places.get(index).copied().unwrap_or(usize::MAX);
        let (left, parts) = erase_body(bytes, &|index| which(of(index)), blobs, &mut named)?;
        beside = left;
        gone.extend(parts.into_iter().map(|(index, hash)| (of(index), hash)));
        gone.sort_unstable_by_key(|(place, _)| *place);
    }
    let blobs = named.dropped.difference(&named.used).copied().collect();
    Ok(Erased { body, beside, gone, blobs })
}

/// What payloads refer to.
#[derive(Default)]
struct Named {
    /// Those that go.
    dropped: BTreeSet<Hash>,
    /// Those that stay.
    used: BTreeSet<Hash>,
}

type Gone = Vec<(usize, Hash)>;

fn erase_body(
    body: &[u8],
    which: &dyn Fn(usize) -> bool,
    blobs: &BTreeMap<Hash, Vec<u8>>,
    named: &mut Named,
) -> Result<(Vec<u8>, Gone), WireError> {
    let mut raw = raw(body)?;
    let mut read = frame(body)?.events;
    if read.len() != raw.events.len() {
        return Err(malformed("it is not the same when read twice"));
    }
    let mut residues = BTreeMap::new();
    for (place, (event, raw)) in read.iter_mut().zip(&raw.events).enumerate() {
        let goes = which(place) && !raw.bond.is_erased() && raw.bond != Bond::Beside;
        let named = if goes { &mut named.dropped } else { &mut named.used };
        named.extend(hashes(event)?);
        if goes {
            event.restore(blobs)?;
            residues.insert(place, residue(&event.kind, &event.payload));
        }
    }
    let mut gone = Vec::with_capacity(residues.len());
    for (place, left) in &residues {
        let event = &mut raw.events[*place];
        gone.push((*place, chain::residue(left.as_bytes())));
        let bond = event.commitment().map_or(Bond::ErasedNone, Bond::Erased);
        *event = RawEvent { bond, payload: left, blobs: None, ..*event };
    }
    Ok((raw.write(), gone))
}

fn hashes(event: &Written<'_>) -> Result<Vec<Hash>, WireError> {
    event.blobs.values().map(|text| hash(text)).collect()
}
