//! Splits a policy file into its policies, before Cedar parses them.
//!
//! Cedar's parser, validator and evaluator recurse over the tree of a policy. A text
//! that is nested deeply enough would crash the process, so every policy is measured
//! first. The scanner knows just enough of the grammar: strings, comments, brackets,
//! operators and the semicolon.
//!
//! INVARIANT: the scanner does not recurse, and returns nothing that exceeds the
//! limits.

use crate::limits::{POLICY_DEPTH_MAX, POLICY_OPERATORS_MAX};

/// A policy as written in its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    /// The text, from its first annotation to its semicolon.
    pub text: &'t str,
    /// The line it begins on, from 1.
    pub line: usize,
}

/// A policy that is too deep or too long, and the line it begins on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch {
    pub line: usize,
    pub message: String,
}

/// Words that act as operators.
const WORDS: [&str; 9] = ["if", "then", "else", "in", "has", "like", "is", "when", "unless"];

/// The policies of a text, in order. Any text after the last semicolon is a piece too,
/// except blanks and comments: Cedar reports what is wrong with it.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TooMuch> {
    let mut scan = Scan { text, at: 0, line: 1, depth: 0, operators: 0, start: None };
    let mut pieces = Vec::new();
    while let Some(&byte) = text.as_bytes().get(scan.at) {
        if let Some(piece) = scan.step(byte)? {
            pieces.push(piece);
        }
    }
    if let Some((start, line)) = scan.start {
        pieces.push(Piece { text: &text[start..], line });
    }
    Ok(pieces)
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    depth: usize,
    operators: usize,
    /// Start of the open policy: byte and line.
    start: Option<(usize, usize)>,
}

impl<'t> Scan<'t> {
    /// Reads one token; returns a policy at its end.
    fn step(&mut self, byte: u8) -> Result<Option<Piece<'t>>, TooMuch> {
        match byte {
            b'\n' => {
                self.line += 1;
                self.at += 1;
                return Ok(None);
            }
            b' ' | b'\t' | b'\r' => {
                self.at += 1;
                return Ok(None);
            }
            b'/' if self.text[self.at..].starts_with("//") => {
                let rest = &self.text[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
                return Ok(None);
            }
            _ => {}
        }
        let (start, line) = *self.start.get_or_insert((self.at, self.line));
        match byte {
            b'"' => self.string(),
            b'(' | b'[' | b'{' => {
                self.depth += 1;
                self.at += 1;
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.at += 1;
            }
            b';' if self.depth == 0 => {
                self.at += 1;
                self.start = None;
                self.operators = 0;
                return Ok(Some(Piece { text: &self.text[start..self.at], line }));
            }
            b'.' | b'&' | b'|' | b'!' | b'-' | b'+' | b'*' | b'=' | b'<' | b'>' | b'/' | b'%' => {
                self.operator(byte);
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => self.word(),
            byte => self.at += if byte.is_ascii() { 1 } else { self.character() },
        }
        self.bounded(line)?;
        Ok(None)
    }

    fn bounded(&self, line: usize) -> Result<(), TooMuch> {
        if self.depth > POLICY_DEPTH_MAX {
            let message = format!("brackets are nested more than {POLICY_DEPTH_MAX} deep");
            return Err(TooMuch { line, message });
        }
        if self.operators > POLICY_OPERATORS_MAX {
            let message = format!("the policy has more than {POLICY_OPERATORS_MAX} operators");
            return Err(TooMuch { line, message });
        }
        Ok(())
    }

    /// Skips a string; an unterminated one takes the rest.
    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => return,
                // An escaped quote does not end the string.
                b'\\' if bytes.get(self.at).is_some_and(|next| b"\"\\".contains(next)) => {
                    self.at += 1;
                }
                b'\n' => self.line += 1,
                _ => {}
            }
        }
    }

    /// `&&` and `==` are one operator, `!!` and `--` are two.
    fn operator(&mut self, byte: u8) {
        let twice = self.text.as_bytes().get(self.at + 1) == Some(&byte);
        self.at += if twice && matches!(byte, b'&' | b'|' | b'=') { 2 } else { 1 };
        self.operators += 1;
    }

    fn word(&mut self) {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        if WORDS.contains(&word) {
            self.operators += 1;
        }
    }

    /// The length of the current character in bytes.
    fn character(&self) -> usize {
        self.text[self.at..].chars().next().map_or(1, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_cut_at_its_semicolons_and_comments_belong_to_nothing() {
        let text = "// a; b\npermit (a, b, c)\nwhen { x == \"a;\\\";\" };\n\n// end\n@id(\"é;\")\nforbid (p, a, r);\n// last";
        let pieces = pieces(text).unwrap();
        let seen: Vec<_> = pieces.iter().map(|piece| (piece.line, piece.text)).collect();
        assert_eq!(
            seen,
            [
                (2, "permit (a, b, c)\nwhen { x == \"a;\\\";\" };"),
                (6, "@id(\"é;\")\nforbid (p, a, r);")
            ]
        );
    }

    #[test]
    fn what_does_not_end_is_a_piece_all_the_same() {
        for text in ["permit (", "permit (a;", "\"abc", "\"abc\\", "é", "a ; )"] {
            assert!(!pieces(text).unwrap().is_empty(), "{text}");
        }
        assert_eq!(pieces(" \n// nothing").unwrap(), []);
    }

    #[test]
    fn a_hundred_thousand_of_anything_that_nests_is_refused() {
        let deep = 100_000;
        for (open, message) in [
            ("(", "brackets are nested more than 32 deep"),
            ("[", "brackets are nested more than 32 deep"),
            ("{", "brackets are nested more than 32 deep"),
            ("!", "the policy has more than 200 operators"),
            ("-", "the policy has more than 200 operators"),
            ("if a then b else ", "the policy has more than 200 operators"),
            ("a && ", "the policy has more than 200 operators"),
            ("a || ", "the policy has more than 200 operators"),
            ("a.", "the policy has more than 200 operators"),
            ("a has b ", "the policy has more than 200 operators"),
            ("1 + ", "the policy has more than 200 operators"),
            ("1 * ", "the policy has more than 200 operators"),
            ("when { true } ", "the policy has more than 200 operators"),
        ] {
            let text =
                format!("\npermit (principal, action, resource) when {{ {}", open.repeat(deep));
            assert_eq!(
                pieces(&text).unwrap_err(),
                TooMuch { line: 2, message: message.to_owned() },
                "{open}"
            );
        }
    }

    #[test]
    fn operators_count_for_one_policy_only_and_lists_may_be_long() {
        let one = "permit (p, a, r) when { a && b || c };\n";
        assert_eq!(pieces(&one.repeat(1000)).unwrap().len(), 1000);
        let list = format!("permit (p, a, r) when {{ [{}].contains(x) }};", "\"a\", ".repeat(5000));
        assert_eq!(pieces(&list).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_can_be_cut(text in "[\\PC\n\\\\\"();{}/é]{0,200}") {
            if let Ok(pieces) = pieces(&text) {
                for piece in pieces {
                    prop_assert!(text.contains(piece.text));
                }
            }
        }
    }
}
