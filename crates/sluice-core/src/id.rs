//! Ids that Sluice creates: typed, prefixed, sorted by time.
//!
//! The bits are those of a UUID version 7. Time and random bits come in as arguments.

use crate::hex;
use std::fmt;

/// A source of random bits.
pub trait Entropy: Send {
    /// 64 random bits.
    fn bits(&mut self) -> u64;
}

/// Declares an id: 128 bits that read as `prefix_` and 32 hexadecimal digits.
macro_rules! ids {
    ($($(#[$about:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl $name {
            /// Creates an id from the time and random bits.
            pub fn new(now_ms: u64, entropy: &mut dyn Entropy) -> $name {
                $name(version_7(now_ms, entropy))
            }

            /// Parses what `Display` writes.
            pub fn parse(text: &str) -> Option<$name> {
                digits(text.strip_prefix(concat!($prefix, "_"))?).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                // By hand: every dispatch names its run more than once.
                f.write_str(hex::pairs(&mut [[0; 2]; 16], &self.0.to_be_bytes()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                $name::parse(&text).ok_or_else(|| serde::de::Error::custom("not a valid id"))
            }
        }
    )*};
}

ids! {
    /// Identifies a run in the store, the API and every message.
    RunId = "run";
    /// The id of an approval request.
    ApprovalId = "apr";
}

fn version_7(now_ms: u64, entropy: &mut dyn Entropy) -> u128 {
    const VERSION: u128 = 7 << 76;
    const VARIANT: u128 = 2 << 62;
    let time = u128::from(now_ms & 0xffff_ffff_ffff) << 80;
    let high = u128::from(entropy.bits() & 0xfff) << 64;
    let low = u128::from(entropy.bits() >> 2);
    time | VERSION | high | VARIANT | low
}

/// Exactly 32 lower-case hexadecimal digits.
fn digits(text: &str) -> Option<u128> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let whole = text.len() == 32 && text.bytes().all(digit);
    if whole { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64);

    impl Entropy for Fixed {
        fn bits(&mut self) -> u64 {
            self.0
        }
    }

    #[test]
    fn ids_are_version_7_sorted_by_time_and_read_back() {
        let early = RunId::new(1_700_000_000_000, &mut Fixed(u64::MAX));
        let late = RunId::new(1_700_000_000_001, &mut Fixed(0));
        assert!(early < late);
        assert_eq!(early.to_string(), "run_018bcfe568007fffbfffffffffffffff");
        assert_eq!(late.to_string(), "run_018bcfe5680170008000000000000000");
        assert_eq!(RunId::parse(&early.to_string()), Some(early));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "run_",
            "apr_018bcfe568007fffbfffffffffffffff",
            "run_18",
            "run_+18bcfe568007fffbfffffffffffffff",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
        assert_eq!(RunId::parse("run_018BCFE568007FFFBFFFFFFFFFFFFFFF"), None);
    }
}
