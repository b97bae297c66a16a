//! Parses a frame up to the fields of its payloads. A field is decoded only when a caller reads
//! it.

use super::{VERSION, WireError, malformed};
use crate::hash::Hash;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A parsed frame whose events are not decoded yet.
#[derive(Deserialize)]
pub(in crate::journal) struct Frame<'a> {
    v: u64,
    #[serde(rename = "at")]
    pub(in crate::journal) at_ms: u64,
    #[serde(borrow)]
    pub(in crate::journal) events: Vec<ParsedEvent<'a>>,
}

/// A parsed event whose payload is not decoded yet.
#[derive(Deserialize)]
pub(in crate::journal) struct ParsedEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(in crate::journal) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::journal) payload: Fields<'a>,
    #[serde(default)]
    pub(in crate::journal) erased: bool,
    /// Whether it is the stand-in of a stream delta.
    #[serde(default, rename = "beside")]
    pub(in crate::journal) is_stand_in: bool,
    #[serde(borrow, default)]
    pub(in crate::journal) blobs: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// The fields of an object, in order.
pub(in crate::journal) struct Fields<'a>(pub(in crate::journal) Vec<(Cow<'a, str>, &'a RawValue)>);

/// Parses a frame.
pub(in crate::journal) fn frame(body: &[u8]) -> Result<Frame<'_>, WireError> {
    read_version(body, serde_json::from_slice(body), |frame: &Frame<'_>| frame.v)
}

/// Checks the version of a parsed frame.
pub(in crate::journal) fn read_version<T>(
    body: &[u8],
    read: serde_json::Result<T>,
    version: impl FnOnce(&T) -> u64,
) -> Result<T, WireError> {
    /// The field that every version has.
    #[derive(Deserialize)]
    struct Version {
        v: u64,
    }
    let version = match &read {
        Ok(frame) => version(frame),
        // The frame has another shape, perhaps that of a later version.
        Err(_) => serde_json::from_slice::<Version>(body).map_or(VERSION, |version| version.v),
    };
    match version {
        1..=VERSION => read.map_err(malformed),
        0 => Err(malformed("there is no version 0")),
        later => Err(WireError::Newer(later)),
    }
}

pub(in crate::journal) fn hash(text: &str) -> Result<Hash, WireError> {
    Hash::parse(text).ok_or_else(|| malformed("a hash is not valid"))
}

impl<'a> ParsedEvent<'a> {
    /// The step or instance of the event, if it has one.
    pub(in crate::journal) fn node(&self) -> Option<Cow<'a, str>> {
        let raw = self.payload.raw("nodeId").or_else(|| self.payload.raw("node"))?;
        serde_json::from_str::<Text<'a>>(raw.get()).ok().map(|text| text.0)
    }

    /// Adds the fields that are stored as blobs.
    pub(in crate::journal) fn restore(
        &mut self,
        blobs: &'a BTreeMap<Hash, Vec<u8>>,
    ) -> Result<(), WireError> {
        for (name, text) in std::mem::take(&mut self.blobs) {
            let hash = hash(&text)?;
            let bytes = blobs.get(&hash).ok_or(WireError::MissingBlob(hash))?;
            let value = serde_json::from_slice(bytes)
                .map_err(|error| malformed(format_args!("blob {hash}: {error}")))?;
            self.payload.0.push((name, value));
        }
        Ok(())
    }
}

impl<'a> Fields<'a> {
    /// The JSON text of a field.
    pub(in crate::journal) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// A field that may be absent.
    pub(in crate::journal) fn option<T: Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, WireError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        match serde_json::from_str(raw.get()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(malformed(format_args!("{name}: {error}"))),
        }
    }

    /// A field that must be present.
    pub(in crate::journal) fn need<T: Deserialize<'a>>(&self, name: &str) -> Result<T, WireError> {
        self.option(name)?.ok_or_else(|| malformed(format_args!("{name} is missing")))
    }

    /// A field that is left out if it is empty or zero.
    pub(in crate::journal) fn or_default<T: Deserialize<'a> + Default>(
        &self,
        name: &str,
    ) -> Result<T, WireError> {
        self.option(name).map(Option::unwrap_or_default)
    }

    /// A text field that must be present, parsed by `parse`.
    pub(in crate::journal) fn text<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        parse(&self.need::<Text<'_>>(name)?.0)
    }

    /// Whether a field is present and has this value.
    pub(in crate::journal) fn has_word(&self, name: &str, word: &str) -> Result<bool, WireError> {
        Ok(self.option::<Text<'_>>(name)?.is_some_and(|text| text.0 == word))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        let pairs = Pairs::<'a, &'a RawValue>::deserialize(deserializer)?;
        Ok(Fields(pairs.0))
    }
}

/// A text, borrowed if it has no escapes.
#[derive(Deserialize)]
pub(in crate::journal) struct Text<'a>(#[serde(borrow)] pub(in crate::journal) Cow<'a, str>);

/// An object as a list of pairs, in its order.
pub(in crate::journal) struct Pairs<'a, T>(pub(in crate::journal) Vec<(Cow<'a, str>, T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Pairs<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'a, T>, D::Error> {
        struct Object<'a, T>(PhantomData<(&'a str, T)>);

        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for Object<'a, T> {
            type Value = Pairs<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut pairs = Vec::with_capacity(8);
                while let Some((name, value)) = map.next_entry::<Text<'a>, T>()? {
                    pairs.push((name.0, value));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Object(PhantomData))
    }
}
