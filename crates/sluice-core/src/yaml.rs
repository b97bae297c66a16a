//! Parses text into a [`Node`] tree. The only module that uses the YAML parser.
//!
//! JSON is read by the same parser, as YAML in flow style. Scalars follow the core schema of
//! YAML 1.2, restricted to what JSON can represent. Events arrive one at a time and every bound
//! is checked immediately, so that hostile text costs no more than its own length.

use crate::code::Code;
use crate::diagnostic::{Problem, Problems};
use crate::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NODES_MAX, NAME_CHARS_MAX};
use crate::node::{Entry, Kind, Node};
use crate::span::Span;
use crate::visible::{shorten, shorten_to};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::Number;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// So many bytes of text count as one node, so that aliases cannot multiply a long text.
const TEXT_BYTES_A_NODE: usize = 32;

/// Parses one document. Problems go to `problems`; a tree is returned if the text could be read
/// to its end, so that later checks can report problems too.
pub fn parse<'t>(text: &'t str, problems: &mut Problems) -> Option<Node<'t>> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message =
            format!("the document has {} bytes; the limit is {DOCUMENT_BYTES_MAX}", text.len());
        problems.add(Problem::new(Code::DocumentTooLarge, Span::default(), message));
        return None;
    }
    let mut builder = Builder::new(text, problems);
    for event in Parser::new_from_str(text) {
        let taken = match event {
            Ok((event, span)) => {
                let range = span.byte_range().unwrap_or_default();
                builder.handle(event, Span::new(range.start, range.end))
            }
            Err(error) => Err(syntax_error(text, &error)),
        };
        if let Err(fatal) = taken {
            builder.add(fatal);
            return None;
        }
    }
    if builder.root.is_none() {
        let message = "the file contains no document";
        builder.add(Problem::new(Code::EmptyDocument, Span::default(), message));
    }
    builder.root
}

fn syntax_error(text: &str, error: &ScanError) -> Problem {
    let start = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let width = text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
    let span = Span::new(start, start + width);
    match error.kind() {
        // The parser reads ahead, so its own limit may be reached first.
        ErrorKind::RecursionLimitExceeded => too_deep(span),
        _ if error.info().contains("tab") => tab(text, start, span, &error.info()),
        _ => Problem::new(Code::SyntaxError, span, error.info()),
    }
}

/// A tab where YAML allows only blanks. The parser often reports it at the end of the preceding
/// text, so the first line from there that begins with a tab is shown.
fn tab(text: &str, start: usize, span: Span, message: &str) -> Problem {
    let mut line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let mut found = None;
    for written in text[line..].split_inclusive('\n') {
        let blanks = written.len() - written.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = written[..blanks].find('\t') {
            found = Some(line + tab);
            break;
        }
        line += written.len();
    }
    let (span, message) = match found {
        Some(at) => (Span::new(at, at + 1), "a tab where only blanks are allowed"),
        None => (span, message),
    };
    Problem::new(Code::SyntaxError, span, message).with_hint("indent with blanks, never with tabs")
}

fn too_deep(span: Span) -> Problem {
    let message = format!("nesting is deeper than {DOCUMENT_DEPTH_MAX} levels");
    Problem::new(Code::TooDeep, span, message)
}

/// An open list or map.
struct OpenCollection<'t> {
    span: Span,
    anchor: usize,
    extent: Extent,
    inside: CollectionItems<'t>,
}

enum CollectionItems<'t> {
    List(Vec<Node<'t>>),
    /// The entries so far, and the key that waits for its value.
    Map(Vec<Entry<'t>>, Option<(Cow<'t, str>, Span)>),
}

/// The size of a node with aliases expanded.
#[derive(Clone, Copy)]
struct Extent {
    /// The number of nodes, including itself.
    size: usize,
    /// The depth of lists and maps, including itself.
    height: usize,
}

impl Extent {
    fn of_text(text: &str) -> Extent {
        Extent { size: 1 + text.len() / TEXT_BYTES_A_NODE, height: 0 }
    }
}

/// An anchored node, kept for its aliases.
struct Anchored<'t> {
    extent: Extent,
    node: Node<'t>,
}

struct Builder<'t, 'p> {
    text: &'t str,
    problems: &'p mut Problems,
    open: Vec<OpenCollection<'t>>,
    anchors: BTreeMap<usize, Anchored<'t>>,
    root: Option<Node<'t>>,
    /// The number of nodes so far, including aliases and anchored copies.
    nodes: usize,
    documents: usize,
}

impl<'t, 'p> Builder<'t, 'p> {
    fn new(text: &'t str, problems: &'p mut Problems) -> Builder<'t, 'p> {
        Builder {
            text,
            problems,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            root: None,
            nodes: 0,
            documents: 0,
        }
    }

    fn add(&mut self, problem: Problem) {
        // A path may be long, so skip it if it would not be shown.
        let path = if self.problems.is_full() { String::new() } else { self.path() };
        self.problems.add(problem.at_path(path));
    }

    /// Handles one event; an error ends the reading.
    fn handle(&mut self, event: Event<'t>, span: Span) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(..) => self.begin_document(span),
            Event::Scalar(text, style, anchor, tag) => {
                let extent = Extent::of_text(&text);
                self.count(span, extent.size)?;
                let node = self.scalar(text, style, tag.as_deref(), span);
                self.attach(node, extent, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.enter(span, anchor, tag.as_deref(), CollectionItems::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.enter(span, anchor, tag.as_deref(), CollectionItems::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Alias(id) => self.alias(id, span),
            _ => Ok(()),
        }
    }

    fn begin_document(&mut self, span: Span) -> Result<(), Problem> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        Err(Problem::new(Code::MultipleDocuments, span, "a second document begins here")
            .with_hint("put each workflow in a file of its own"))
    }

    fn count(&mut self, span: Span, nodes: usize) -> Result<(), Problem> {
        self.nodes += nodes;
        if self.nodes <= DOCUMENT_NODES_MAX {
            return Ok(());
        }
        let message = format!("the document expands to over {DOCUMENT_NODES_MAX} values");
        Err(Problem::new(Code::TooManyNodes, span, message)
            .with_hint("aliases count each time they are used"))
    }

    fn enter(
        &mut self,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        inside: CollectionItems<'t>,
    ) -> Result<(), Problem> {
        self.count(span, 1)?;
        if self.open.len() == DOCUMENT_DEPTH_MAX {
            return Err(too_deep(span));
        }
        if let Some(tag) = tag {
            self.refuse_tag(tag, span);
        }
        self.open.push(OpenCollection {
            span,
            anchor,
            extent: Extent { size: 1, height: 1 },
            inside,
        });
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Problem> {
        let done = self.open.pop().expect("the parser closes only what it opened");
        let kind = match done.inside {
            CollectionItems::List(items) => Kind::List(items),
            CollectionItems::Map(mut entries, _) => {
                self.refuse_duplicates(&mut entries);
                Kind::Map(entries)
            }
        };
        // A block map has no bracket to point at, so its first key is used.
        let span = match &kind {
            Kind::Map(entries) if done.span.start == done.span.end => {
                entries.first().map_or(done.span, |entry| entry.key_span)
            }
            _ => done.span,
        };
        self.attach(Node { span, kind }, done.extent, done.anchor)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Problem> {
        let Some(found) = self.anchors.get(&id) else {
            return Err(Problem::new(
                Code::SyntaxError,
                span,
                "an alias cannot be inside its own anchor",
            ));
        };
        let extent = found.extent;
        if self.open.len() + extent.height > DOCUMENT_DEPTH_MAX {
            return Err(too_deep(span));
        }
        let written = found.node.span;
        let mut node = Node { span, ..found.node.clone() };
        if self.at_key() && matches!(node.kind, Kind::Bool(_) | Kind::Number(_)) {
            node.kind = Kind::Text(Cow::Borrowed(&self.text[written.range()]));
        }
        self.count(span, extent.size)?;
        self.attach(node, extent, 0)
    }

    /// Adds a complete node to the innermost open list or map.
    fn attach(&mut self, node: Node<'t>, extent: Extent, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.count(node.span, extent.size)?;
            self.anchors.insert(anchor, Anchored { extent, node: node.clone() });
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        parent.extent.size += extent.size;
        parent.extent.height = parent.extent.height.max(1 + extent.height);
        match &mut parent.inside {
            CollectionItems::List(items) => items.push(node),
            CollectionItems::Map(entries, waiting) => match waiting.take() {
                Some((key, key_span)) => entries.push(Entry { key, key_span, value: node }),
                None => {
                    let span = node.span;
                    *waiting = Some((key(self.text, node)?, span));
                }
            },
        }
        Ok(())
    }

    /// Whether the next node is a key.
    fn at_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection { inside: CollectionItems::Map(_, None), .. })
        )
    }

    /// Reports duplicate keys and keeps the first of each.
    fn refuse_duplicates(&mut self, entries: &mut Vec<Entry<'t>>) {
        let repeated = repeated(entries);
        if repeated.is_empty() {
            return;
        }
        for (first, second) in &repeated {
            let (first, second) = (&entries[*first], &entries[*second]);
            let message = format!("the key `{}` is set twice", shorten(&second.key));
            let mut problem = Problem::new(Code::DuplicateKey, second.key_span, message);
            if !self.problems.is_full() {
                let line = 1 + self.text[..first.key_span.start as usize].matches('\n').count();
                problem = problem.with_hint(format!("it is first set on line {line}"));
            }
            self.add(problem);
        }
        // One pass: removing them one by one would be quadratic.
        let mut repeated = repeated.into_iter().map(|(_, second)| second).peekable();
        let mut at = 0;
        entries.retain(|_| {
            let keep = repeated.next_if_eq(&at).is_none();
            at += 1;
            keep
        });
    }

    fn refuse_tag(&mut self, tag: &Tag, span: Span) {
        let tag = format!("{}{}", tag.handle(), tag.suffix());
        let message = format!("the tag `{}` is not supported", shorten(&tag));
        let problem = Problem::new(Code::UnsupportedTag, span, message);
        self.add(problem.with_hint("leave the tag out").conclusive());
    }

    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Node<'t> {
        let kind = match tag {
            Some(tag) if tag.handle() == "tag:yaml.org,2002:" && tag.suffix() == "str" => {
                Kind::Text(text)
            }
            Some(tag) => {
                self.refuse_tag(tag, span);
                Kind::Text(text)
            }
            None if style == ScalarStyle::Plain => self.plain(text, span),
            None => Kind::Text(text),
        };
        Node { span, kind }
    }

    /// The core schema: null, booleans, integers and floats; all else is text.
    fn plain(&mut self, text: Cow<'t, str>, span: Span) -> Kind<'t> {
        match &*text {
            "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
            "true" | "True" | "TRUE" => return Kind::Bool(true),
            "false" | "False" | "FALSE" => return Kind::Bool(false),
            _ => {}
        }
        match number(&text) {
            Scalar::Number(number) => Kind::Number(number),
            Scalar::Text => Kind::Text(text),
            // It stays a number, so that the problem is reported once.
            Scalar::OutOfRange if self.at_key() => Kind::Text(text),
            Scalar::OutOfRange => {
                let message = format!("`{}` does not fit a 64-bit number", shorten(&text));
                self.add(
                    Problem::new(Code::NumberOutOfRange, span, message)
                        .with_hint("quote it if it is meant as text")
                        .conclusive(),
                );
                Kind::Text(text)
            }
        }
    }

    /// The path of the current node: `steps[3].outputs`.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.inside {
                CollectionItems::List(items) => {
                    let _ = write!(path, "[{}]", items.len());
                }
                CollectionItems::Map(_, Some((key, _))) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&shorten_to(key, NAME_CHARS_MAX));
                }
                CollectionItems::Map(_, None) => {}
            }
        }
        path
    }
}

/// A key is the text of a scalar, whatever type the scalar would have as a value.
fn key<'t>(text: &'t str, node: Node<'t>) -> Result<Cow<'t, str>, Problem> {
    match node.kind {
        Kind::Text(key) => Ok(key),
        Kind::Bool(_) | Kind::Number(_) => Ok(Cow::Borrowed(&text[node.span.range()])),
        Kind::Null | Kind::List(_) | Kind::Map(_) => {
            let message = format!("a key must be text, not {}", node.describe());
            Err(Problem::new(Code::BadKey, node.span, message))
        }
    }
}

/// The pairs of entries with the same key, first and duplicate, in document order.
fn repeated(entries: &[Entry<'_>]) -> Vec<(usize, usize)> {
    // Nearly all maps are small, where comparing all pairs is faster than sorting.
    if entries.len() <= 12 {
        let earlier = |at: usize| entries[..at].iter().position(|one| one.key == entries[at].key);
        return (1..entries.len()).filter_map(|at| Some((earlier(at)?, at))).collect();
    }
    let mut sorted: Vec<usize> = (0..entries.len()).collect();
    sorted.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
    let same = sorted.chunk_by(|a, b| entries[*a].key == entries[*b].key);
    let mut pairs: Vec<(usize, usize)> =
        same.flat_map(|same| same[1..].iter().map(|later| (same[0], *later))).collect();
    pairs.sort_by_key(|(_, second)| *second);
    pairs
}

enum Scalar {
    Number(Number),
    Text,
    OutOfRange,
}

fn number(text: &str) -> Scalar {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    match digits.as_bytes() {
        [b'0'..=b'9', ..] => {}
        [b'.', b'0'..=b'9', ..] => {}
        [b'.', ..] if matches!(&digits[1..], "inf" | "Inf" | "INF" | "nan" | "NaN" | "NAN") => {
            return Scalar::OutOfRange;
        }
        _ => return Scalar::Text,
    }
    let radix = if digits.starts_with("0x") {
        16
    } else if digits.starts_with("0o") {
        8
    } else {
        10
    };
    if radix != 10 {
        let rest = &digits[2..];
        if digits.len() != text.len() || rest.is_empty() || !rest.chars().all(|c| c.is_digit(radix))
        {
            return Scalar::Text;
        }
        return u64::from_str_radix(rest, radix)
            .map_or(Scalar::OutOfRange, |n| Scalar::Number(n.into()));
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return text
            .parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .map_or(Scalar::OutOfRange, Scalar::Number);
    }
    if !is_float(digits) {
        return Scalar::Text;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).map_or(Scalar::OutOfRange, Scalar::Number)
}

/// Digits, then a fraction, an exponent or both.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole) && all_digits(fraction) && exponent_fits
}

#[cfg(test)]
mod tests;
