//! Finds the JSON object in an answer that should be one.
//!
//! Models add prose or a code fence to the requested object. All objects of the text are
//! considered, and the most likely one is returned: a fenced one before a bare one, a non-empty
//! one before `{}`, and otherwise the last, because reasoning and examples precede the answer.
//!
//! A part is never returned instead of the whole: an object inside a list or another object is
//! ignored, and so are the complete parts of a truncated one. Nothing is repaired or evaluated.
//!
//! INVARIANT: the time is linear in the length of the text.

mod scan;

#[cfg(test)]
mod tests;

use scan::FoundValue;
use serde_json::{Map, Value};
use sluice_core::limits::DOCUMENT_DEPTH_MAX;

/// Limit of a fence's opening line, in bytes.
const FENCE_BYTES_MAX: usize = 64;

/// The most likely object in a text, if there is one.
pub(crate) fn object_in(text: &str) -> Option<Map<String, Value>> {
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

/// Parses a text that is an object, ignoring white space around it.
pub(crate) fn object_of(text: &str) -> Option<Map<String, Value>> {
    let trimmed = text.trim_ascii();
    if !trimmed.starts_with('{') {
        return None;
    }
    let found = scan::values(trimmed).next()?;
    let whole = found.range.start == 0 && found.range.end == trimmed.len();
    whole.then(|| object(trimmed, &found)).flatten()
}

/// Likelihood that an object is the answer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    fenced: bool,
    filled: bool,
}

fn object(text: &str, found: &FoundValue) -> Option<Map<String, Value>> {
    if found.depth > DOCUMENT_DEPTH_MAX || text.as_bytes()[found.range.start] != b'{' {
        return None;
    }
    serde_json::from_str(&text[found.range.clone()]).ok()
}

/// Whether a fence opens directly before and closes directly after.
fn is_fenced(text: &str, found: &FoundValue) -> bool {
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
