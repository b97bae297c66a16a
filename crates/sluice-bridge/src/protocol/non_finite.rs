//! Non-standard JSON numbers that some languages write: `NaN` and infinities.

use std::borrow::Cow;

/// The longest first.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Quotes these words, so that a JSON parser accepts the text.
pub(super) fn quote_non_finite(text: &str) -> Cow<'_, str> {
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
    fn non_finite_numbers_are_quoted_only_outside_of_strings() {
        let text = r#"{"a": NaN, "b": [-Infinity,Infinity], "c": "NaN \" NaN \\", "d": NaN}"#;
        let expected =
            r#"{"a": "NaN", "b": ["-Infinity","Infinity"], "c": "NaN \" NaN \\", "d": "NaN"}"#;
        assert_eq!(quote_non_finite(text), expected);
        assert!(matches!(quote_non_finite("{\"a\": 1}"), Cow::Borrowed(_)));
        assert_eq!(quote_non_finite("\"\\"), "\"\\");
        assert_eq!(quote_non_finite("NaN \"é\\é"), "\"NaN\" \"é\\é");
    }
}
