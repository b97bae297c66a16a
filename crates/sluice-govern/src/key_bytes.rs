//! Encodes plain values as bytes, for comparison or hashing.
//!
//! Numbers are encoded compactly, since most are small and hashing is faster on short
//! input.
//!
//! INVARIANT: two lists of values written by the same calls have equal bytes only if
//! the values are equal.

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) struct KeyBytes(Vec<u8>);

impl KeyBytes {
    pub(crate) fn with_capacity(bytes: usize) -> KeyBytes {
        KeyBytes(Vec::with_capacity(bytes))
    }

    /// Reuses the memory of a text.
    pub(crate) fn reusing(text: String) -> KeyBytes {
        let mut bytes = text.into_bytes();
        bytes.clear();
        KeyBytes(bytes)
    }

    /// LEB128: seven bits per byte, lowest first; the highest bit marks that more bytes
    /// follow. So no encoding is a prefix of another.
    #[inline]
    pub(crate) fn number(&mut self, mut number: u64) {
        while number > 127 {
            self.0.push(low(number) | 128);
            number >>= 7;
        }
        self.0.push(low(number));
    }

    pub(crate) fn maybe(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or_default());
    }

    /// With its length, so that different lists of texts have different bytes.
    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn maybe_text(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    pub(crate) fn texts(&mut self, texts: &[impl AsRef<str>]) {
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text.as_ref());
        }
    }

    pub(crate) fn names(&mut self, names: &BTreeSet<Arc<str>>) {
        self.number(names.len() as u64);
        for name in names {
            self.text(name);
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The lowest seven bits.
fn low(number: u64) -> u8 {
    number.to_le_bytes()[0] & 127
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(numbers: &[u64], texts: &[String], maybe: Option<u64>) -> Vec<u8> {
        let mut key = KeyBytes::with_capacity(0);
        numbers.iter().for_each(|number| key.number(*number));
        key.texts(texts);
        key.maybe(maybe);
        key.maybe_text(texts.first().map(String::as_str));
        key.into_bytes()
    }

    #[test]
    fn a_number_takes_as_many_bytes_as_it_needs() {
        let bytes = |number| written(&[number], &[], None).len() - 5;
        let numbers = [0, 127, 128, 16_383, 16_384, u64::MAX];
        assert_eq!(numbers.map(bytes), [1, 1, 2, 2, 3, 10]);
    }

    proptest! {
        #[test]
        fn what_differs_is_written_differently(
            a in (any::<[u64; 3]>(), prop::collection::vec("[a\u{0}\u{1}]{0,3}", 0..3), any::<Option<u64>>()),
            b in (prop::array::uniform3(0..400u64), prop::collection::vec("[a\u{0}\u{1}]{0,3}", 0..3), any::<Option<u64>>()),
            small in prop::array::uniform3(0..400u64),
        ) {
            for numbers in [a.0, small] {
                let same = (&numbers, &a.1, a.2) == (&b.0, &b.1, b.2);
                let written = written(&numbers, &a.1, a.2) == written(&b.0, &b.1, b.2);
                prop_assert_eq!(written, same);
            }
        }
    }
}
