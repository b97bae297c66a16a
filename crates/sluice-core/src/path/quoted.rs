//! Quoted text in expressions and bracketed keys.

use crate::limits::EXPRESSION_BYTES_MAX;
use crate::span::Fault;

/// Reads the quoted text that opens at byte `start` of `source`; returns the text and the byte
/// after the closing quote.
pub(crate) fn scan(source: &str, start: usize) -> Result<(String, usize), Fault> {
    let quote = source.as_bytes()[start];
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(next) = source[at..].chars().next() {
        if next == char::from(quote) {
            return Ok((text, at + 1));
        }
        if text.len() > EXPRESSION_BYTES_MAX {
            let message = format!("string is over {EXPRESSION_BYTES_MAX} bytes");
            return Err(Fault::new(start..at, message));
        }
        if next == '\\' {
            let (character, end) = escape(source, at)?;
            text.push(character);
            at = end;
        } else {
            text.push(next);
            at += next.len_utf8();
        }
    }
    Err(Fault::new(start..source.len(), "unclosed string")
        .with_hint(format!("end it with {}", char::from(quote))))
}

/// The character of the escape at byte `at`, and its end.
fn escape(source: &str, at: usize) -> Result<(char, usize), Fault> {
    let Some(name) = source[at + 1..].chars().next() else {
        return Err(Fault::new(at..source.len(), "unclosed string"));
    };
    let end = at + 1 + name.len_utf8();
    let character = match name {
        '\\' | '\'' | '"' => name,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'u' => return unicode(source, at),
        _ => {
            return Err(Fault::new(at..end, format!("unknown escape `\\{name}`")).with_hint(
                r#"the escapes are \\ \' \" \n \t \r \uXXXX; write `\\` for a backslash"#,
            ));
        }
    };
    Ok((character, end))
}

/// `\uXXXX`, or two of them for one character as in JSON.
fn unicode(source: &str, at: usize) -> Result<(char, usize), Fault> {
    let first = unit(source, at)?;
    let end = at + 6;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, end));
    }
    let lone =
        || Fault::new(at..end, format!("`{}` is half of a surrogate pair", &source[at..end]));
    if !source[end..].starts_with("\\u") {
        return Err(lone());
    }
    let second = unit(source, end)?;
    let pair = [first, second].map(|unit| u16::try_from(unit).unwrap_or(0));
    match char::decode_utf16(pair).next() {
        Some(Ok(character)) => Ok((character, end + 6)),
        _ => Err(lone()),
    }
}

/// The four hexadecimal digits of the `\u` at byte `at`.
fn unit(source: &str, at: usize) -> Result<u32, Fault> {
    let digits =
        source.get(at + 2..at + 6).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    digits
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| Fault::new(at..at + 2, "`\\u` needs four hexadecimal digits"))
}
