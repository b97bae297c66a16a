//! Payload of a part of a streamed answer.

use crate::journal::declare::form::{Always, Optional, Sparse};
use crate::journal::declare::{Keep, ObjectSchema, PayloadPart, Read, VisitKept, payload};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::malformed;
use crate::journal::wire::object::PayloadWriter;
use serde_json::json;

payload! {
    /// A part of an answer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Delta {
        /// Index of the part, per step from 0, over all attempts.
        index: u64 = "deltaIndex" as Always, Whole;
        /// The attempt that it belongs to.
        attempt: u32 = "attempt" as Always, Whole;
        /// The dispatch that it belongs to: text starts anew with each, and an attempt can
        /// be dispatched again after a crash. 0 in journals that do not record it.
        dispatch_no: u32 = "dispatchNo" as Sparse, Whole;
        /// The content.
        part: DeltaPart;
    }
}

/// Content of a part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum DeltaPart {
    /// A piece of the answer's text.
    Text(String),
    /// A picture or sound.
    Media {
        /// Its address.
        url: String,
        /// Its media type.
        mime: String,
    },
    /// The content is stored next to the frame and was not read: the fold does not need it.
    Beside,
}

impl PayloadPart for DeltaPart {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        match self {
            DeltaPart::Text(text) => {
                payload.field("kind", "text");
                payload.field("text", text);
            }
            DeltaPart::Media { url, mime } => {
                payload.field("kind", "media");
                payload.field("url", url);
                payload.field("mime", mime);
            }
            DeltaPart::Beside => {}
        }
    }

    fn read(fields: &Fields<'_>) -> Read<DeltaPart> {
        Ok(match fields.option::<String>("kind")?.as_deref() {
            None => DeltaPart::Beside,
            Some("text") => DeltaPart::Text(fields.need("text")?),
            Some("media") => {
                DeltaPart::Media { url: fields.need("url")?, mime: fields.need("mime")? }
            }
            Some(_) => return Err(malformed("kind: unknown word")),
        })
    }

    fn kept(visit: VisitKept<'_>) {
        visit("kind", Keep::Whole);
        for name in ["text", "url", "mime"] {
            visit(name, Keep::Blank);
        }
    }

    fn schema(object: &mut ObjectSchema) {
        object.add("kind", json!({"type": "string", "enum": ["text", "media"]}), false);
        for name in ["text", "url", "mime"] {
            object.field::<Option<String>, Optional>(name);
        }
    }
}
