//! Writes JSON objects into one buffer, and moves what is long out of it.

use crate::hex;
use crate::journal::chain::Salt;
use crate::limits::BLOB_BYTES_MIN;
use crate::port::store::{Blob, Hash};
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::ops::Range;

/// What an event usually takes as JSON.
const EVENT_BYTES: usize = 440;

/// A frame so far.
pub(in crate::journal) struct FrameWriter {
    pub(in crate::journal) out: Vec<u8>,
    pub(in crate::journal) blobs: Vec<Blob>,
    /// Where the payload written last is in `out`.
    pub(in crate::journal) payload: Range<usize>,
    /// Where its `blobs` are; empty where there are none.
    pub(in crate::journal) moved_at: Range<usize>,
    /// Fields of the payload being written that became blobs.
    moved: Vec<(String, Hash)>,
}

impl FrameWriter {
    pub(in crate::journal) fn new(events: usize) -> FrameWriter {
        let out = Vec::with_capacity(64 + events * EVENT_BYTES);
        let (blobs, moved) = (Vec::new(), Vec::new());
        FrameWriter { out, blobs, payload: 0..0, moved_at: 0..0, moved }
    }

    /// Begins a frame of a version.
    pub(in crate::journal) fn begin(&mut self, version: u64, at_ms: u64) {
        self.out.extend_from_slice(b"{\"v\":");
        json(&mut self.out, &version);
        self.out.extend_from_slice(b",\"at\":");
        json(&mut self.out, &at_ms);
        self.out.extend_from_slice(b",\"events\":[");
    }

    /// Whether an event was written.
    pub(in crate::journal) fn is_begun(&self) -> bool {
        self.payload.end > 0
    }

    /// The frame, and what was too long for it.
    pub(in crate::journal) fn end(mut self) -> (Vec<u8>, Vec<Blob>) {
        self.out.extend_from_slice(b"]}");
        if !self.blobs.is_empty() {
            // The long fields passed through here and left their room behind.
            self.out.shrink_to_fit();
        }
        (self.out, self.blobs)
    }

    /// Writes one event, its payload by `fill`.
    pub(in crate::journal) fn event(
        &mut self,
        name: &'static str,
        salt: &Salt,
        fill: impl FnOnce(&mut PayloadWriter<'_>),
    ) {
        self.out.extend_from_slice(b"{\"type\":\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\",\"salt\":\"");
        hex::push(&mut self.out, salt);
        self.out.extend_from_slice(b"\",\"payload\":{");
        let start = self.out.len();
        fill(&mut PayloadWriter { frame: self, start });
        self.out.push(b'}');
        self.payload = start - 1..self.out.len();
        self.moved_at = 0..0;
        if !self.moved.is_empty() {
            let shown = |(name, hash): (String, Hash)| (name, Text(hash));
            let moved: Vec<_> = self.moved.drain(..).map(shown).collect();
            self.out.extend_from_slice(b",\"blobs\":");
            let start = self.out.len();
            json(&mut self.out, &Pairs(&moved));
            self.moved_at = start..self.out.len();
        }
        self.out.push(b'}');
    }

    /// Writes what stands for an event that is kept beside the frame.
    pub(in crate::journal) fn stand_in(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut PayloadWriter<'_>),
    ) {
        self.out.extend_from_slice(b"{\"type\":\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\",\"beside\":true,\"payload\":{");
        let start = self.out.len();
        fill(&mut PayloadWriter { frame: self, start });
        self.out.extend_from_slice(b"}}");
    }
}

/// The payload of an event, open.
pub(in crate::journal) struct PayloadWriter<'w> {
    frame: &'w mut FrameWriter,
    start: usize,
}

impl PayloadWriter<'_> {
    /// A field whose value `write` writes as JSON.
    pub(in crate::journal) fn raw(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.separate();
        let out = &mut self.frame.out;
        // Our own names need no escapes.
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        self.value(before, name, write);
    }

    /// A field that someone else named.
    pub(in crate::journal) fn entry(&mut self, name: &str, value: &impl Serialize) {
        let before = self.separate();
        json(&mut self.frame.out, name);
        self.frame.out.push(b':');
        self.value(before, name, |out| json(out, value));
    }

    /// The fields of an object whose text is at hand.
    pub(in crate::journal) fn fields_of(&mut self, object: &str) {
        let fields = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let fields = fields.unwrap_or_default();
        if !fields.is_empty() {
            self.separate();
            self.frame.out.extend_from_slice(fields.as_bytes());
        }
    }

    /// Where the next field begins, its comma included.
    fn separate(&mut self) -> usize {
        let before = self.frame.out.len();
        if before > self.start {
            self.frame.out.push(b',');
        }
        before
    }

    /// The value of the field that begins at `before`, moved out if it is long.
    fn value(&mut self, before: usize, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let out = &mut self.frame.out;
        let value = out.len();
        write(out);
        if out.len() - value > BLOB_BYTES_MIN {
            let body = out[value..].to_vec();
            out.truncate(before);
            let hash = Hash::of(&body);
            self.frame.blobs.push(Blob { hash, body });
            self.frame.moved.push((name.to_owned(), hash));
        }
    }

    /// A field that is always there.
    pub(in crate::journal) fn field(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) {
        self.raw(name, |out| json(out, value));
    }

    /// A field that is there when it has a value.
    pub(in crate::journal) fn option(
        &mut self,
        name: &'static str,
        value: Option<&(impl Serialize + ?Sized)>,
    ) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// A field that is a list.
    pub(in crate::journal) fn list<T: Serialize>(
        &mut self,
        name: &'static str,
        items: impl Iterator<Item = T> + Clone,
    ) {
        self.field(name, &Listed(items));
    }

    /// A field that is an object.
    pub(in crate::journal) fn map<K: Serialize, V: Serialize>(
        &mut self,
        name: &'static str,
        entries: impl Iterator<Item = (K, V)> + Clone,
    ) {
        self.field(name, &Mapped(entries));
    }

    /// A field that is left out where reading gives the same without it.
    pub(in crate::journal) fn unless_default<T>(&mut self, name: &'static str, value: &T)
    where
        T: Serialize + Default + PartialEq,
    {
        if *value != T::default() {
            self.field(name, value);
        }
    }
}

/// Writes plain data.
pub(in crate::journal) fn json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("plain data with text keys always serialises");
}

/// Something that is written as the text it shows.
pub(in crate::journal) struct Text<T>(pub(in crate::journal) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A list of pairs that is written as an object, in its order.
pub(in crate::journal) struct Pairs<'a, T>(pub(in crate::journal) &'a [(String, T)]);

impl<T: Serialize> Serialize for Pairs<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Items that are written as a list.
struct Listed<I>(I);

impl<T: Serialize, I: Iterator<Item = T> + Clone> Serialize for Listed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// Entries that are written as an object.
struct Mapped<I>(I);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)> + Clone> Serialize for Mapped<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}
