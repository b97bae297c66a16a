//! Forms: how the value of one field is written in a payload and read back.

use super::schema::Described;
use super::{Read, unknown_word};
use crate::choice::{self, Choice};
use crate::hash::Hash;
use crate::id::{ApprovalId, RunId};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::malformed;
use crate::journal::wire::object::{self, PayloadWriter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

/// How a field of type `T` is written and read.
pub(in crate::journal) trait Form<T> {
    /// Whether every payload has the field.
    const REQUIRED: bool = true;
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T);
    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T>;
    fn schema() -> Value;
}

/// The value as serde writes it, always.
pub(in crate::journal) struct Always;

impl<T: Serialize + DeserializeOwned + Described> Form<T> for Always {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T) {
        payload.field(name, value);
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T> {
        fields.need(name)
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// Written always, and read as the default where erasure has removed it.
pub(in crate::journal) struct Erasable;

impl<T: Serialize + DeserializeOwned + Described + Default> Form<T> for Erasable {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T) {
        payload.field(name, value);
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T> {
        fields.or_default(name)
    }

    fn schema() -> Value {
        T::schema()
    }
}

/// One of a few words.
pub(in crate::journal) struct Word;

impl<T: Choice + Serialize> Form<T> for Word {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T) {
        payload.field(name, value);
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T> {
        fields.text(name, |word| choice::find(word).ok_or_else(|| unknown_word(name)))
    }

    fn schema() -> Value {
        json!({"type": "string", "enum": T::NAMES})
    }
}

/// A type that has one text: an id or a hash.
pub(in crate::journal) trait Textual: Display + Sized {
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! textual {
    ($($type:ty),*) => {
        $(impl Textual for $type {
            fn parse(text: &str) -> Option<$type> {
                <$type>::parse(text)
            }
        })*
    };
}

textual!(RunId, ApprovalId, Hash);

/// The text of an id or a hash.
pub(in crate::journal) struct Text;

impl<T: Textual> Form<T> for Text {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T) {
        payload.field(name, &object::Text(value));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T> {
        fields.text(name, |text| {
            T::parse(text).ok_or_else(|| malformed(format_args!("{name} is not valid")))
        })
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

/// Left out where the value is the default.
pub(in crate::journal) struct Unless<F>(PhantomData<F>);

impl<T: Default + PartialEq, F: Form<T>> Form<T> for Unless<F> {
    const REQUIRED: bool = false;

    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &T) {
        if *value != T::default() {
            F::write(payload, name, value);
        }
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<T> {
        if fields.raw(name).is_none() {
            return Ok(T::default());
        }
        F::read(fields, name)
    }

    fn schema() -> Value {
        F::schema()
    }
}

/// Left out where there is no value.
pub(in crate::journal) struct Maybe<F>(PhantomData<F>);

impl<T, F: Form<T>> Form<Option<T>> for Maybe<F> {
    const REQUIRED: bool = false;

    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &Option<T>) {
        if let Some(value) = value {
            F::write(payload, name, value);
        }
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Option<T>> {
        if fields.raw(name).is_none() {
            return Ok(None);
        }
        F::read(fields, name).map(Some)
    }

    fn schema() -> Value {
        F::schema()
    }
}

/// The value behind a shared pointer.
pub(in crate::journal) struct Shared<F>(PhantomData<F>);

impl<T, F: Form<T>> Form<Arc<T>> for Shared<F> {
    const REQUIRED: bool = F::REQUIRED;

    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &Arc<T>) {
        F::write(payload, name, value);
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Arc<T>> {
        F::read(fields, name).map(Arc::new)
    }

    fn schema() -> Value {
        F::schema()
    }
}

/// Left out where it is empty, zero or false.
pub(in crate::journal) type Sparse = Unless<Always>;
/// The field is left out if the value is `None`.
pub(in crate::journal) type Optional = Maybe<Always>;
