//! How parts of a state are written as JSON and read back.
//!
//! A trait of our own instead of serde's two: the types stay free of a format
//! that is only a cache's, and a field at its blank value is left out without
//! a word about it. A step to which nothing happened is `{}`.

use crate::money::Money;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Price;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that can be written down and read back.
pub(super) trait Part: Sized {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// What a field of this type is when it is left out; none if it never is.
    fn blank() -> Option<Self> {
        None
    }

    /// Whether a field of this value is left out.
    fn is_blank(&self) -> bool {
        false
    }
}

/// A part on its way out.
pub(super) struct Ref<'a, T>(pub(super) &'a T);

impl<T: Part> Serialize for Ref<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

/// A part on its way in.
pub(super) struct Own<T>(pub(super) T);

impl<'de, T: Part> Deserialize<'de> for Own<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Own)
    }
}

/// A struct as an object: each field with its key, blank ones left out. A struct
/// may itself be left out as a field: `Name(blank) {…}`.
macro_rules! parts {
    ($($name:ident $(($blank:expr))? { $($field:ident = $key:literal,)* })*) => {$(
        impl $crate::run::snapshot::part::Part for $name {
            $(
                fn blank() -> Option<$name> {
                    Some($blank)
                }

                fn is_blank(&self) -> bool {
                    *self == $blank
                }
            )?

            fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                use $crate::run::snapshot::part;
                let $name { $($field),* } = self;
                let mut map = serializer.serialize_map(None)?;
                $(if !part::Part::is_blank($field) {
                    map.serialize_entry($key, &part::Ref($field))?;
                })*
                map.end()
            }

            fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                use serde::de::{Error as _, MapAccess, Visitor};
                use $crate::run::snapshot::part;
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(stringify!($name))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $(let mut $field = part::Part::blank();)*
                        while let Some(key) = map.next_key::<&str>()? {
                            match key {
                                $($key => $field = Some(map.next_value::<part::Own<_>>()?.0),)*
                                other => return Err(A::Error::unknown_field(other, &[])),
                            }
                        }
                        Ok($name {
                            $($field: $field.ok_or_else(|| A::Error::missing_field($key))?,)*
                        })
                    }
                }
                from.deserialize_map(Fields)
            }
        }
    )*};
}
pub(super) use parts;

/// Types that serde knows, blank at their default.
macro_rules! plain {
    ($($name:ty,)*) => {$(
        impl Part for $name {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.serialize(serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                <$name>::deserialize(deserializer)
            }

            fn blank() -> Option<$name> {
                Some(<$name>::default())
            }

            fn is_blank(&self) -> bool {
                *self == <$name>::default()
            }
        }
    )*};
}

plain! { bool, u8, u32, u64, String, Map<String, Value>, Value, Constraints, }

impl Part for Arc<str> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Into::into)
    }

    fn blank() -> Option<Self> {
        Some("".into())
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

/// As whole micro-cents: read, written, read again.
impl Part for Price {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = self.cached_input_cents_per_mtok.map(Money::micro_cents);
        let read = self.input_cents_per_mtok.micro_cents();
        (read, self.output_cents_per_mtok.micro_cents(), kept).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Price, D::Error> {
        let (read, written, kept) = <(u64, u64, Option<u64>)>::deserialize(deserializer)?;
        Ok(Price {
            input_cents_per_mtok: Money::from_micro_cents(read),
            output_cents_per_mtok: Money::from_micro_cents(written),
            cached_input_cents_per_mtok: kept.map(Money::from_micro_cents),
            max_output_tokens: None,
        })
    }
}

/// Types with a word for each value: how to write, how to read, and which one
/// is left out.
macro_rules! worded {
    ($($name:ident: $write:expr, $read:expr $(, $blank:expr)?;)*) => {$(
        impl $crate::run::snapshot::part::Part for $name {
            fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let word = $write(*self);
                serde::Serialize::serialize(&word, serializer)
            }

            fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                $crate::run::snapshot::part::read_word(deserializer, $read)
            }

            $(
                fn blank() -> Option<$name> {
                    Some($blank)
                }

                fn is_blank(&self) -> bool {
                    *self == $blank
                }
            )?
        }
    )*};
}
pub(super) use worded;

pub(super) fn read_word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let word = <&str>::deserialize(deserializer)?;
    read(word).ok_or_else(|| D::Error::custom("an unknown word"))
}

/// Left out when absent. What is there is written as itself, so that a null
/// that is there is told from none.
impl<T: Part> Part for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(part) => part.write(serializer),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Some)
    }

    fn blank() -> Option<Self> {
        Some(None)
    }

    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

/// Pointers are written as what they point to.
macro_rules! pointers {
    ($($name:ident,)*) => {$(
        impl<T: Part> Part for $name<T> {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                T::write(self, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                T::read(deserializer).map($name::new)
            }

            fn blank() -> Option<Self> {
                T::blank().map($name::new)
            }

            fn is_blank(&self) -> bool {
                T::is_blank(self)
            }
        }
    )*};
}

pointers! { Arc, Box, }

impl<T: Part> Part for Vec<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Ref))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = Vec::<Own<T>>::deserialize(deserializer)?;
        Ok(parts.into_iter().map(|part| part.0).collect())
    }

    fn blank() -> Option<Self> {
        Some(Vec::new())
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<A: Part, B: Part> Part for (A, B) {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (Ref(&self.0), Ref(&self.1)).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (a, b) = <(Own<A>, Own<B>)>::deserialize(deserializer)?;
        Ok((a.0, b.0))
    }
}

/// As a list of pairs.
impl<K: Part + Ord, V: Part> Part for BTreeMap<K, V> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|(key, value)| (Ref(key), Ref(value))))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(Own<K>, Own<V>)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(key, value)| (key.0, value.0)).collect())
    }

    fn blank() -> Option<Self> {
        Some(BTreeMap::new())
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}
