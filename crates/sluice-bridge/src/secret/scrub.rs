//! Redacts known secrets in texts, complete or streamed.

use super::{Secret, encodings};
use crate::limits::{SCRUBBED_BYTES_MIN, SECRETS_MAX};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// Replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Too many secrets, or too long ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {SECRETS_MAX} secrets, or too long ones, cannot be redacted")]
pub struct TooMany;

/// Search automaton for secrets.
///
/// Secrets shorter than `SCRUBBED_BYTES_MIN` are ignored, because they would match ordinary
/// words. A secret is also found in its JSON, URL, base64 and hexadecimal forms.
pub struct Scrub {
    search: Option<AhoCorasick>,
    /// The search patterns, sorted.
    words: Vec<String>,
    longest: usize,
}

impl Scrub {
    /// Builds the automaton.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Result<Scrub, TooMany> {
        let (mut words, mut count) = (BTreeSet::new(), 0);
        for secret in secrets {
            let plain = secret.expose();
            if plain.len() < SCRUBBED_BYTES_MIN {
                continue;
            }
            count += 1;
            if count > SECRETS_MAX {
                return Err(TooMany);
            }
            words.append(&mut encodings::all(plain));
        }
        let words: Vec<String> = words.into_iter().collect();
        let longest = words.iter().map(String::len).max().unwrap_or_default();
        if words.is_empty() {
            return Ok(Scrub { search: None, words, longest });
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&words);
        Ok(Scrub { search: Some(search.map_err(|_| TooMany)?), words, longest })
    }

    /// Redacted bytes; `None` if nothing was found.
    pub fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let search = self.search.as_ref().filter(|search| search.is_match(bytes))?;
        let mut clean = Vec::with_capacity(bytes.len());
        search.replace_all_with_bytes(bytes, &mut clean, |_, _, clean| {
            clean.extend_from_slice(REDACTED.as_bytes());
            true
        });
        Some(clean)
    }

    /// The positions of secrets in a text.
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let found = self.search.iter().flat_map(|search| search.find_iter(text));
        found.map(|found| found.range()).collect()
    }

    /// Start of a suffix that could still become a secret.
    fn open_from(&self, text: &str) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let begins = |rest: &[u8]| {
            // Patterns that begin with the suffix sort after it; an equal one is
            // complete.
            let after = self.words.partition_point(|word| word.as_bytes() <= rest);
            self.words.get(after).is_some_and(|word| word.as_bytes().starts_with(rest))
        };
        (from..text.len()).find(|at| begins(&text.as_bytes()[*at..])).unwrap_or(text.len())
    }

    /// Redacts a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = self.search.as_ref().filter(|search| search.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut clean = String::with_capacity(text.len());
        search.replace_all_with(text, &mut clean, |_, _, clean| {
            clean.push_str(REDACTED);
            true
        });
        Cow::Owned(clean)
    }

    /// Redacts a value, including field names.
    pub fn value(&self, value: &mut Value) {
        if self.search.is_none() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let names = fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_)));
                fields.values_mut().for_each(|value| self.value(value));
                if names {
                    let old = std::mem::take(fields);
                    let new =
                        old.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value));
                    fields.extend(new);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Redacts a text that arrives in pieces.
///
/// Only a suffix that could still become a secret is held back.
/// INVARIANT: the joined pieces equal the redacted whole.
#[derive(Debug, Default)]
pub struct ScrubStream {
    held: String,
}

impl ScrubStream {
    /// Adds a piece; returns what can be passed on.
    pub fn push(&mut self, scrub: &Scrub, piece: &str) -> String {
        self.held.push_str(piece);
        let Some(search) = &scrub.search else { return std::mem::take(&mut self.held) };
        let (mut clean, mut at) = (String::new(), 0);
        let open = loop {
            // The bytes of a found secret cannot begin another.
            let open = at + scrub.open_from(&self.held[at..]);
            let found = search.find(Input::new(&self.held).range(at..));
            // A match where a longer one is still possible has to wait.
            let Some(found) = found.filter(|found| found.start() < open) else { break open };
            clean.push_str(&self.held[at..found.start()]);
            clean.push_str(REDACTED);
            at = found.end();
        };
        clean.push_str(&self.held[at..open]);
        self.held.drain(..open);
        clean
    }

    /// Returns the rest at the end of the text.
    pub fn end(&mut self, scrub: &Scrub) -> String {
        scrub.text(&std::mem::take(&mut self.held)).into_owned()
    }
}

impl fmt::Debug for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrub")
    }
}
