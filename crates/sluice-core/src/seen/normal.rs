//! The normal form of a text: what two texts have in common that mean the same value.

use super::letters::{ascii_digit, is_invisible, is_space};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Punctuation that does not belong to a value when it is at one of its ends.
const ENDS: [char; 18] =
    [' ', '.', ',', ';', ':', '!', '?', '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>'];

/// The compatibility form (NFKC) without invisible characters. Every white space is a space,
/// and every decimal digit is an ASCII digit.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(ascii) = rest.bytes().position(|byte| !byte.is_ascii()) {
        // A mark composes with the character before it, so the last ASCII character is
        // normalised with what follows. No ASCII character composes with one before it.
        let start = ascii.saturating_sub(1);
        let length = rest[ascii..].bytes().position(|byte| byte.is_ascii());
        let end = length.map_or(rest.len(), |length| ascii + length);
        rest[..start].chars().for_each(|c| push_visible(&mut out, c));
        rest[start..end].nfkc().for_each(|c| push_visible(&mut out, c));
        rest = &rest[end..];
    }
    rest.chars().for_each(|c| push_visible(&mut out, c));
    Cow::Owned(out)
}

fn push_visible(out: &mut String, c: char) {
    if is_space(c) {
        out.push(' ');
    } else if c.is_ascii() {
        out.extend(Some(c).filter(|c| !c.is_ascii_control()));
    } else if !is_invisible(c) {
        out.push(ascii_digit(c).unwrap_or(c));
    }
}

/// The clean form in lower case, with single spaces and without punctuation at the ends. A text
/// of punctuation alone keeps it: `..` and `/` are values, too. Only a text without anything
/// visible is empty.
pub(super) fn normal(text: &str) -> String {
    let clean = clean(text);
    let bytes = clean.as_bytes();
    let mut out = String::with_capacity(clean.len() + 8);
    for (at, c) in clean.char_indices() {
        if c == ' ' {
            push_space(&mut out);
        } else if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
            if c == '.' && joins_sentences(bytes, at) {
                push_space(&mut out);
            }
        } else {
            push_folded(&mut out, c);
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    let trimmed = out.trim_matches(ENDS);
    if trimmed.is_empty() || trimmed.len() == out.len() { out } else { trimmed.to_owned() }
}

fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Whether the full stop at `at` ends a sentence although no space follows: people write
/// `www.example.com.They`.
fn joins_sentences(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    let is = |at: usize, has: fn(&u8) -> bool| bytes.get(at).is_some_and(has);
    before.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && is(at + 1, u8::is_ascii_uppercase)
        && is(at + 2, u8::is_ascii_lowercase)
}

/// Two texts that differ only in case have one folded form. Lower case alone is not enough:
/// the lower case of `STRASSE` is not that of `Straße`.
fn push_folded(out: &mut String, c: char) {
    match c {
        // Its upper case is that of `i`, which is another letter.
        'ı' => out.push(c),
        'ẞ' => out.push_str("ss"),
        _ => out.extend(c.to_uppercase().flat_map(char::to_lowercase)),
    }
}

/// A URL without its scheme and the slash at its end; other text unchanged.
pub(super) fn bare_url(form: &str) -> &str {
    let rest = form.strip_prefix("http://").or_else(|| form.strip_prefix("https://"));
    let bare = rest.unwrap_or(form).trim_end_matches('/');
    if bare.is_empty() { form } else { bare }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_form() {
        for (text, form) in [
            ("  Bob\n SMITH. ", "bob smith"),
            ("ma\u{200b}rk@x.com", "mark@x.com"),
            ("ｍａｒｋ＠ｘ．ｃｏｍ", "mark@x.com"),
            ("e\u{301}t\u{e9}", "été"),
            ("x\u{ad}\u{301}", "x\u{301}"),
            ("STRASSE Straße STRAẞE", "strasse strasse strasse"),
            ("ΣΑΣ σας", "σασ σασ"),
            ("İı", "i\u{307}ı"),
            ("٤٢", "42"),
            ("a\u{1f}b\tc\u{a0}d\u{2028}e", "a b c d e"),
            ("(\"quoted\")", "quoted"),
            ("..", ".."),
            (" / ", "/"),
            ("\u{200b}\n", ""),
            ("", ""),
            ("é", "é"),
            ("aé", "aé"),
            ("日本a語", "日本a語"),
        ] {
            assert_eq!(normal(text), form, "{text:?}");
        }
    }

    #[test]
    fn a_space_is_inserted_only_between_sentences() {
        assert_eq!(normal("at www.a.com.They sent"), "at www.a.com. they sent");
        assert_eq!(normal("v2.Next"), "v2. next");
        for same in ["ada@x.com", "A.B.Smith", "x.COM", "1.5", ".Net"] {
            assert_eq!(normal(same), same.to_lowercase().trim_start_matches('.'));
        }
    }

    #[test]
    fn scheme_and_last_slash_are_not_part_of_a_url() {
        assert_eq!(bare_url("https://x.com/a/"), "x.com/a");
        assert_eq!(bare_url("http://x.com"), "x.com");
        for same in ["ftp://x.com", "/", "//", "http://", "x"] {
            assert_eq!(bare_url(same), same);
        }
    }
}
