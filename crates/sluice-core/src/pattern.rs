//! Untrusted regular expressions: linear time, bounded size.

use crate::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};
use crate::span::Fault;
use crate::wire;
use regex::Regex;

/// A compiled pattern with its source.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `source`, or returns the error.
    pub fn new(source: &str) -> Result<Pattern, Fault> {
        let whole = 0..source.len();
        if source.len() > PATTERN_BYTES_MAX {
            return Err(Fault::new(whole, format!("pattern is over {PATTERN_BYTES_MAX} bytes")));
        }
        let compiled =
            regex::RegexBuilder::new(source).size_limit(PATTERN_COMPILED_BYTES_MAX).build();
        compiled.map(Pattern).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                Fault::new(whole, "pattern is too large once compiled")
                    .with_hint("lower the repetition counts")
            }
            // The library prints the position over several lines; its last line has
            // the message.
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                let what = last.strip_prefix("error: ").unwrap_or(last);
                Fault::new(whole, format!("bad regular expression: {what}"))
            }
        })
    }

    /// Whether the pattern occurs anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The source of the pattern.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

impl serde::Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        wire::parsed(deserializer, "a pattern", Pattern::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_searches_and_keeps_its_source() {
        let pattern = Pattern::new("^v[0-9]+$").unwrap();
        assert!(pattern.is_match("v12"));
        assert!(!pattern.is_match("xv12"));
        assert_eq!(pattern.as_str(), "^v[0-9]+$");
    }

    #[test]
    fn patterns_that_could_hurt_are_refused() {
        for (source, message) in [
            ("(", "bad regular expression: unclosed group"),
            (
                "(?=a)",
                "bad regular expression: look-around, including look-ahead and look-behind, is not supported",
            ),
            (r"(a)\1", "bad regular expression: backreferences are not supported"),
            ("((a{100}){100}){100}", "pattern is too large once compiled"),
        ] {
            assert_eq!(Pattern::new(source).unwrap_err().message, message);
        }
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        assert_eq!(Pattern::new(&long).unwrap_err().message, "pattern is over 1024 bytes");
    }

    #[test]
    fn nested_repetition_runs_in_linear_time() {
        let pattern = Pattern::new("^(a+)+$").unwrap();
        assert!(!pattern.is_match(&format!("{}b", "a".repeat(100_000))));
    }
}
