//! Marks: what is where in the text of a layer, so that sorted marks can be searched.
//!
//! The upper half of a mark is the kind and the hash of what is there, the lower half the
//! place.

/// Bits for the place.
const PLACE_BITS: u32 = 32;
/// Bits for the hash.
const HASH_BITS: u32 = 30;

/// What is at the place of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word.
    Word = 0,
    /// A text as a whole, at its start.
    Whole = 1,
    /// A passage: its first place in a text.
    Passage = 2,
    /// A private text that a longer one may repeat, at its start.
    Fact = 3,
}

/// The mark of something with a hash at a place.
pub(super) fn mark(kind: Kind, hash: u32, place: u32) -> u64 {
    (kind as u64) << (PLACE_BITS + HASH_BITS) | u64::from(hash) << PLACE_BITS | u64::from(place)
}

/// The place of a mark.
#[expect(clippy::cast_possible_truncation, reason = "the lower half of a mark is its place")]
pub(super) fn place_of(mark: u64) -> u32 {
    mark as u32
}

/// The marks of one kind and hash in a sorted list.
pub(super) fn equal(marks: &[u64], kind: Kind, hash: u32) -> &[u64] {
    let first = mark(kind, hash, 0);
    let last = mark(kind, hash, u32::MAX);
    let marks = &marks[marks.partition_point(|mark| *mark < first)..];
    // Most things occur seldom.
    let few = marks.iter().take(4).position(|mark| *mark > last);
    &marks[..few.unwrap_or_else(|| marks.partition_point(|mark| *mark <= last))]
}

/// A hash that is the same on every machine. It only finds candidates: what is found is
/// compared.
pub(super) fn hash(what: &str) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = what.len() as u64;
    for chunk in what.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
        state ^= state >> 29;
    }
    u32::try_from(state.wrapping_mul(FACTOR) >> (64 - HASH_BITS)).unwrap_or_default()
}
