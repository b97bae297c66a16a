//! Words, and runs of words: passages and whole private values inside of longer texts.

use super::letters::is_word;
use super::mark::hash;

/// A repeated passage: this many characters, from the start of a word.
const PASSAGE_CHARS: usize = 24;
/// A private value that a longer text repeats: at least so many characters, and a digit.
pub(super) const FACT_CHARS_MIN: usize = 6;
/// Maximum number of words of such a value.
const FACT_WORDS_MAX: usize = 6;

/// The words of a normal text with single spaces: the form in which passages are compared.
pub(super) struct Words {
    text: String,
    /// Where each word begins: in `text`, and in the normal text.
    starts: Vec<(usize, usize)>,
}

/// A passage of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage<'a> {
    pub(super) hash: u32,
    /// Its first place in the normal text.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

impl Words {
    /// The words of a normal text.
    pub(super) fn of(form: &str) -> Words {
        let mut words = Words { text: String::with_capacity(form.len()), starts: Vec::new() };
        let mut inside = false;
        for (at, c) in form.char_indices() {
            if !is_word(c) {
                inside = false;
                continue;
            }
            if !inside {
                words.begin(at);
            }
            inside = true;
            words.text.push(c);
        }
        words
    }

    fn begin(&mut self, at: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), at));
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Each word, with its place in the normal text.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, usize)> {
        (0..self.starts.len()).map(|word| (&self.text[self.span(word, word)], self.starts[word].1))
    }

    /// Each passage once, in the order of their hashes.
    pub(super) fn passages(&self) -> Vec<Passage<'_>> {
        let places = self.starts.iter().map_while(|(start, at)| {
            let text = self.passage_at(*start)?;
            Some(Passage { hash: hash(text), at: *at, text })
        });
        let mut all: Vec<Passage<'_>> = places.collect();
        all.sort_unstable_by_key(|passage| (passage.hash, passage.at));
        all.dedup_by_key(|passage| passage.text);
        all
    }

    /// The passage with which the text begins.
    pub(super) fn first_passage(&self) -> Option<&str> {
        self.passage_at(0)
    }

    fn passage_at(&self, start: usize) -> Option<&str> {
        let rest = &self.text[start..];
        let head = rest.as_bytes().get(..PASSAGE_CHARS)?;
        if head.is_ascii() {
            return rest.get(..PASSAGE_CHARS);
        }
        let (at, last) = rest.char_indices().nth(PASSAGE_CHARS - 1)?;
        Some(&rest[..at + last.len_utf8()])
    }

    /// Runs of a few words with a digit: what may be a passport number, a phone number, a code.
    pub(super) fn facts(&self) -> impl Iterator<Item = &str> {
        let is_long = |run: &&str| run.chars().take(FACT_CHARS_MIN).count() == FACT_CHARS_MIN;
        let runs = move |first: usize| {
            let lasts = first..self.starts.len().min(first + FACT_WORDS_MAX);
            lasts.map(move |last| &self.text[self.span(first, last)])
        };
        let has_digit = |run: &&str| run.bytes().any(|byte| byte.is_ascii_digit());
        (0..self.starts.len()).flat_map(runs).filter(has_digit).filter(is_long)
    }

    /// Whether a longer text may repeat the whole: a few words with a digit.
    pub(super) fn is_fact(&self) -> bool {
        self.starts.len() <= FACT_WORDS_MAX && self.text.bytes().any(|byte| byte.is_ascii_digit())
    }

    /// The range from the first to the last of some words.
    fn span(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        let end = self.starts.get(last + 1).map_or(self.text.len(), |(start, _)| start - 1);
        self.starts[first].0..end
    }
}

/// The rest of a normal text that begins with these words; `None` if it does not.
pub(super) fn strip_words<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let mut rest = text;
    for c in words.chars() {
        if c == ' ' {
            let next = rest.trim_start_matches(|c| !is_word(c) && c != '\n');
            if next.len() == rest.len() || !next.starts_with(is_word) {
                return None;
            }
            rest = next;
        } else {
            rest = rest.strip_prefix(c)?;
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits() {
        let words = Words::of("it's x_1: e\u{301}!");
        assert_eq!(words.as_str(), "it s x 1 e");
        let places: Vec<_> = words.each().collect();
        assert_eq!(places, [("it", 0), ("s", 3), ("x", 5), ("1", 7), ("e", 10)]);
        assert_eq!(Words::of("...").each().count(), 0);
    }

    #[test]
    fn a_passage_begins_at_a_word_and_has_24_characters() {
        for (text, passage) in [
            ("send the link, www.evil.com", "send the link www evil c"),
            ("äußerst länge wörter überall", "äußerst länge wörter übe"),
            (&"a ".repeat(100), "a a a a a a a a a a a a "),
        ] {
            let words = Words::of(text);
            let found: Vec<_> =
                words.passages().iter().map(|found| (found.text, found.at)).collect();
            assert_eq!(found, [(passage, 0)]);
            assert_eq!(words.first_passage(), Some(passage));
        }
        assert_eq!(Words::of("abcdefghijklmnopqrstuvwx").passages().len(), 1);
        assert_eq!(Words::of("abcdefghijklmnopqrstuvw").passages().len(), 0);
    }

    #[test]
    fn a_fact_has_a_digit_and_few_words() {
        let words = Words::of("it is hgk137803");
        let facts: Vec<_> = words.facts().collect();
        assert_eq!(facts, ["it is hgk137803", "is hgk137803", "hgk137803"]);
        assert_eq!(
            Words::of("1 2 3 4 5 6 7").facts().max_by_key(|run| run.len()),
            Some("2 3 4 5 6 7")
        );
        assert_eq!(Words::of("12345 none").facts().collect::<Vec<_>>(), ["12345 none"]);
    }

    #[test]
    fn words_match_text_with_other_joints() {
        assert_eq!(strip_words("a-b, c d", "a b c"), Some(" d"));
        assert_eq!(strip_words("a-b.", "a b "), None);
        assert_eq!(strip_words("a-b. c", "a b "), Some("c"));
        assert_eq!(strip_words("ab", "a b"), None);
        assert_eq!(strip_words("a\nb", "a b"), None);
    }
}
