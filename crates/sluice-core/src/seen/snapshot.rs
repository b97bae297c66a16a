//! The index in a snapshot of its run: the texts. The marks are made again.

use super::SeenIndex;
use super::layer::{Classes, IndexLayer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// What is written.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    leaves: usize,
    chars: usize,
    exposed: bool,
    full: bool,
    /// Classes, source and normal form of each text.
    texts: Vec<(u8, u32, Cow<'a, str>)>,
}

impl Serialize for SeenIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SeenIndex { layers, leaves, chars, exposed, full } = self;
        let texts = layers.iter().flat_map(|layer| layer.texts());
        let texts =
            texts.map(|(form, text)| (text.classes.bits(), text.source, Cow::Borrowed(form)));
        Written {
            leaves: *leaves,
            chars: *chars,
            exposed: *exposed,
            full: *full,
            texts: texts.collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SeenIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SeenIndex, D::Error> {
        let Written { leaves, chars, exposed, full, texts } = Written::deserialize(deserializer)?;
        let mut layer = IndexLayer::default();
        for (classes, source, form) in &texts {
            layer.push(form, Classes::from_bits(*classes), *source);
        }
        layer.sort();
        let layers = if layer.size() == 0 { Vec::new() } else { vec![Arc::new(layer)] };
        Ok(SeenIndex { layers, leaves, chars, exposed, full })
    }
}
