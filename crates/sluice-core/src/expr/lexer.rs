//! Splits the source into tokens.

use super::Comparison;
use crate::path::{self, Path, after_char, found_at, name_end, quoted};
use crate::span::Fault;
use serde_json::Number;
use std::ops::Range;

/// A token and its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A path and its own range, which is smaller than the token's for `${path}`.
    Path(Path, Range<usize>),
    Text(String),
    Number(Number),
    True,
    False,
    Null,
    Or,
    And,
    Not,
    In,
    Compare(Comparison),
    Open,
    Close,
    ListOpen,
    ListClose,
    Comma,
    /// After the last token; its range is empty.
    End,
}

/// All tokens of `source`, an [`Token::End`] last.
pub(super) fn lex(source: &str) -> Result<Vec<Lexeme>, Fault> {
    let mut lexemes = Vec::new();
    let mut at = 0;
    while let Some(next) = source[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let (token, end) = token(source, at, next)?;
        lexemes.push(Lexeme { token, range: at..end });
        at = end;
    }
    lexemes.push(Lexeme { token: Token::End, range: at..at });
    Ok(lexemes)
}

/// The token that begins with `first` at byte `at`, and its end.
fn token(source: &str, at: usize, first: char) -> Result<(Token, usize), Fault> {
    match first {
        '\'' | '"' => {
            let (text, end) = quoted::scan(source, at)?;
            Ok((Token::Text(text), end))
        }
        '0'..='9' => number(source, at),
        '-' if source[at + 1..].starts_with(|c: char| c.is_ascii_digit()) => number(source, at),
        '$' if source[at..].starts_with("${") => {
            let (path, range, end) = path::scan_braced(source, at)?;
            Ok((Token::Path(path, range), end))
        }
        '$' | '_' => name(source, at),
        letter if letter.is_alphabetic() => name(source, at),
        _ => symbol(source, at),
    }
}

/// A keyword or a path.
fn name(source: &str, at: usize) -> Result<(Token, usize), Fault> {
    let end = name_end(source, at);
    // `x in['a']` is a list after a keyword, not a path.
    if !source[end..].starts_with('.')
        && let Some(keyword) = keyword(&source[at..end])
    {
        return Ok((keyword, end));
    }
    let (path, end) = path::scan(source, at)?;
    Ok((Token::Path(path, at..end), end))
}

fn keyword(word: &str) -> Option<Token> {
    Some(match word {
        "true" => Token::True,
        "false" => Token::False,
        "null" => Token::Null,
        "or" => Token::Or,
        "and" => Token::And,
        "not" => Token::Not,
        "in" => Token::In,
        _ => return None,
    })
}

fn symbol(source: &str, at: usize) -> Result<(Token, usize), Fault> {
    let two = source.get(at..at + 2).and_then(|symbol| {
        Some(match symbol {
            "==" => Token::Compare(Comparison::Equal),
            "!=" => Token::Compare(Comparison::Unequal),
            ">=" => Token::Compare(Comparison::AtLeast),
            "<=" => Token::Compare(Comparison::AtMost),
            "&&" => Token::And,
            "||" => Token::Or,
            _ => return None,
        })
    });
    if let Some(token) = two {
        return Ok((token, at + 2));
    }
    let token = match source.as_bytes()[at] {
        b'>' => Token::Compare(Comparison::Greater),
        b'<' => Token::Compare(Comparison::Less),
        b'!' => Token::Not,
        b'(' => Token::Open,
        b')' => Token::Close,
        b'[' => Token::ListOpen,
        b']' => Token::ListClose,
        b',' => Token::Comma,
        _ => return Err(stray(source, at)),
    };
    Ok((token, at + 1))
}

/// The error for a character that begins no token, with a hint for likely mistakes.
fn stray(source: &str, at: usize) -> Fault {
    let fault =
        Fault::new(at..after_char(source, at), format!("unexpected {}", found_at(source, at)));
    match source[at..].chars().next() {
        Some('=') => fault.with_hint("use `==`"),
        Some('&') => fault.with_hint("use `and` or `&&`"),
        Some('|') => fault.with_hint("use `or` or `||`"),
        Some('+' | '-' | '*' | '/' | '%') => fault.with_hint("expressions have no arithmetic"),
        Some('.') => fault.with_hint("a number begins with a digit, a path with a name"),
        Some('\u{2018}'..='\u{201f}') => fault.with_hint("use straight quotes: ' or \""),
        _ => fault,
    }
}

fn number(source: &str, at: usize) -> Result<(Token, usize), Fault> {
    let digits = |from: usize| {
        let count = source[from..].bytes().take_while(u8::is_ascii_digit).count();
        from + count
    };
    let sign = usize::from(source[at..].starts_with('-'));
    let mut end = digits(at + sign);
    let mut whole = true;
    if source[end..].starts_with('.') {
        let fraction = digits(end + 1);
        if fraction == end + 1 {
            return Err(Fault::new(
                at..fraction,
                format!("expected a digit after `.`, found {}", found_at(source, fraction)),
            ));
        }
        end = fraction;
        whole = false;
    }
    if let Some(exponent) = exponent(source, end) {
        end = digits(exponent);
        whole = false;
    }
    let word = name_end(source, end);
    if word > end {
        let text = &source[at..word];
        let fault = Fault::new(at..word, format!("`{text}` is neither a number nor a name"));
        return Err(fault.with_hint(format!("if it is an id, write `${text}`")));
    }
    let text = &source[at..end];
    let number = match whole {
        true => integer(text),
        false => crate::value::numeric(text),
    };
    match number {
        Some(number) => Ok((Token::Number(number), end)),
        None => Err(Fault::new(at..end, format!("`{text}` is out of range"))),
    }
}

/// Where the digits of the exponent at byte `at` begin, if there is an exponent.
fn exponent(source: &str, at: usize) -> Option<usize> {
    let rest = source[at..].strip_prefix(['e', 'E'])?;
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.starts_with(|c: char| c.is_ascii_digit()).then_some(source.len() - digits.len())
}

/// A whole number must fit 64 bits: silent rounding would make `==` wrong.
fn integer(text: &str) -> Option<Number> {
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}
