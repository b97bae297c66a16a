//! Redacts secrets that are spread over the events of a stream.
//!
//! A model that repeats a key writes it token by token, each in its own event: no line contains
//! the key, but a reader of the stream can join it. So the texts at the same JSON path of
//! successive events are searched as one text.

use crate::secret::scrub::{REDACTED, Scrub};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The redacted stream; `None` if no secret was found.
pub(super) fn redact_stream(scrub: &Scrub, stream: &str) -> Option<String> {
    let mut lines: Vec<StreamLine<'_>> =
        stream.split_inclusive('\n').map(StreamLine::read).collect();
    let mut texts: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let StreamLine::Data(value, _) = line {
            collect_texts(value, &mut String::new(), at, &mut texts);
        }
    }
    let mut found = false;
    for (pointer, pieces) in texts {
        let whole: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let secrets = scrub.ranges(&whole);
        found |= !secrets.is_empty();
        let mut begin = 0;
        for (at, text) in pieces {
            let piece = begin..begin + text.len();
            begin = piece.end;
            if let StreamLine::Data(value, _) = &mut lines[at]
                && let Some(held) = value.pointer_mut(&pointer)
            {
                *held = without_secrets(&whole, piece, &secrets).into();
            }
        }
    }
    found.then(|| lines.iter().map(StreamLine::write).collect())
}

enum StreamLine<'t> {
    /// Data of an event, and the line's end.
    Data(Value, &'t str),
    Other(&'t str),
}

impl<'t> StreamLine<'t> {
    fn read(line: &'t str) -> StreamLine<'t> {
        let end = line.trim_end_matches(['\r', '\n']).len();
        let data =
            line[..end].strip_prefix("data:").and_then(|data| serde_json::from_str(data).ok());
        data.map_or(StreamLine::Other(line), |value| StreamLine::Data(value, &line[end..]))
    }

    fn write(&self) -> String {
        match self {
            StreamLine::Data(value, end) => format!("data: {value}{end}"),
            StreamLine::Other(line) => (*line).to_owned(),
        }
    }
}

/// Collects every text of a value by its JSON pointer.
fn collect_texts(
    value: &Value,
    pointer: &mut String,
    at: usize,
    texts: &mut BTreeMap<String, Vec<(usize, String)>>,
) {
    let length = pointer.len();
    match value {
        Value::String(text) => {
            texts.entry(pointer.clone()).or_default().push((at, text.clone()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                collect_texts(item, pointer, at, texts);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointer.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                collect_texts(field, pointer, at, texts);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A piece of the whole without the parts in secrets. Each secret is marked in the piece where
/// it begins.
fn without_secrets(whole: &str, piece: Range<usize>, secrets: &[Range<usize>]) -> String {
    let (mut clean, mut at) = (String::new(), piece.start);
    for secret in secrets.iter().filter(|one| one.start < piece.end && one.end > piece.start) {
        clean.push_str(&whole[at..secret.start.max(at)]);
        if secret.start >= piece.start {
            clean.push_str(REDACTED);
        }
        at = secret.end.min(piece.end);
    }
    clean.push_str(&whole[at..piece.end]);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use serde_json::json;

    fn stream(pieces: &[&str]) -> String {
        let event = |piece: &&str| {
            format!("event: x\ndata: {}\r\n\n", json!({"a/b": [{"t": piece}], "n": 1}))
        };
        pieces.iter().map(event).chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    #[test]
    fn a_secret_in_pieces_is_redacted() {
        let scrub = Scrub::new([&Secret::new("sk-hunter2")]).unwrap();
        let said = stream(&["it is sk", "-hun", "ter2, yes; sk-hunter2 and s", "k-hunter2"]);
        let clean = redact_stream(&scrub, &said).unwrap();
        let expected = ["it is [redacted]", "", ", yes; [redacted] and [redacted]", ""];
        assert_eq!(clean, stream(&expected));
    }

    #[test]
    fn a_stream_without_one_is_left_as_it_is() {
        let scrub = Scrub::new([&Secret::new("sk-hunter2")]).unwrap();
        assert_eq!(redact_stream(&scrub, &stream(&["sk-hunter", "1"])), None);
        assert_eq!(redact_stream(&scrub, "no stream at all"), None);
    }
}
