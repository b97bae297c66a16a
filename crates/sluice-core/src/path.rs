//! Dotted paths in documents.
//!
//! A path is a name and the way into its value: `init.outputs.risk`, `$init.stdout`, `args.x`,
//! `items[0].name`, `answer["a key"]`, `name.length`. Expressions, templates and references
//! (`stdin`, `inputs`, `for_each`) use the same scanner, so a path means the same everywhere.
//!
//! - Names are letters, digits and `_` of any script; `-` may stand between two
//!   of those, since there is no arithmetic and ids such as `node-1` are common.
//! - `.0` and `[0]` both index. On an object, where there is nothing to index,
//!   they mean the key `"0"`. `["0"]` is always a key.
//! - `$["any id"]` names a step whose id is not a name.
//! - A head may begin with a digit (programs make such ids). In an expression
//!   it then needs its `$`, or it would be a number.

pub(crate) mod quoted;

use crate::limits::{EXPRESSION_BYTES_MAX, NAME_CHARS_MAX};
use crate::span::{Fault, Span};
use crate::wire;
use std::fmt;
use std::ops::Range;

/// One segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object; `length` is also the length of a text or list.
    Key(String),
    /// An element of a list, or the field of an object with that number as its name.
    Index(usize),
}

/// A name and the way into its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    text: String,
    head: String,
    rest: Vec<Segment>,
    shape: PathNotation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathNotation {
    /// Names and dots only, so the text is also a dotted key.
    Dotted,
    /// With brackets.
    Bracketed,
}

/// A path at its position in an expression or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The path without its delimiters.
    pub path: Path,
    /// The position of the path, relative to the start of the text.
    pub span: Span,
}

impl Path {
    /// Parses `text`, which must be one path.
    pub fn parse(text: &str) -> Result<Path, Fault> {
        let (path, end) = scan(text, 0)?;
        if end < text.len() {
            return Err(Fault::new(
                end..text.len(),
                format!("expected the end of the path, found {}", found_at(text, end)),
            ));
        }
        Ok(path)
    }

    /// The first name of the path, without `$`.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// The segments after the name.
    pub fn rest(&self) -> &[Segment] {
        &self.rest
    }

    /// Whether the path starts with `$`, as in `$id.stdout`.
    pub(crate) fn has_sigil(&self) -> bool {
        self.text.starts_with('$')
    }

    /// The path as one dotted key (`a.b.c`), if it has no brackets.
    pub fn dotted(&self) -> Option<&str> {
        match self.shape {
            PathNotation::Dotted => Some(self.text.strip_prefix('$').unwrap_or(&self.text)),
            PathNotation::Bracketed => None,
        }
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl serde::Serialize for Path {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for Path {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        wire::parsed(deserializer, "a path", Path::parse)
    }
}

/// Reads the longest path that begins at byte `start`; returns it and the byte after it.
pub(crate) fn scan(source: &str, start: usize) -> Result<(Path, usize), Fault> {
    let mut shape = PathNotation::Dotted;
    let sigil = source[start..].starts_with('$');
    let mut at = start + usize::from(sigil);
    let head = if sigil && source[at..].starts_with('[') {
        shape = PathNotation::Bracketed;
        let (Segment::Key(head), end) = bracket(source, at)? else {
            return Err(Fault::new(start..at + 1, "expected a quoted id after `$[`"));
        };
        at = end;
        head
    } else {
        let end = name_end(source, at);
        if end == at {
            return Err(Fault::new(
                at..after_char(source, at),
                format!("expected a name, found {}", found_at(source, at)),
            ));
        }
        let head = source[at..end].to_owned();
        at = end;
        head
    };
    if head.chars().count() > NAME_CHARS_MAX {
        return Err(Fault::new(start..at, format!("name is over {NAME_CHARS_MAX} characters")));
    }
    let mut rest = Vec::new();
    loop {
        let (segment, end) = match source.as_bytes().get(at) {
            Some(b'.') => field(source, at)?,
            Some(b'[') => {
                shape = PathNotation::Bracketed;
                bracket(source, at)?
            }
            _ => break,
        };
        rest.push(segment);
        at = end;
        if at - start > EXPRESSION_BYTES_MAX {
            let message = format!("path is over {EXPRESSION_BYTES_MAX} bytes");
            return Err(Fault::new(start..at, message));
        }
    }
    let text = source[start..at].to_owned();
    Ok((Path { text, head, rest, shape }, at))
}

/// Reads the `${ path }` that begins at byte `start`; returns the path, its range and the byte
/// after `}`.
pub(crate) fn scan_braced(
    source: &str,
    start: usize,
) -> Result<(Path, Range<usize>, usize), Fault> {
    let inner = blanks_end(source, start + 2);
    let (path, end) = scan(source, inner)?;
    let close = blanks_end(source, end);
    if source[close..].starts_with('}') {
        return Ok((path, inner..end, close + 1));
    }
    Err(Fault::new(
        close..after_char(source, close),
        format!("expected `}}` after the path, found {}", found_at(source, close)),
    ))
}

/// The character at byte `at`, for a message.
pub(crate) fn found_at(source: &str, at: usize) -> String {
    match source[at..].chars().next() {
        None => "the end".to_owned(),
        Some('\n') => "a line break".to_owned(),
        Some(character) if character.is_whitespace() => "a blank".to_owned(),
        Some(character) => format!("`{character}`"),
    }
}

/// The end of the name that begins at byte `at`; `at` itself if there is none.
pub(crate) fn name_end(source: &str, at: usize) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut end = at;
    let mut characters = source[at..].chars().peekable();
    while let Some(next) = characters.next() {
        let inside = next == '-' && end > at && characters.peek().copied().is_some_and(word);
        if !word(next) && !inside {
            break;
        }
        end += next.len_utf8();
    }
    end
}

/// The byte after the character at `at`, or the end.
pub(crate) fn after_char(source: &str, at: usize) -> usize {
    source[at..].chars().next().map_or(at, |c| at + c.len_utf8())
}

fn blanks_end(source: &str, at: usize) -> usize {
    source.len() - source[at..].trim_start().len()
}

/// Reads the `.name` or `.0` that begins at byte `start`.
fn field(source: &str, start: usize) -> Result<(Segment, usize), Fault> {
    let end = name_end(source, start + 1);
    if end == start + 1 {
        let found = found_at(source, end);
        let message = format!("expected a name or an index after `.`, found {found}");
        return Err(Fault::new(start..after_char(source, end), message));
    }
    Ok((dotted_segment(&source[start + 1..end]), end))
}

/// `.0` indexes, `.007` and `.x` name a field: an index is written in one way only.
fn dotted_segment(name: &str) -> Segment {
    match name.parse::<usize>() {
        Ok(index) if index.to_string() == name => Segment::Index(index),
        _ => Segment::Key(name.to_owned()),
    }
}

/// Reads the `[0]` or `["key"]` that opens at byte `start`.
fn bracket(source: &str, start: usize) -> Result<(Segment, usize), Fault> {
    let at = start + 1;
    let (segment, end) = match source.as_bytes().get(at) {
        Some(b'"' | b'\'') => {
            let (key, end) = quoted::scan(source, at)?;
            (Segment::Key(key), end)
        }
        Some(digit) if digit.is_ascii_digit() => {
            let digits = source[at..].bytes().take_while(u8::is_ascii_digit).count();
            let end = at + digits;
            let index =
                source[at..end].parse().map_err(|_| Fault::new(at..end, "index is too large"))?;
            (Segment::Index(index), end)
        }
        _ => {
            return Err(Fault::new(
                start..after_char(source, at),
                format!(
                    "expected an index or a quoted key after `[`, found {}",
                    found_at(source, at)
                ),
            )
            .with_hint("write `[0]` or `[\"key\"]`"));
        }
    };
    if !source[end..].starts_with(']') {
        return Err(Fault::new(
            start..end,
            format!("expected `]`, found {}", found_at(source, end)),
        ));
    }
    Ok((segment, end + 1))
}

#[cfg(test)]
mod tests;
