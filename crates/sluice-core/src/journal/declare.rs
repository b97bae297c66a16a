//! How an event is declared, once.
//!
//! [`payload!`] declares the fields of a payload and [`events!`] declares the events that
//! carry them. From one declaration come the Rust type, the writer, the reader, what erasure
//! leaves, the audit fact and the JSON Schema, so none of them can disagree with another.
//!
//! A field is declared as `name: Type = "wireName" as Form, Keep;`. The [`Form`](form::Form)
//! says how the value is written and read, [`Keep`] what is left when the payload is erased.
//! A field without a wire name is a [`PayloadPart`] whose own fields are written in its place.

pub(super) mod form;
mod part;
mod schema;

pub use schema::ObjectSchema;

use super::wire::fields::Fields;
use super::wire::object::PayloadWriter;
use super::wire::{WireError, malformed};

pub(super) type Read<T> = Result<T, WireError>;

/// What erasure leaves of a field.
///
/// The fold needs ids, statuses, codes and numbers; it does not need what people or models
/// wrote. So a new field that is declared [`Gone`](Keep::Gone) is always safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The field stays: an id, a number, a hash, a flag.
    Whole,
    /// The field stays if it is one plain word, as codes are; otherwise it becomes empty.
    Word,
    /// The field stays if the fold acts on this reason; otherwise it becomes empty.
    Reason,
    /// The field becomes an empty text: the fold needs to know that it was there.
    Blank,
    /// The field becomes a list of as many nulls.
    Count,
    /// The field is removed.
    Gone,
}

/// Receives the wire name of each field of a payload, with what erasure leaves of it.
pub(super) type VisitKept<'a> = &'a mut dyn FnMut(&'static str, Keep);

/// Fields that several payloads share, or that one payload consists of.
pub(super) trait PayloadPart: Sized {
    fn write(&self, payload: &mut PayloadWriter<'_>);
    fn read(fields: &Fields<'_>) -> Read<Self>;
    fn kept(visit: VisitKept<'_>);
    fn schema(object: &mut ObjectSchema);
}

/// A part that can be absent: it is there if this field is.
pub(super) trait OptionalPart: PayloadPart {
    const PRESENT: &'static str;
}

/// Everything that is declared about an event besides its Rust type.
pub struct Declaration {
    /// Name of the event on every wire.
    pub name: &'static str,
    /// Category and type of the audit fact, if the audit shows the event.
    pub fact: Option<(&'static str, &'static str)>,
    pub(super) kept: fn(VisitKept<'_>),
    pub(super) schema: fn(&mut ObjectSchema),
}

impl Declaration {
    /// Adds the fields of the payload to a JSON Schema.
    pub fn describe(&self, object: &mut ObjectSchema) {
        (self.schema)(object);
    }
}

/// Declares a payload, or a part of one. `if "field"` makes the part optional.
macro_rules! payload {
    (
        $(#[$about:meta])*
        pub struct $name:ident $(if $present:literal)? {
            $($(#[$doc:meta])* $field:ident: $type:ty $(= $wire:literal as $form:ty, $keep:ident)?;)*
        }
    ) => {
        $(#[$about])*
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        $crate::journal::declare::payload! {
            impl $name $(if $present)? {
                $($field: $type $(= $wire as $form, $keep)?;)*
            }
        }
    };
    // For a struct that is declared in another module. Fields after `else` are not written.
    (
        impl $name:ident $(if $present:literal)? {
            $($field:ident: $type:ty $(= $wire:literal as $form:ty, $keep:ident)?;)*
        } $(else { $($absent:ident = $value:expr;)* })?
    ) => {
        impl $crate::journal::declare::PayloadPart for $name {
            fn write(&self, payload: &mut $crate::journal::wire::object::PayloadWriter<'_>) {
                $($crate::journal::declare::payload!(@write payload, &self.$field, $type $(, $wire, $form)?);)*
            }

            fn read(
                fields: &$crate::journal::wire::fields::Fields<'_>,
            ) -> Result<$name, $crate::journal::wire::WireError> {
                Ok($name {
                    $($field: $crate::journal::declare::payload!(@read fields, $type $(, $wire, $form)?),)*
                    $($($absent: $value,)*)?
                })
            }

            fn kept(visit: $crate::journal::declare::VisitKept<'_>) {
                $($crate::journal::declare::payload!(@kept visit, $type $(, $wire, $keep)?);)*
            }

            fn schema(object: &mut $crate::journal::declare::ObjectSchema) {
                $($crate::journal::declare::payload!(@schema object, $type $(, $wire, $form)?);)*
            }
        }

        $(impl $crate::journal::declare::OptionalPart for $name {
            const PRESENT: &'static str = $present;
        })?
    };
    (@write $out:ident, $value:expr, $type:ty) => {
        <$type as $crate::journal::declare::PayloadPart>::write($value, $out)
    };
    (@write $out:ident, $value:expr, $type:ty, $wire:literal, $form:ty) => {
        <$form as $crate::journal::declare::form::Form<$type>>::write($out, $wire, $value)
    };
    (@read $fields:ident, $type:ty) => {
        <$type as $crate::journal::declare::PayloadPart>::read($fields)?
    };
    (@read $fields:ident, $type:ty, $wire:literal, $form:ty) => {
        <$form as $crate::journal::declare::form::Form<$type>>::read($fields, $wire)?
    };
    (@kept $visit:ident, $type:ty) => {
        <$type as $crate::journal::declare::PayloadPart>::kept($visit)
    };
    (@kept $visit:ident, $type:ty, $wire:literal, $keep:ident) => {
        $visit($wire, $crate::journal::declare::Keep::$keep)
    };
    (@schema $object:ident, $type:ty) => {
        <$type as $crate::journal::declare::PayloadPart>::schema($object)
    };
    (@schema $object:ident, $type:ty, $wire:literal, $form:ty) => {
        $object.field::<$type, $form>($wire)
    };
}

/// Declares an enum of events: `Variant(binding: Payload) = "event.name", category "type";`
/// or `Variant { fields } = …`. The category and the type of the audit fact are left out
/// for events that the audit does not show. `if condition` tells apart two variants with one
/// name: the first whose condition holds is read. `with "field" = "word"` is such a condition
/// and writes the field. `..Variant(Key, Inner)` adds the events of another enum.
macro_rules! events {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $(($payload:ident: $carried:ty))?
                $({ $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $wire:literal as $form:ty, $keep:ident)?;)* })?
                = $kind:literal $(with $tag:literal = $word:literal)? $(if $condition:path)?
                $(, $category:ident $fact:literal)?;
            )*
            $(..$(#[$outer_doc:meta])* $outer:ident($key:ty, $inner:ty))?
        }
    ) => {
        $(#[$about])*
        pub enum $name {
            $(
                $(#[$doc])*
                $variant $(($carried))? $({ $($(#[$field_doc])* $field: $type,)* })?,
            )*
            $($(#[$outer_doc])* $outer($key, $inner),)?
        }

        impl $name {
            /// Everything that is declared about these events, in order.
            pub(crate) const DECLARED: &'static [$crate::journal::declare::Declaration] = &[
                $($crate::journal::declare::Declaration {
                    name: $kind,
                    fact: $crate::journal::declare::events!(@fact $($category $fact)?),
                    kept: {
                        fn kept(_visit: $crate::journal::declare::VisitKept<'_>) {
                            $(_visit($tag, $crate::journal::declare::Keep::Word);)?
                            $($crate::journal::declare::payload!(@kept _visit, $carried);)?
                            $($($crate::journal::declare::payload!(@kept _visit, $type $(, $wire, $keep)?);)*)?
                        }
                        kept
                    },
                    schema: {
                        fn schema(_object: &mut $crate::journal::declare::ObjectSchema) {
                            $(_object.word($tag, $word);)?
                            $($crate::journal::declare::payload!(@schema _object, $carried);)?
                            $($($crate::journal::declare::payload!(@schema _object, $type $(, $wire, $form)?);)*)?
                        }
                        schema
                    },
                },)*
            ];

            /// Name of the event on every wire.
            pub fn name(&self) -> &'static str {
                match self {
                    $($name::$variant $(($payload))? $({ $($field: _,)* })? => {
                        $(let _ = $payload;)?
                        $kind
                    })*
                    $($name::$outer(_, event) => <$inner>::name(event),)?
                }
            }

            /// Writes the fields of the payload.
            pub(in crate::journal) fn write(
                &self,
                payload: &mut $crate::journal::wire::object::PayloadWriter<'_>,
            ) {
                match self {
                    $($name::$variant $(($payload))? $({ $($field,)* })? => {
                        $(payload.field($tag, $word);)?
                        $($crate::journal::declare::payload!(@write payload, $payload, $carried);)?
                        $($($crate::journal::declare::payload!(@write payload, $field, $type $(, $wire, $form)?);)*)?
                    })*
                    $($name::$outer(_, event) => <$inner>::write(event, payload),)?
                }
            }

            /// Reads the event of this name; none if it is not declared here.
            pub(in crate::journal) fn read(
                kind: &str,
                fields: &$crate::journal::wire::fields::Fields<'_>,
            ) -> Result<Option<$name>, $crate::journal::wire::WireError> {
                Ok(match kind {
                    $($kind $(if fields.has_word($tag, $word)?)? $(if $condition(fields))? => Some(
                        $name::$variant
                        $(($crate::journal::declare::payload!(@read fields, $carried)))?
                        $({ $($field: $crate::journal::declare::payload!(@read fields, $type $(, $wire, $form)?),)* })?
                    ),)*
                    _ => None,
                })
            }
        }
    };
    (@fact) => { None };
    (@fact $category:ident $fact:literal) => { Some((stringify!($category), $fact)) };
}

pub(super) use {events, payload};

/// A text of a payload that is not one of the known words.
fn unknown_word(name: &str) -> WireError {
    malformed(format_args!("{name}: unknown word"))
}
