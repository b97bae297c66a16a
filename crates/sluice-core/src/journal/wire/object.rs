//! Writes the events of a frame as JSON, and moves long fields into blobs.

use crate::hash::Hash;
use crate::hex;
use crate::journal::chain::Salt;
use crate::limits::BLOB_BYTES_MIN;
use crate::port::store::Blob;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::ops::Range;

/// The usual size of an encoded event.
const EVENT_BYTES: usize = 440;

/// A frame that is being written.
pub(in crate::journal) struct FrameWriter {
    pub(in crate::journal) out: Vec<u8>,
    pub(in crate::journal) blobs: Vec<Blob>,
    /// The position in `out` of the last payload.
    pub(in crate::journal) payload: Range<usize>,
    /// The position of its `blobs`; empty if it has none.
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

    /// Writes the beginning of a frame.
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

    /// Ends the frame and returns it with its blobs.
    pub(in crate::journal) fn end(mut self) -> (Vec<u8>, Vec<Blob>) {
        self.out.extend_from_slice(b"]}");
        if !self.blobs.is_empty() {
            // The buffer grew for the fields that became blobs.
            self.out.shrink_to_fit();
        }
        (self.out, self.blobs)
    }

    /// Writes one event, whose payload `fill` writes.
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
            let as_text = |(name, hash): (String, Hash)| (name, Text(hash));
            let moved: Vec<_> = self.moved.drain(..).map(as_text).collect();
            self.out.extend_from_slice(b",\"blobs\":");
            let start = self.out.len();
            json(&mut self.out, &Pairs(&moved));
            self.moved_at = start..self.out.len();
        }
        self.out.push(b'}');
    }

    /// Writes the stand-in of an event that is stored next to the frame.
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

/// The payload of an event that is being written.
pub(in crate::journal) struct PayloadWriter<'w> {
    frame: &'w mut FrameWriter,
    start: usize,
}

impl PayloadWriter<'_> {
    /// Adds a field whose value `write` writes as JSON.
    pub(in crate::journal) fn raw(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.separate();
        let out = &mut self.frame.out;
        // Names in our source need no escapes.
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        self.value(before, name, write);
    }

    /// Adds a field whose name may need escapes.
    pub(in crate::journal) fn entry(&mut self, name: &str, value: &impl Serialize) {
        let before = self.separate();
        json(&mut self.frame.out, name);
        self.frame.out.push(b':');
        self.value(before, name, |out| json(out, value));
    }

    /// Adds the fields of an object that is already JSON.
    pub(in crate::journal) fn fields_of(&mut self, object: &str) {
        let fields = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let fields = fields.unwrap_or_default();
        if !fields.is_empty() {
            self.separate();
            self.frame.out.extend_from_slice(fields.as_bytes());
        }
    }

    /// Writes a comma if one is needed; returns the position before it.
    fn separate(&mut self) -> usize {
        let before = self.frame.out.len();
        if before > self.start {
            self.frame.out.push(b',');
        }
        before
    }

    /// Writes the value of the field that begins at `before`, or makes it a blob if it is long.
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

    /// Adds a field.
    pub(in crate::journal) fn field(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) {
        self.raw(name, |out| json(out, value));
    }

    /// Adds a field if it has a value.
    pub(in crate::journal) fn option(
        &mut self,
        name: &'static str,
        value: Option<&(impl Serialize + ?Sized)>,
    ) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// Adds a field with a list.
    pub(in crate::journal) fn list<T: Serialize>(
        &mut self,
        name: &'static str,
        items: impl Iterator<Item = T> + Clone,
    ) {
        self.field(name, &Listed(items));
    }

    /// Adds a field with an object.
    pub(in crate::journal) fn map<K: Serialize, V: Serialize>(
        &mut self,
        name: &'static str,
        entries: impl Iterator<Item = (K, V)> + Clone,
    ) {
        self.field(name, &Mapped(entries));
    }

    /// Adds a field unless its value is the default.
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

/// A value that is written as the text of its `Display`.
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
