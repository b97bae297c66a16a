//! The TLS parameters of a URL, in both of its forms:
//! `postgres://host/name?name=value&…` and `name=value name='value' …`.

use crate::postgres::tls::TlsSettings;
use std::ops::Range;

/// Splits a URL into the rest and its TLS settings. The last of two equal parameters
/// wins, as in the driver.
pub(super) fn split_tls(url: &str) -> (String, TlsSettings) {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    let found = if is_url { in_url(url) } else { in_list(url) };
    let mut settings = TlsSettings::default();
    let mut rest = url.to_owned();
    // From the end, so that earlier ranges stay valid.
    for UrlParam { range, name, value } in found.into_iter().rev() {
        let setting = match &*name {
            "sslmode" => &mut settings.mode,
            "sslrootcert" => &mut settings.root,
            _ => continue,
        };
        setting.get_or_insert(value);
        rest.replace_range(range, "");
    }
    (rest, settings)
}

/// A parameter, and its range in the URL, including the separator after it.
struct UrlParam {
    range: Range<usize>,
    name: String,
    value: String,
}

fn in_url(url: &str) -> Vec<UrlParam> {
    // The part before `@` may contain any character, because it holds a password.
    let after = url.find('@').map_or(0, |at| at + 1);
    let Some(mark) = url[after..].find('?') else { return Vec::new() };
    let mut place = after + mark + 1;
    let mut found = Vec::new();
    for part in url[place..].split_inclusive('&') {
        let (name, value) = part.trim_end_matches('&').split_once('=').unwrap_or((part, ""));
        let range = place..place + part.len();
        found.push(UrlParam { range, name: decoded(name), value: decoded(value) });
        place += part.len();
    }
    found
}

/// Decodes percent encoding.
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

/// Leaves what it cannot parse to the driver, which reports the error.
fn in_list(list: &str) -> Vec<UrlParam> {
    let mut found = Vec::new();
    let mut rest = list.trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let place = list.len() - rest.len();
        let (value, after) = first_value(after.trim_start());
        rest = after.trim_start();
        let range = place..list.len() - rest.len();
        found.push(UrlParam { range, name: name.trim_end().to_owned(), value });
    }
    found
}

/// The first value, quoted or up to a space, and the text after it.
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
