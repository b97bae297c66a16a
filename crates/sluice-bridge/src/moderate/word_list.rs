//! A moderator that searches for phrases.
//!
//! One phrase per line; the prefix `input:` or `output:` restricts it to that side. Blank lines
//! are ignored, and there are no comments: every other line is a phrase. A phrase matches in
//! any case, with any white space between its words, with ignorable characters in it, and only
//! as whole words (see `sluice_core::word`). Texts are not normalised: `é` as one character and
//! as two are different.
//!
//! INVARIANT: a phrase is no longer than what a stream holds back, so that no part of a phrase
//! is ever shown.

use crate::limits::{PHRASES_MAX, WORD_LIST_BYTES_MAX};
use aho_corasick::AhoCorasick;
use serde_json::json;
use sluice_core::limits::PHRASE_BYTES_MAX;
use sluice_core::plan::policy::ModerationPhase;
use sluice_core::port::Later;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use sluice_core::word::{is_ignored, joins};

/// An invalid word list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadList {
    /// The list is too long.
    #[error("the word list exceeds {WORD_LIST_BYTES_MAX} bytes")]
    TooLong,
    /// The list is not text.
    #[error("the word list is not UTF-8")]
    NoText,
    /// The list has too many phrases.
    #[error("the word list has more than {PHRASES_MAX} phrases")]
    TooMany,
    /// A prefix without a phrase.
    #[error("line {0} has no phrase after its prefix")]
    NoPhrase(usize),
    /// A phrase is too long.
    #[error("the phrase in line {0} exceeds {PHRASE_BYTES_MAX} bytes")]
    LongPhrase(usize),
    /// The search automaton cannot be built.
    #[error("the word list cannot be used: {0}")]
    Unusable(String),
}

/// Search automaton for phrases.
#[derive(Debug)]
pub struct WordList {
    phrases: Vec<Phrase>,
    search: AhoCorasick,
}

#[derive(Debug)]
struct Phrase {
    /// As it is written in the list.
    written: String,
    line: usize,
    /// `None` for both sides.
    phase: Option<ModerationPhase>,
    /// Whether it begins, and ends, with a word character.
    edges: (bool, bool),
}

impl WordList {
    /// Parses a list.
    pub fn parse(bytes: &[u8]) -> Result<WordList, BadList> {
        if bytes.len() > WORD_LIST_BYTES_MAX {
            return Err(BadList::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| BadList::NoText)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut phrases, mut folded) = (Vec::new(), Vec::new());
        for (line, written) in (1..).zip(text.lines()) {
            let written = written.trim();
            if written.is_empty() {
                continue;
            }
            let (phase, written) = side(written);
            let phrase = fold(written.trim());
            let phrase = phrase.trim();
            let (Some(first), Some(last)) = (phrase.chars().next(), phrase.chars().next_back())
            else {
                return Err(BadList::NoPhrase(line));
            };
            if phrase.len() > PHRASE_BYTES_MAX {
                return Err(BadList::LongPhrase(line));
            }
            if phrases.len() == PHRASES_MAX {
                return Err(BadList::TooMany);
            }
            let edges = (joins(first), joins(last));
            phrases.push(Phrase { written: written.trim().to_owned(), line, phase, edges });
            folded.push(phrase.to_owned());
        }
        let search = AhoCorasick::new(&folded);
        let search = search.map_err(|error| BadList::Unusable(error.to_string()))?;
        Ok(WordList { phrases, search })
    }

    /// The first phrase of this side in a text.
    fn find(&self, phase: ModerationPhase, text: &str) -> Option<&Phrase> {
        let text = fold(text);
        let hits = self.search.find_overlapping_iter(&text);
        hits.map(|hit| (&self.phrases[hit.pattern().as_usize()], hit.range()))
            .filter(|(phrase, _)| phrase.phase.is_none_or(|one| one == phase))
            .find(|(phrase, range)| {
                let before = text[..range.start].chars().next_back();
                let after = text[range.end..].chars().next();
                let begins = !phrase.edges.0 || !before.is_some_and(joins);
                let ends = !phrase.edges.1 || !after.is_some_and(joins);
                begins && ends
            })
            .map(|(phrase, _)| phrase)
    }
}

impl Moderator for WordList {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        let verdict = match self.find(subject.phase, &subject.text) {
            None => Verdict::Clear,
            Some(phrase) => Verdict::Flagged(
                json!({"by": "word_list", "phrase": phrase.written, "line": phrase.line}),
            ),
        };
        Box::pin(std::future::ready(verdict))
    }
}

/// Splits the prefix from a line.
fn side(line: &str) -> (Option<ModerationPhase>, &str) {
    for phase in [ModerationPhase::Input, ModerationPhase::Output] {
        let rest = line.strip_prefix(phase.as_str()).and_then(|rest| rest.strip_prefix(':'));
        if let Some(rest) = rest {
            return (Some(phase), rest);
        }
    }
    (None, line)
}

/// Normalises a text for the search: lower case, single spaces, no ignorable characters.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_ignored(*c)) {
        if !c.is_whitespace() {
            folded.extend(c.to_lowercase());
        } else if !folded.ends_with(' ') {
            folded.push(' ');
        }
    }
    folded
}

#[cfg(test)]
mod tests;
