//! Readers of field schemas and argument declarations.

use crate::args::ArgDecl;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::flow_labels::FlowLabels;
use crate::doc::leaf::{Table, WholeNumber};
use crate::doc::read::{DocumentReader, PathPart, Read, document};
use crate::doc::schema::Defs;
use crate::limits::{DOCUMENT_BYTES_MAX, SCHEMA_DEPTH_MAX};
use crate::node::{Kind, Node};
use crate::outputs::schema::{FieldSchema, FieldType};
use crate::pattern::Pattern;
use crate::violation::Contradiction;
use serde_json::{Number, Value, json};

/// A length that a value in a document can have.
pub(crate) type Length = WholeNumber<0, { DOCUMENT_BYTES_MAX as u64 }>;

document! {
    /// The rules for one field.
    pub(crate) struct SchemaMap {
        /// The type; any when absent.
        optional "type" kind: FieldType,
        /// Whether the field is required (true); on an object, the list of required
        /// properties.
        optional "required" required: Required,
        /// The allowed values.
        optional "enum" values: Vec<Value>,
        /// The smallest number.
        optional "minimum" minimum: Number,
        /// The largest number.
        optional "maximum" maximum: Number,
        /// The smallest number of characters.
        optional "minLength" min_length: Length,
        /// The largest number of characters.
        optional "maxLength" max_length: Length,
        /// A pattern that a part of the text must match.
        optional "pattern" pattern: Pattern,
        /// The rules for every item of an array.
        optional "items" items: ItemsSchema,
        /// The rules for the properties of an object.
        optional "properties" properties: Table<SchemaDoc>,
        /// What the field means.
        optional "description" description: String,
        /// Where its data came from, by name, besides the step's inputs; only on a whole
        /// output.
        optional "origin" origin: FlowLabels,
        /// Secrets that it contains, by name, besides those of the step's inputs; only on a
        /// whole output.
        optional "sensitive" sensitive: FlowLabels,
        /// Labels that it does not take over from the step's inputs; only with `enum`, for a
        /// boolean, or for an integer with `minimum` and `maximum`.
        optional "endorse" endorse: FlowLabels,
    }
}

/// A field schema: a map, or just the type.
#[derive(Debug, Clone)]
pub(crate) struct SchemaDoc(pub(crate) FieldSchema);

impl Read for SchemaDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<SchemaDoc> {
        let schema = read_schema(node, cx)?;
        // Nested schemas are read first, so only the outermost one checks the whole.
        if cx.schema_depth() == 0 {
            report(schema.contradictions(), node, cx);
            check_endorse(schema.is_endorsable(), &schema.endorse, node, cx);
        }
        Some(SchemaDoc(schema))
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [FieldType::schema(defs), SchemaMap::schema(defs), { "type": "null" }] })
    }
}

fn read_schema<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<FieldSchema> {
    let map = match &node.kind {
        Kind::Null => return Some(FieldSchema::default()),
        Kind::Map(_) => cx.nested_schema(|cx| SchemaMap::read(node, cx))?,
        _ => {
            let kind = Some(FieldType::read(node, cx)?);
            return Some(FieldSchema { kind, ..FieldSchema::default() });
        }
    };
    if cx.schema_depth() >= SCHEMA_DEPTH_MAX {
        let message = format!("schemas are nested deeper than {SCHEMA_DEPTH_MAX} levels");
        cx.add(Problem::new(Code::BadSchema, node.span, message));
        return None;
    }
    let (required, required_properties) = match map.required {
        None => (true, None),
        Some(Required::Field(required)) => (required, None),
        Some(Required::Properties(names)) => (true, Some(names)),
    };
    Some(FieldSchema {
        kind: map.kind,
        required,
        values: map.values.unwrap_or_default(),
        minimum: map.minimum,
        maximum: map.maximum,
        min_length: map.min_length.map(|length| length.0),
        max_length: map.max_length.map(|length| length.0),
        pattern: map.pattern,
        items: map.items.map(|items| items.0),
        properties: map.properties.unwrap_or_default().into_map(|schema| schema.0),
        required_properties,
        description: map.description,
        origin: FlowLabels::names(map.origin),
        sensitive: FlowLabels::names(map.sensitive),
        endorse: FlowLabels::names(map.endorse),
    })
}

/// Refuses to endorse values that could carry any text.
pub(crate) fn check_endorse<'n>(
    endorsable: bool,
    labels: &[String],
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) {
    if endorsable || labels.is_empty() {
        return;
    }
    let message = format!("the values of this output could carry any text from `{}`", labels[0]);
    let span = node.get("endorse").unwrap_or(node).span;
    let problem = Problem::new(Code::CannotEndorse, span, message).with_hint(
        "declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds",
    );
    cx.within(PathPart::Key("endorse"), |cx| cx.add(problem));
}

/// The schema of an array's items.
#[derive(Debug, Clone)]
pub(crate) struct ItemsSchema(Box<FieldSchema>);

impl Read for ItemsSchema {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ItemsSchema> {
        SchemaDoc::read(node, cx).map(|schema| ItemsSchema(Box::new(schema.0)))
    }

    fn schema(defs: &mut Defs) -> Value {
        SchemaDoc::schema(defs)
    }
}

/// `required` of the field itself, or of an object's properties.
#[derive(Debug, Clone)]
pub(crate) enum Required {
    Field(bool),
    Properties(Vec<String>),
}

impl Read for Required {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Required> {
        match &node.kind {
            Kind::Bool(flag) => Some(Required::Field(*flag)),
            Kind::List(_) => Vec::read(node, cx).map(Required::Properties),
            _ => {
                cx.wrong_type(node, "`true`, `false` or a list of property names");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

document! {
    /// One argument of a run.
    pub(crate) struct ArgMap {
        /// The type; any when absent.
        optional "type" kind: FieldType,
        /// Whether a caller must set it (false).
        optional "required" required: bool,
        /// The value if the caller sets none.
        optional "default" default: Value,
        /// The allowed values.
        optional "enum" values: Vec<Value>,
        /// A description for people.
        optional "description" description: String,
        /// Where its value came from, by name (caller).
        optional "origin" origin: FlowLabels,
        /// Secrets that its value contains, by name.
        optional "sensitive" sensitive: FlowLabels,
    }
}

/// An argument's declaration: a map, or just the type.
#[derive(Debug, Clone)]
pub(crate) struct ArgDoc(pub(crate) ArgDecl);

impl Read for ArgDoc {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<ArgDoc> {
        let map = match &node.kind {
            Kind::Null => ArgMap::default(),
            Kind::Map(_) => ArgMap::read(node, cx)?,
            _ => ArgMap { kind: Some(FieldType::read(node, cx)?), ..ArgMap::default() },
        };
        let decl = ArgDecl {
            kind: map.kind,
            required: map.required.unwrap_or(false),
            default: map.default,
            values: map.values.unwrap_or_default(),
            description: map.description,
            origin: FlowLabels::names(map.origin),
            sensitive: FlowLabels::names(map.sensitive),
        };
        report(decl.contradictions(), node, cx);
        Some(ArgDoc(decl))
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [FieldType::schema(defs), ArgMap::schema(defs), { "type": "null" }] })
    }
}

/// Reports contradictions in a schema, each at the part that causes it.
pub(crate) fn report<'n>(
    found: Vec<Contradiction>,
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
) {
    for contradiction in found {
        let mut at = node;
        for key in &contradiction.path {
            at = at.get(key).unwrap_or(at);
        }
        let mut path = cx.path();
        for key in &contradiction.path {
            path.push('.');
            path.push_str(key);
        }
        let problem = Problem::new(Code::BadSchema, at.span, contradiction.message);
        cx.add_at(problem, path);
    }
}
