//! Parts behind pointers, parts that can be absent, and pairs that are two fields.

use super::{Keep, ObjectSchema, OptionalPart, PayloadPart, Read, VisitKept};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::object::PayloadWriter;
use std::sync::Arc;

macro_rules! pointer {
    ($($pointer:ident),*) => {
        $(impl<T: PayloadPart> PayloadPart for $pointer<T> {
            fn write(&self, payload: &mut PayloadWriter<'_>) {
                T::write(self, payload);
            }

            fn read(fields: &Fields<'_>) -> Read<$pointer<T>> {
                T::read(fields).map($pointer::new)
            }

            fn kept(visit: VisitKept<'_>) {
                T::kept(visit);
            }

            fn schema(object: &mut ObjectSchema) {
                T::schema(object);
            }
        }

        impl<T: OptionalPart> OptionalPart for $pointer<T> {
            const PRESENT: &'static str = T::PRESENT;
        })*
    };
}

pointer!(Box, Arc);

impl<T: OptionalPart> PayloadPart for Option<T> {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        if let Some(part) = self {
            part.write(payload);
        }
    }

    fn read(fields: &Fields<'_>) -> Read<Option<T>> {
        if fields.raw(T::PRESENT).is_none() {
            return Ok(None);
        }
        T::read(fields).map(Some)
    }

    fn kept(visit: VisitKept<'_>) {
        T::kept(visit);
    }

    fn schema(object: &mut ObjectSchema) {
        object.optional(T::schema);
    }
}

/// Code and message of a failure.
impl PayloadPart for (String, String) {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        payload.field("errorCode", &self.0);
        payload.field("errorMessage", &self.1);
    }

    fn read(fields: &Fields<'_>) -> Read<(String, String)> {
        Ok((fields.need("errorCode")?, fields.need("errorMessage")?))
    }

    fn kept(visit: VisitKept<'_>) {
        visit("errorCode", Keep::Word);
        visit("errorMessage", Keep::Blank);
    }

    fn schema(object: &mut ObjectSchema) {
        object.field::<String, super::form::Always>("errorCode");
        object.field::<String, super::form::Always>("errorMessage");
    }
}

impl OptionalPart for (String, String) {
    const PRESENT: &'static str = "errorCode";
}
