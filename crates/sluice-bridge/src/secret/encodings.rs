//! Encodings of a secret that are searched for.
//!
//! Plain, JSON, URL, base64 and hexadecimal. Other transformations of a text (reversed, with
//! spaces) cannot be found.

use crate::limits::ENCODED_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Line lengths of `base64` and `openssl`.
const BASE64_LINES: [usize; 2] = [76, 64];
/// Line length of `xxd -p`.
const HEX_LINE: usize = 60;

/// All forms of a secret that are searched for.
pub(super) fn all(plain: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::from([plain.to_owned()]);
    words.extend(as_json(plain));
    words.extend(as_url(plain));
    if plain.len() <= ENCODED_BYTES_MAX {
        words.extend(as_base64(plain.as_bytes()));
        words.extend(as_hex(plain.as_bytes()));
    }
    words
}

/// As a JSON string: with the required escapes, with those that some writers add, and in ASCII.
fn as_json(plain: &str) -> [String; 3] {
    let quoted = Value::String(plain.to_owned()).to_string();
    let usual = quoted[1..quoted.len() - 1].to_owned();
    let slashes = usual.replace('/', "\\/");
    let mut ascii = String::with_capacity(usual.len());
    for c in usual.chars() {
        if c.is_ascii() {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    [usual, slashes, ascii]
}

/// As a URL part: percent-encoded in either case, and with `+` for a space.
fn as_url(plain: &str) -> [String; 3] {
    let escaped = |hex: fn(u8) -> String| {
        let mut text = String::with_capacity(plain.len());
        for byte in plain.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    text.push(char::from(byte));
                }
                other => text.push_str(&hex(other)),
            }
        }
        text
    };
    let upper = escaped(|byte| format!("%{byte:02X}"));
    let lower = escaped(|byte| format!("%{byte:02x}"));
    let form = upper.replace("%20", "+");
    [upper, lower, form]
}

/// As base64 at every offset within a longer text. Characters that share bits with adjacent
/// text are left out.
fn as_base64(plain: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let padded = [&[0; 2][..before], plain].concat();
            let whole = padded.len() * 8 / 6;
            let first = (before * 8).div_ceil(6);
            let text = engine.encode(padded);
            words.push(text[first..whole].to_owned());
        }
    }
    // A tool that encodes only the secret breaks long lines.
    let alone = words[0].clone();
    words.extend(BASE64_LINES.iter().filter_map(|length| broken(&alone, *length)));
    words
}

fn as_hex(plain: &[u8]) -> Vec<String> {
    let lower = plain.iter().fold(String::with_capacity(plain.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let lines = broken(&lower, HEX_LINE);
    [Some(lower.to_ascii_uppercase()), Some(lower), lines].into_iter().flatten().collect()
}

/// Splits a text into lines; `None` if it fits on one.
fn broken(text: &str, length: usize) -> Option<String> {
    if text.len() <= length {
        return None;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / length);
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % length == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    Some(lines)
}
