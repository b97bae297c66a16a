//! Tokens of a temporal condition.

use super::formula::UNIT;
use std::sync::Arc;

/// A token and the byte where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Word(Arc<str>),
    Text(Arc<str>),
    /// A number in ten-thousandths, and the letters behind it: `30m`.
    Number(i128, Arc<str>),
    Sign(&'static str),
}

/// Signs, longer ones first.
const SIGNS: [&str; 22] = [
    "::", "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")", "{", "}", "[", "]", ",",
    ":", ".", "+", "-", "*",
];

/// A text that is not a condition: the byte and the message.
pub(crate) type SyntaxError = (usize, String);

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (kind, length) = token(rest).map_err(|(offset, why)| (at + offset, why))?;
            tokens.push(Token { at, kind });
            at += length;
        }
    }
    Ok(tokens)
}

fn token(rest: &str) -> Result<(TokenKind, usize), SyntaxError> {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_ascii_alphabetic() || first == '_' {
        let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((TokenKind::Word(word.into()), word.len()));
    }
    if first.is_ascii_digit() {
        return number(rest);
    }
    if first == '"' {
        return string(rest);
    }
    match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        Some(sign) => Ok((TokenKind::Sign(sign), sign.len())),
        None => Err((0, format!("unexpected character {first:?}"))),
    }
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

fn number(rest: &str) -> Result<(TokenKind, usize), SyntaxError> {
    let whole = leading(rest, |c| c.is_ascii_digit());
    let behind = &rest[whole.len()..];
    let digits = behind.strip_prefix('.').map_or("", |rest| leading(rest, |c| c.is_ascii_digit()));
    let length = whole.len() + if digits.is_empty() { 0 } else { 1 + digits.len() };
    let unit = leading(&rest[length..], |c| c.is_ascii_alphanumeric());
    let value = decimal(whole, digits).ok_or((
        0,
        "the number is too large or has more than four digits after the point".to_owned(),
    ))?;
    Ok((TokenKind::Number(value, unit.into()), length + unit.len()))
}

/// A decimal number in ten-thousandths.
pub(super) fn decimal(whole: &str, digits: &str) -> Option<i128> {
    if whole.len() > 19 || digits.len() > 4 {
        return None;
    }
    let fraction: i128 = format!("{digits:0<4}").parse().ok()?;
    Some(whole.parse::<i128>().ok()? * UNIT + fraction)
}

fn string(rest: &str) -> Result<(TokenKind, usize), SyntaxError> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((TokenKind::Text(text.into()), at + 1)),
            '\\' => {
                let escape = chars.next().map_or(' ', |(_, c)| c);
                match escape {
                    'n' => text.push('\n'),
                    'r' => text.push('\r'),
                    't' => text.push('\t'),
                    '0' => text.push('\0'),
                    '\\' | '"' | '\'' => text.push(escape),
                    'x' | 'u' => text.push(
                        code_point(escape, &rest[at + 2..])
                            .map(|(c, length)| {
                                for _ in 0..length {
                                    chars.next();
                                }
                                c
                            })
                            .ok_or((at, "the escape is not valid".to_owned()))?,
                    ),
                    _ => return Err((at, format!("unknown escape \\{escape}"))),
                }
            }
            c => text.push(c),
        }
    }
    Err((0, "the string does not end".to_owned()))
}

/// The character of `\x41` or `\u{1_F600}`, and how many characters of text it takes.
fn code_point(escape: char, text: &str) -> Option<(char, usize)> {
    if escape == 'x' {
        let digits = text.get(..2)?;
        let code = u32::from_str_radix(digits, 16).ok().filter(|code| *code < 128)?;
        return Some((char::from_u32(code)?, 2));
    }
    let digits = text.strip_prefix('{')?;
    let digits = digits.get(..digits.find('}')?)?;
    let code = u32::from_str_radix(&digits.replace('_', ""), 16).ok()?;
    Some((char::from_u32(code)?, digits.chars().count() + 2))
}
