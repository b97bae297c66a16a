//! Erases payloads of a frame.

use super::deltas::{StoredDeltas, read as read_deltas};
use super::fields::{ParsedEvent, frame, hash};
use super::raw::{CommitmentKind, RawEvent, raw};
use super::residue::residue;
use super::{WireError, malformed};
use crate::hash::Hash;
use crate::journal::chain;
use crate::port::store::Frame;
use std::collections::{BTreeMap, BTreeSet};

/// A frame without some of its payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// The frame.
    pub body: Vec<u8>,
    /// Its stored stream deltas.
    pub beside: Vec<u8>,
    /// The events whose payloads were erased now: their positions in the frame from 0, and
    /// the hash of the rest of each payload. The audit records this hash, because the hash of
    /// the event covers the original payload only.
    pub gone: Vec<(usize, Hash)>,
    /// Blobs that only the erased payloads referred to.
    pub blobs: Vec<Hash>,
}

/// Erases the payloads of the events at the positions that `which` selects. Payloads that are
/// already erased or elided stay unchanged, and so do the hashes of all events. `blobs` must
/// contain the blobs that [`blobs_of`](super::blobs_of) lists.
pub fn erase(
    stored: &Frame,
    which: impl Fn(usize) -> bool,
    blobs: &BTreeMap<Hash, Vec<u8>>,
) -> Result<Erased, WireError> {
    let mut references = BlobReferences::default();
    let (body, mut gone) = erase_body(&stored.body, &which, blobs, &mut references)?;
    let mut beside = stored.beside.clone();
    if let Some(StoredDeltas::Events(bytes)) = read_deltas(&stored.beside)? {
        // The position of a delta in the frame is that of its stand-in.
        let stand_ins: Vec<usize> = raw(&stored.body)?.stand_ins().collect();
        let position = |index: usize| stand_ins.get(index).copied().unwrap_or(usize::MAX);
        let erases = |index| which(position(index));
        let (left, deltas) = erase_body(bytes, &erases, blobs, &mut references)?;
        beside = left;
        gone.extend(deltas.into_iter().map(|(index, hash)| (position(index), hash)));
        gone.sort_unstable_by_key(|(position, _)| *position);
    }
    let blobs = references.erased.difference(&references.kept).copied().collect();
    Ok(Erased { body, beside, gone, blobs })
}

/// The blobs that payloads refer to.
#[derive(Default)]
struct BlobReferences {
    /// Blobs of payloads that are erased.
    erased: BTreeSet<Hash>,
    /// Blobs of payloads that stay.
    kept: BTreeSet<Hash>,
}

type Gone = Vec<(usize, Hash)>;

fn erase_body(
    body: &[u8],
    which: &dyn Fn(usize) -> bool,
    blobs: &BTreeMap<Hash, Vec<u8>>,
    references: &mut BlobReferences,
) -> Result<(Vec<u8>, Gone), WireError> {
    let mut raw = raw(body)?;
    let mut parsed = frame(body)?.events;
    if parsed.len() != raw.events.len() {
        return Err(malformed("its raw and its parsed events differ"));
    }
    let mut residues = BTreeMap::new();
    for (position, (event, raw)) in parsed.iter_mut().zip(&raw.events).enumerate() {
        let erases = which(position)
            && !raw.commitment_kind.is_erased()
            && raw.commitment_kind != CommitmentKind::StandIn;
        let referred = if erases { &mut references.erased } else { &mut references.kept };
        referred.extend(hashes(event)?);
        if erases {
            event.restore(blobs)?;
            residues.insert(position, residue(&event.kind, &event.payload));
        }
    }
    let mut gone = Vec::with_capacity(residues.len());
    for (position, left) in &residues {
        let event = &mut raw.events[*position];
        gone.push((*position, chain::residue(left.as_bytes())));
        let commitment_kind =
            event.commitment().map_or(CommitmentKind::ErasedNone, CommitmentKind::Erased);
        *event = RawEvent { commitment_kind, payload: left, blobs: None, ..*event };
    }
    Ok((raw.write(), gone))
}

fn hashes(event: &ParsedEvent<'_>) -> Result<Vec<Hash>, WireError> {
    event.blobs.values().map(|text| hash(text)).collect()
}
