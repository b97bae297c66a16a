//! Makes untrusted text safe to print.
//!
//! INVARIANT: no document, file name or argument can move the cursor, colour the terminal or
//! reorder the text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The maximum length of a printed message, hint or name, in characters.
const SHOWN_CHARS_MAX: usize = 400;

/// The character to print for `c`; a replacement is one column wide. A tab stays, because only
/// the code that draws the source knows its width.
pub fn substitute(c: char) -> char {
    match c {
        '\t' => c,
        // The Control Pictures block has the order of ASCII.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        _ if hides(c) => '\u{fffd}',
        _ => c,
    }
}

/// Whether a character is invisible, or changes how its neighbours are shown.
pub fn hides(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' // C1 controls: U+009B begins an escape sequence
        | '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' // invisible
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' // direction
        | '\u{2028}' | '\u{2029}' // line and paragraph separators
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}') // annotations and tags
}

/// One line of text, complete.
pub fn line(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| c != '\t' && substitute(c) == c;
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if c == '\t' { ' ' } else { substitute(c) }).collect())
}

/// One line of text, cut at a readable length.
pub fn brief(text: &str) -> Cow<'_, str> {
    clipped(text, SHOWN_CHARS_MAX)
}

/// One line of at most `chars_max` characters; `…` marks a cut.
pub fn clipped(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => line(text),
        Some((end, _)) => Cow::Owned(format!("{}…", line(&text[..end]))),
    }
}

/// The same JSON, with invisible and control characters as escapes. In JSON such characters
/// occur only inside strings, so the value does not change.
pub fn json(json: String) -> String {
    let escaped = |c: char| c == '\u{7f}' || hides(c);
    if !json.contains(escaped) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// At most forty characters of a text, for messages.
pub fn shorten(text: &str) -> Cow<'_, str> {
    shorten_to(text, 40)
}

/// At most `count` characters of a text.
pub fn shorten_to(text: &str, count: usize) -> Cow<'_, str> {
    match text.char_indices().nth(count) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_value_and_loses_its_teeth() {
        let value = serde_json::json!("\u{9b}31m\u{202e}\u{e0041}é");
        let text = json(value.to_string());
        assert_eq!(text, r#""\u009b31m\u202e\udb40\udc41é""#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(line("a\u{1b}[31mb\u{7}\n\u{7f}"), "a␛[31mb␇␊␡");
        assert_eq!(line("a\u{9b}31m\u{202e}b\u{2066}"), "a\u{fffd}31m\u{fffd}b\u{fffd}");
        assert_eq!(line("Zürich 東京 🦀"), "Zürich 東京 🦀");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(clipped("größer", 3), "grö…");
        assert_eq!(clipped("größer", 6), "größer");
    }
}
