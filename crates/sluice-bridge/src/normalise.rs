//! The JSON object in an answer that was meant to be one.
//!
//! Models put prose around what was asked for, or a fence. Every object of the
//! text is looked at, and the likeliest is taken: one that stands alone in a
//! fence before a bare one, one with content before `{}`, and of equals the
//! last, because thoughts and examples come before the answer.
//!
//! A part is never taken for the whole: what stands inside a list or another
//! object is no answer, and neither are the finished parts of one that breaks
//! off. Nothing is repaired and nothing is evaluated.
//!
//! INVARIANT: time is linear in the text, whatever the text is.

mod scan;

#[cfg(test)]
mod tests;

use scan::Found;
use serde_json::{Map, Value};
use sluice_core::limits::DOCUMENT_DEPTH_MAX;

/// The longest opening line of a fence that is recognised, in bytes.
const FENCE_BYTES_MAX: usize = 64;

/// The object in a text, if there is one.
pub fn object_in(text: &str) -> Option<Map<String, Value>> {
    let mut best: Option<(Rank, Map<String, Value>)> = None;
    for found in scan::values(text) {
        let Some(object) = object(text, &found) else {
            continue;
        };
        let rank = Rank { fenced: is_fenced(text, &found), filled: !object.is_empty() };
        if best.as_ref().is_none_or(|(least, _)| rank >= *least) {
            best = Some((rank, object));
        }
    }
    best.map(|(_, object)| object)
}

/// The object that a text is, but for space around it.
pub fn object_of(text: &str) -> Option<Map<String, Value>> {
    let trimmed = text.trim_ascii();
    if !trimmed.starts_with('{') {
        return None;
    }
    let found = scan::values(trimmed).next()?;
    let whole = found.range.start == 0 && found.range.end == trimmed.len();
    whole.then(|| object(trimmed, &found)).flatten()
}

/// How likely an object is the answer, the likelier the greater.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    fenced: bool,
    filled: bool,
}

fn object(text: &str, found: &Found) -> Option<Map<String, Value>> {
    if found.depth > DOCUMENT_DEPTH_MAX || text.as_bytes()[found.range.start] != b'{' {
        return None;
    }
    serde_json::from_str(&text[found.range.clone()]).ok()
}

/// Whether a fence opens right before and closes right after.
fn is_fenced(text: &str, found: &Found) -> bool {
    let after = text[found.range.end..].trim_ascii_start();
    if !after.starts_with("```") {
        return false;
    }
    let before = text[..found.range.start].trim_ascii_end().as_bytes();
    // Bounded, so that many objects on one long line stay cheap.
    let near = &before[before.len().saturating_sub(FENCE_BYTES_MAX)..];
    let line = near.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_start().starts_with(b"```")
}
