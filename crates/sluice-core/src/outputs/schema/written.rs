//! The serialised form of a field schema.

use super::{FieldSchema, FieldType};
use crate::pattern::Pattern;
use crate::wire;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Number, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SchemaJson {
    #[serde(rename = "type")]
    kind: Option<FieldType>,
    required: Option<Required>,
    #[serde(default)]
    optional: bool,
    #[serde(rename = "enum", default, deserialize_with = "wire::values")]
    values: Vec<Value>,
    minimum: Option<Number>,
    maximum: Option<Number>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Pattern>,
    items: Option<Box<FieldSchema>>,
    #[serde(default)]
    properties: IndexMap<String, FieldSchema>,
    description: Option<String>,
    #[serde(default)]
    origin: Vec<String>,
    #[serde(default)]
    sensitive: Vec<String>,
    #[serde(default)]
    endorse: Vec<String>,
}

/// The value of `required`: for the field itself, or for its properties.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`required` is neither true or false nor a list of names")]
enum Required {
    Itself(bool),
    Properties(Vec<String>),
}

impl From<SchemaJson> for FieldSchema {
    fn from(written: SchemaJson) -> FieldSchema {
        let (required, required_properties) = match written.required {
            None => (!written.optional, None),
            Some(Required::Itself(required)) => (required, None),
            Some(Required::Properties(names)) => (!written.optional, Some(names)),
        };
        FieldSchema {
            kind: written.kind,
            required,
            values: written.values,
            minimum: written.minimum,
            maximum: written.maximum,
            min_length: written.min_length,
            max_length: written.max_length,
            pattern: written.pattern,
            items: written.items,
            properties: written.properties,
            required_properties,
            description: written.description,
            origin: written.origin,
            sensitive: written.sensitive,
            endorse: written.endorse,
        }
    }
}
