//! Takes known secrets out of texts.

use super::Secret;
use crate::limits::{SCRUBBED_BYTES_MIN, SCRUBBED_MAX};
use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Too many secrets, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {SCRUBBED_MAX} secrets, or too long ones, cannot be looked for")]
pub struct TooMany;

/// Secrets, ready to be looked for.
///
/// Those shorter than `SCRUBBED_BYTES_MIN` are not: they would take words out of
/// texts. A secret is also found as JSON writes it.
pub struct Scrub {
    search: Option<AhoCorasick>,
}

impl Scrub {
    /// Looks for these.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Result<Scrub, TooMany> {
        let mut words = Vec::new();
        for secret in secrets {
            let plain = secret.expose();
            if plain.len() < SCRUBBED_BYTES_MIN {
                continue;
            }
            if words.len() >= 2 * SCRUBBED_MAX {
                return Err(TooMany);
            }
            let quoted = Value::String(plain.to_owned()).to_string();
            words.push(plain.to_owned());
            words.push(quoted[1..quoted.len() - 1].to_owned());
        }
        if words.is_empty() {
            return Ok(Scrub { search: None });
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words);
        Ok(Scrub { search: Some(search.map_err(|_| TooMany)?) })
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

impl fmt::Debug for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrub")
    }
}
