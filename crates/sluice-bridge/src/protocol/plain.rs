//! Non-standard JSON numbers that some languages write: `NaN` and infinities.

use std::borrow::Cow;

/// The longest first.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Quotes these words, so that a JSON parser accepts the text.
pub(super) fn readable(text: &str) -> Cow<'_, str> {
    if !WORDS[1..].iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut quoted) = (text, false);
    while let Some(first) = rest.chars().next() {
        if !quoted && let Some(word) = WORDS.into_iter().find(|word| rest.starts_with(word)) {
            out.extend(["\"", word, "\""]);
            rest = &rest[word.len()..];
            continue;
        }
        let mut taken = first.len_utf8();
        match first {
            '"' => quoted = !quoted,
            // The character after a backslash does not end the string.
            '\\' if quoted => taken += rest[taken..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_numbers_become_texts_outside_of_texts_only() {
        let text = r#"{"a": NaN, "b": [-Infinity,Infinity], "c": "NaN \" NaN \\", "d": NaN}"#;
        let expected =
            r#"{"a": "NaN", "b": ["-Infinity","Infinity"], "c": "NaN \" NaN \\", "d": "NaN"}"#;
        assert_eq!(readable(text), expected);
        assert!(matches!(readable("{\"a\": 1}"), Cow::Borrowed(_)));
        assert_eq!(readable("\"\\"), "\"\\");
        assert_eq!(readable("NaN \"é\\é"), "\"NaN\" \"é\\é");
    }
}
