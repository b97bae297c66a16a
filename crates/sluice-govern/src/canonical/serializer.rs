//! A JSON serialiser that sorts keys.
//!
//! Values are written to one buffer. At the end of a map its entries are sorted in
//! place, so nothing is built twice.

use super::is_plain;
use serde::ser::{self, Serialize};
use serde_json::Error;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Default)]
pub(super) struct CanonicalSerializer {
    out: Vec<u8>,
    /// The entries of the open maps.
    entries: Vec<MapEntry>,
    /// Buffer for sorting entries.
    scratch: Vec<u8>,
}

struct MapEntry {
    key: EntryKey,
    start: usize,
    end: usize,
}

/// A key: a field name, or the range of a written map key.
enum EntryKey {
    Field(&'static str),
    Written(Range<usize>),
}

impl MapEntry {
    /// The key as text: UTF-8 sorts by code point, escaped text would not.
    fn text<'o>(&self, out: &'o [u8]) -> Cow<'o, [u8]> {
        let quoted = match &self.key {
            EntryKey::Field(name) => return Cow::Borrowed(name.as_bytes()),
            EntryKey::Written(range) => &out[range.clone()],
        };
        if !quoted.contains(&b'\\') {
            return Cow::Borrowed(&quoted[1..quoted.len() - 1]);
        }
        let text: String = serde_json::from_slice(quoted).expect("a written key can be read");
        Cow::Owned(text.into_bytes())
    }
}

impl CanonicalSerializer {
    pub(super) fn with_capacity(bytes: usize) -> CanonicalSerializer {
        CanonicalSerializer { out: Vec::with_capacity(bytes), ..CanonicalSerializer::default() }
    }

    pub(super) fn into_string(self) -> String {
        String::from_utf8(self.out).expect("JSON is UTF-8")
    }

    fn scalar(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        serde_json::to_writer(&mut self.out, value)
    }
}

/// An open list, or an open map whose entries begin at `first`.
pub(super) struct OpenContainer<'w> {
    writer: &'w mut CanonicalSerializer,
    first: usize,
    start: usize,
    close: &'static [u8],
}

impl<'w> OpenContainer<'w> {
    fn begin(
        writer: &'w mut CanonicalSerializer,
        open: &[u8],
        close: &'static [u8],
    ) -> OpenContainer<'w> {
        writer.out.extend_from_slice(open);
        let (first, start) = (writer.entries.len(), writer.out.len());
        OpenContainer { writer, first, start, close }
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        if self.writer.out.len() > self.start {
            self.writer.out.push(b',');
        }
        value.serialize(&mut *self.writer)
    }

    fn key(&mut self, key: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let start = self.writer.out.len();
        self.writer.scalar(key)?;
        let end = self.writer.out.len();
        if self.writer.out.get(start) != Some(&b'"') {
            return Err(ser::Error::custom("a key must be text"));
        }
        self.writer.out.push(b':');
        self.writer.entries.push(MapEntry { key: EntryKey::Written(start..end), start, end });
        Ok(())
    }

    /// A field name is an identifier, so it needs no escaping.
    fn field(&mut self, name: &'static str) {
        let out = &mut self.writer.out;
        let start = out.len();
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        let end = out.len();
        self.writer.entries.push(MapEntry { key: EntryKey::Field(name), start, end });
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        value.serialize(&mut *self.writer)?;
        self.writer.out.push(b',');
        let end = self.writer.out.len();
        if let Some(entry) = self.writer.entries.last_mut() {
            entry.end = end;
        }
        Ok(())
    }

    fn end_list(self) {
        self.writer.out.extend_from_slice(self.close);
    }

    fn end_map(self) {
        let CanonicalSerializer { out, entries, scratch } = self.writer;
        let own = &mut entries[self.first..];
        if !own.is_sorted_by(|a, b| a.text(out) <= b.text(out)) {
            own.sort_by(|a, b| a.text(out).cmp(&b.text(out)));
            scratch.clear();
            for entry in own.iter() {
                scratch.extend_from_slice(&out[entry.start..entry.end]);
            }
            out.truncate(self.start);
            out.extend_from_slice(scratch);
        }
        if entries.len() > self.first {
            out.pop();
        }
        entries.truncate(self.first);
        out.extend_from_slice(self.close);
    }
}

/// Scalars are written by serde_json.
macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.scalar(&value)
        }
    )*};
}

impl<'w> ser::Serializer for &'w mut CanonicalSerializer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = OpenContainer<'w>;
    type SerializeTuple = OpenContainer<'w>;
    type SerializeTupleStruct = OpenContainer<'w>;
    type SerializeTupleVariant = OpenContainer<'w>;
    type SerializeMap = OpenContainer<'w>;
    type SerializeStruct = OpenContainer<'w>;
    type SerializeStructVariant = OpenContainer<'w>;

    scalars! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if !is_plain(value) {
            return self.scalar(value);
        }
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.scalar(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.scalar(&())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.scalar(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut open = OpenContainer::begin(self, b"{", b"}");
        open.field(variant);
        open.value(value)?;
        open.end_map();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<OpenContainer<'w>, Error> {
        Ok(OpenContainer::begin(self, b"[", b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<OpenContainer<'w>, Error> {
        Ok(OpenContainer::begin(self, b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<OpenContainer<'w>, Error> {
        Ok(OpenContainer::begin(self, b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<OpenContainer<'w>, Error> {
        self.out.push(b'{');
        self.scalar(variant)?;
        Ok(OpenContainer::begin(self, b":[", b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<OpenContainer<'w>, Error> {
        Ok(OpenContainer::begin(self, b"{", b"}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<OpenContainer<'w>, Error> {
        Ok(OpenContainer::begin(self, b"{", b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<OpenContainer<'w>, Error> {
        self.out.push(b'{');
        self.scalar(variant)?;
        Ok(OpenContainer::begin(self, b":{", b"}}"))
    }
}

/// All kinds of lists are written alike.
macro_rules! lists {
    ($($trait:ident :: $item:ident),*) => {$(
        impl ser::$trait for OpenContainer<'_> {
            type Ok = ();
            type Error = Error;

            fn $item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.end_list();
                Ok(())
            }
        }
    )*};
}
lists!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

/// Both kinds of structs are written as maps.
macro_rules! structs {
    ($($trait:ident),*) => {$(
        impl ser::$trait for OpenContainer<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(key);
                self.value(value)
            }

            fn end(self) -> Result<(), Error> {
                self.end_map();
                Ok(())
            }
        }
    )*};
}
structs!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for OpenContainer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.end_map();
        Ok(())
    }
}
