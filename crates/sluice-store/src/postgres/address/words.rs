//! Words of a URL that are ours to read, in both of its forms:
//! `postgres://host/name?word=value&…`, and `word=value word='value' …`.

use crate::postgres::tls::Wish;
use std::ops::Range;

/// The URL without them, and what they say. The last of two that say different
/// things counts, as it does for the driver.
pub(super) fn take(url: &str) -> (String, Wish) {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    let found = if is_url { in_url(url) } else { in_list(url) };
    let mut wish = Wish::default();
    let mut rest = url.to_owned();
    // From the back, so that places before stay what they are.
    for (place, word, value) in found.into_iter().rev() {
        let wished = match &*word {
            "sslmode" => &mut wish.mode,
            "sslrootcert" => &mut wish.root,
            _ => continue,
        };
        wished.get_or_insert(value);
        rest.replace_range(place, "");
    }
    (rest, wish)
}

/// A word with its value, and where both are, with what parts them from the next.
type Found = (Range<usize>, String, String);

fn in_url(url: &str) -> Vec<Found> {
    // What stands before may hold any character: it is a password.
    let after = url.find('@').map_or(0, |at| at + 1);
    let Some(mark) = url[after..].find('?') else { return Vec::new() };
    let mut place = after + mark + 1;
    let mut found = Vec::new();
    for part in url[place..].split_inclusive('&') {
        let (word, value) = part.trim_end_matches('&').split_once('=').unwrap_or((part, ""));
        found.push((place..place + part.len(), decoded(word), decoded(value)));
        place += part.len();
    }
    found
}

/// `%20` and the like become what they stand for.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What cannot be read is left for the driver, which says so.
fn in_list(list: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut rest = list.trim_start();
    while let Some((word, after)) = rest.split_once('=') {
        let place = list.len() - rest.len();
        let (value, after) = first_value(after.trim_start());
        rest = after.trim_start();
        found.push((place..list.len() - rest.len(), word.trim_end().to_owned(), value));
    }
    found
}

/// A value, in quotes or up to a space, and what comes after it.
fn first_value(text: &str) -> (String, &str) {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted.is_some() => return (value, &text[place + 1..]),
            letter if quoted.is_none() && letter.is_whitespace() => return (value, &text[place..]),
            letter => value.push(letter),
        }
    }
    (value, "")
}
