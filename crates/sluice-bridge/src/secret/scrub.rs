//! Takes known secrets out of texts, whole or piece by piece.

use super::{Secret, encodings};
use crate::limits::{SCRUBBED_BYTES_MIN, SECRETS_MAX};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Too many secrets, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {SECRETS_MAX} secrets, or too long ones, cannot be looked for")]
pub struct TooMany;

/// Secrets, ready to be looked for.
///
/// Those shorter than `SCRUBBED_BYTES_MIN` are not: they would take words out of
/// texts. A secret is also found as JSON and URLs write it, in base64 and in
/// hexadecimal.
pub struct Scrub {
    search: Option<AhoCorasick>,
    /// What is looked for, sorted.
    words: Vec<String>,
    longest: usize,
}

impl Scrub {
    /// Looks for these.
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

    /// Bytes without them; none if they hold none.
    pub fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let search = self.search.as_ref().filter(|search| search.is_match(bytes))?;
        let mut clean = Vec::with_capacity(bytes.len());
        search.replace_all_with_bytes(bytes, &mut clean, |_, _, clean| {
            clean.extend_from_slice(REDACTED.as_bytes());
            true
        });
        Some(clean)
    }

    /// Where they are in a text.
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let found = self.search.iter().flat_map(|search| search.find_iter(text));
        found.map(|found| found.range()).collect()
    }

    /// Where the end of a text begins that could still become one of them.
    fn open_from(&self, text: &str) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let begins = |rest: &[u8]| {
            // Words that begin with the rest follow it in order; one that equals it is whole.
            let after = self.words.partition_point(|word| word.as_bytes() <= rest);
            self.words.get(after).is_some_and(|word| word.as_bytes().starts_with(rest))
        };
        (from..text.len()).find(|at| begins(&text.as_bytes()[*at..])).unwrap_or(text.len())
    }

    /// A text without them.
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

    /// A value without them, names of fields included.
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

/// A text that comes in pieces, without secrets.
///
/// What could still become a secret is held back, and nothing more.
/// INVARIANT: the pieces that come out, joined, are what the whole would give.
#[derive(Debug, Default)]
pub struct Flow {
    held: String,
}

impl Flow {
    /// What can be let go now that this has come.
    pub fn push(&mut self, scrub: &Scrub, piece: &str) -> String {
        self.held.push_str(piece);
        let Some(search) = &scrub.search else { return std::mem::take(&mut self.held) };
        let (mut clean, mut at) = (String::new(), 0);
        let open = loop {
            // What a secret has taken cannot begin another.
            let open = at + scrub.open_from(&self.held[at..]);
            let found = search.find(Input::new(&self.held).range(at..));
            // One that begins where a longer one may still come to be waits with it.
            let Some(found) = found.filter(|found| found.start() < open) else { break open };
            clean.push_str(&self.held[at..found.start()]);
            clean.push_str(REDACTED);
            at = found.end();
        };
        clean.push_str(&self.held[at..open]);
        self.held.drain(..open);
        clean
    }

    /// The rest: nothing more comes.
    pub fn end(&mut self, scrub: &Scrub) -> String {
        scrub.text(&std::mem::take(&mut self.held)).into_owned()
    }
}

impl fmt::Debug for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrub")
    }
}
