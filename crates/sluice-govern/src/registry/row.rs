//! The fields of registry rows, declared once.
//!
//! `row!` declares the type of a row. Its stored form and [`RowForm`] come from the same
//! declaration; the reader of setups and their JSON Schema come from the latter. Each field
//! begins with one of these words:
//!
//! | word | in a setup | in the store |
//! |---|---|---|
//! | `required` | must be written | always |
//! | `optional` | may be written | unless it is the default |
//! | `stored` | may be written | always |
//! | `kept` | may be written; a setup without it leaves it unchanged | always |
//! | `maintained` | only Sluice sets it; a setup leaves it unchanged | unless it is the default |
//!
//! `as` names the form of a field if its type does not imply it; `=` sets its default.

use crate::choice::Choice;
use crate::money::{Money, cents};
use crate::secret::SecretRef;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a setup can write in a field.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A string of any length.
    Text,
    /// A text of at most this many bytes.
    Prose(usize),
    /// `true` or `false`.
    Flag,
    /// Any value.
    Json,
    /// A number of cents, with fractions.
    Cents,
    /// A whole number from one bound to the other.
    Number(u64, u64),
    /// One of some words, with the name of their enum.
    Word(&'static str, &'static [&'static str]),
    /// A sequence whose items have this form.
    List(&'static Form),
    /// A map from names that the author chooses.
    Table(&'static Form),
    /// A map with fixed fields.
    Row(&'static RowForm),
    /// An `http` or `https` URL that a gateway may have.
    GatewayUrl,
    /// The URL of an outbound webhook.
    WebhookUrl,
    /// Names of events.
    Events,
    /// A reference to a secret.
    Secret,
    /// The path of a value in the body of a request.
    BodyPath,
    /// Names of flow labels.
    FlowLabels,
}

/// The fields of a kind of row.
#[derive(Debug, Clone, Copy)]
pub struct RowForm {
    /// The name in JSON Schemas.
    pub name: &'static str,
    /// What such a row is.
    pub about: &'static str,
    /// The fields, in their order in the store.
    pub fields: &'static [FieldForm],
}

/// A field of a row.
#[derive(Debug, Clone, Copy)]
pub struct FieldForm {
    /// The name.
    pub key: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Who sets it.
    pub need: Need,
    /// What a setup can write.
    pub form: Form,
}

/// Who sets a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every setup.
    Required,
    /// A setup, or its default applies.
    Optional,
    /// A setup or a command: a setup without it leaves it unchanged.
    Kept,
    /// Only Sluice.
    Maintained,
}

impl Need {
    /// Whether a setup without the field leaves it unchanged.
    pub const fn is_kept(self) -> bool {
        matches!(self, Need::Kept | Need::Maintained)
    }
}

/// A type that `row!` declares.
pub trait RowType {
    /// Its fields.
    const ROW: RowForm;
}

/// A type of fields.
pub trait RowField: Serialize + DeserializeOwned {
    /// What a setup can write, unless the field says otherwise.
    const FORM: Form;

    /// Writes the stored form.
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    /// Reads the stored form.
    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

macro_rules! fields {
    ($($type:ty = $form:expr;)*) => {
        $(impl RowField for $type {
            const FORM: Form = $form;
        })*
    };
}

fields! {
    String = Form::Text;
    bool = Form::Flag;
    u8 = Form::Number(0, u8::MAX as u64);
    u32 = Form::Number(0, u32::MAX as u64);
    u64 = Form::Number(0, u64::MAX);
    Value = Form::Json;
    SecretRef = Form::Secret;
    Map<String, Value> = Form::Table(&Form::Json);
}

impl RowField for Money {
    const FORM: Form = Form::Cents;

    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        cents::serialize(self, serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        cents::deserialize(deserializer)
    }
}

impl<T: Choice + Serialize + DeserializeOwned> RowField for T {
    const FORM: Form = Form::Word(T::WHAT, T::NAMES);
}

impl<T: RowField> RowField for Option<T> {
    const FORM: Form = T::FORM;

    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.store(serializer),
            None => serializer.serialize_none(),
        }
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Stored<T>>::deserialize(deserializer)?.map(|stored| stored.0))
    }
}

impl<T: RowField> RowField for Vec<T> {
    const FORM: Form = Form::List(&T::FORM);
}

impl<T: RowField> RowField for BTreeMap<String, T> {
    const FORM: Form = Form::Table(&T::FORM);
}

/// A field in its stored form.
pub(super) struct Stored<T>(pub(super) T);

impl<T: RowField> Serialize for Stored<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.store(serializer)
    }
}

impl<'de, T: RowField> Deserialize<'de> for Stored<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Stored<T>, D::Error> {
        T::load(deserializer).map(Stored)
    }
}

/// Loads a field that is present. A null is a value, which most types refuse.
pub(super) fn present<'de, D: Deserializer<'de>, T: RowField>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::load(deserializer).map(Some)
}

/// Compares values of one type, so that a default needs no type of its own.
pub(super) fn same<T: PartialEq>(one: &T, other: &T) -> bool {
    one == other
}

/// Declares the type of a row, its stored form and its [`RowForm`]. With `default`, the type
/// has a default: the row whose fields all have theirs.
macro_rules! row {
    ($(#[doc = $about:literal])* $(#[derive($derive:ident)])* pub struct $name:ident, $schema:literal, default {
        $($(#[doc = $doc:literal])* $need:ident $field:ident: $type:ty $(as $form:path)? $(= $default:expr)?,)*
    }) => {
        impl Default for $name {
            fn default() -> $name {
                $name { $($field: row!(@default $($default)?),)* }
            }
        }

        row! {
            $(#[doc = $about])* $(#[derive($derive)])* pub struct $name, $schema {
                $($(#[doc = $doc])* $need $field: $type $(as $form)? $(= $default)?,)*
            }
        }
    };
    ($(#[doc = $about:literal])* $(#[derive($derive:ident)])* pub struct $name:ident, $schema:literal {
        $($(#[doc = $doc:literal])* $need:ident $field:ident: $type:ty $(as $form:path)? $(= $default:expr)?,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq $(, $derive)*)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $type,)* }

        impl $crate::registry::row::RowType for $name {
            const ROW: $crate::registry::row::RowForm = $crate::registry::row::RowForm {
                name: $schema,
                about: concat!($($about),*),
                fields: &[$($crate::registry::row::FieldForm {
                    key: stringify!($field),
                    about: concat!($($doc),*),
                    need: row!(@need $need),
                    form: row!(@form $type $(, $form)?),
                },)*],
            };
        }

        impl $crate::registry::row::RowField for $name {
            const FORM: $crate::registry::row::Form = $crate::registry::row::Form::Row(
                &<$name as $crate::registry::row::RowType>::ROW,
            );
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(if row!(@is_stored $need, self.$field $(, $default)?) {
                    let stored = $crate::registry::row::Stored(&self.$field);
                    map.serialize_entry(stringify!($field), &stored)?;
                })*
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = {
                    // Has the name of the row, for error messages.
                    #[derive(serde::Deserialize)]
                    #[serde(deny_unknown_fields)]
                    struct $name {
                        $(#[serde(default, deserialize_with = "crate::registry::row::present")]
                        $field: Option<$type>,)*
                    }
                    <$name as serde::Deserialize>::deserialize(deserializer)?
                };
                Ok($name {
                    $($field: match read.$field {
                        Some(value) => value,
                        None => row!(@missing $need $field $(, $default)?),
                    },)*
                })
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@need required) => { $crate::registry::row::Need::Required };
    (@need optional) => { $crate::registry::row::Need::Optional };
    (@need stored) => { $crate::registry::row::Need::Optional };
    (@need kept) => { $crate::registry::row::Need::Kept };
    (@need maintained) => { $crate::registry::row::Need::Maintained };
    (@form $type:ty) => { <$type as $crate::registry::row::RowField>::FORM };
    (@form $type:ty, $form:path) => { $form };
    (@is_stored optional, $value:expr $(, $default:expr)?) => {
        !$crate::registry::row::same(&$value, &row!(@default $($default)?))
    };
    (@is_stored maintained, $value:expr $(, $default:expr)?) => {
        !$crate::registry::row::same(&$value, &row!(@default $($default)?))
    };
    (@is_stored $need:ident, $value:expr $(, $default:expr)?) => { true };
    (@missing required $field:ident) => {
        return Err(serde::de::Error::missing_field(stringify!($field)))
    };
    (@missing $need:ident $field:ident $(, $default:expr)?) => { row!(@default $($default)?) };
}
pub(super) use row;
