//! The JSON Schemas of the formats agree with the readers.

use super::Script;
use crate::doc::Format;
use serde_json::{Value, json};

/// Every object of a schema, including its definitions.
fn objects<'s>(schema: &'s Value, found: &mut Vec<&'s Value>) {
    match schema {
        Value::Object(map) => {
            found.push(schema);
            map.values().for_each(|inner| objects(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| objects(inner, found)),
        _ => {}
    }
}

fn walked(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    objects(schema, &mut found);
    found
}

fn fields(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().map(String::as_str).collect()
}

const FORMATS: [Format; 2] = [Format::Lobsterx, Format::Lens];

#[test]
fn every_reference_of_a_schema_leads_somewhere() {
    for format in FORMATS {
        let schema = format.json_schema();
        let mut count = 0;
        for reference in walked(&schema).iter().filter_map(|object| object.get("$ref")) {
            let reference = reference.as_str().expect("a text");
            let target = schema.pointer(reference.strip_prefix('#').expect("a local reference"));
            assert!(target.is_some_and(Value::is_object), "{reference}");
            count += 1;
        }
        assert!(count > 5, "{count} references");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(schema["title"].is_string());
    }
}

#[test]
fn every_map_of_a_schema_refuses_unknown_fields_and_describes_known_ones() {
    for format in FORMATS {
        let schema = format.json_schema();
        for map in walked(&schema).iter().filter(|one| {
            one.get("properties").is_some_and(|p| p.is_object() && one["type"] == "object")
        }) {
            assert_eq!(map["additionalProperties"], json!(false), "{map}");
            assert!(map["description"].as_str().is_some_and(|about| !about.is_empty()), "{map}");
            for (name, field) in map["properties"].as_object().expect("a map") {
                let about = field["description"].as_str();
                assert!(about.is_some_and(|about| !about.is_empty()), "{name}: {field}");
            }
        }
    }
}

#[test]
fn a_lens_schema_has_every_field_in_both_spellings() {
    let schema = Format::Lens.json_schema();
    let maps =
        walked(&schema).into_iter().filter(|one| one["additionalProperties"] == json!(false));
    for map in maps {
        for name in fields(map).iter().filter(|name| name.contains('_')) {
            let camel = crate::doc::read::camel_case(name);
            assert_eq!(map["properties"][&camel], map["properties"][*name], "{name}");
        }
    }
    let top = fields(&schema);
    for name in [
        "name",
        "version",
        "description",
        "args",
        "lenses",
        "nodes",
        "edges",
        "scheduling",
        "default_model",
        "defaultModel",
        "budget",
        "team",
        "recovery",
        "max_parallel",
        "maxParallel",
        "timeout",
        "outputs",
    ] {
        assert!(top.contains(&name), "{name}");
    }
    for (definition, names) in [
        ("NodeDoc", &["id", "lens_id", "lensId", "version_id", "label", "ordinal", "config"][..]),
        (
            "ConfigDoc",
            &[
                "model_id",
                "timeout_ms",
                "retry",
                "on_parent_failure",
                "merge",
                "moderation",
                "agent",
                "role",
                "required_tools",
                "required_tier",
                "max_cost_cents",
                "param_overrides",
                "on_failure",
                "memory",
                "onParentFailure",
                "paramOverrides",
            ],
        ),
        (
            "EdgeDoc",
            &[
                "id",
                "source_node_id",
                "target_node_id",
                "source_output_key",
                "target_param_label",
                "merge_strategy",
                "condition",
                "sourceNodeId",
            ],
        ),
        ("ConditionDoc", &["type", "value", "expr"]),
        ("VersionDoc", &["template", "input_contract", "output_contract", "kind"]),
        ("InputContractMap", &["kind", "fields", "require_any_of", "requireAnyOf", "strict"]),
        ("OutputContractMap", &["kind", "artifact_kind", "artifactKind", "schema"]),
        (
            "ContractFieldMap",
            &[
                "type",
                "required",
                "minLength",
                "maxLength",
                "pattern",
                "min",
                "max",
                "itemType",
                "enum",
            ],
        ),
    ] {
        let known = fields(&schema["$defs"][definition]);
        for name in names {
            assert!(known.contains(name), "{definition}.{name}");
        }
    }
}

#[test]
fn a_lobsterx_schema_has_one_spelling() {
    let schema = Format::Lobsterx.json_schema();
    for name in ["name", "steps", "max_parallel", "roles", "phases", "defaults"] {
        assert!(fields(&schema).contains(&name), "{name}");
    }
    assert!(!fields(&schema).contains(&"maxParallel"));
}

#[test]
fn required_fields_are_required_in_either_spelling_and_never_null() {
    let schema = Format::Lens.json_schema();
    assert_eq!(schema["allOf"], json!([{ "required": ["name"] }, { "required": ["nodes"] }]));
    let node = &schema["$defs"]["NodeDoc"];
    assert_eq!(node["allOf"], json!([{ "required": ["id"] }]));
    let either = |snake: &str, camel: &str| json!({ "anyOf": [{ "required": [snake] }, { "required": [camel] }] });
    let ends = [either("source_node_id", "sourceNodeId"), either("target_node_id", "targetNodeId")];
    assert_eq!(schema["$defs"]["EdgeDoc"]["allOf"], json!(ends));
    assert_eq!(node["properties"]["id"]["type"], "string");
    let optional = &node["properties"]["label"]["anyOf"];
    assert_eq!(optional, &json!([{ "type": "string" }, { "type": "null" }]));
    assert_eq!(schema["$defs"]["ConfigDoc"].get("allOf"), None);
    let lobsterx = Format::Lobsterx.json_schema();
    assert_eq!(lobsterx["allOf"], json!([{ "required": ["name"] }, { "required": ["steps"] }]));
}

#[test]
fn bounds_and_words_of_a_schema_are_those_of_the_reader() {
    let schema = Format::Lens.json_schema();
    let config = &schema["$defs"]["ConfigDoc"]["properties"];
    let timeout = json!({ "type": "integer", "minimum": 1, "maximum": 31_622_400_000_u64 });
    assert_eq!(config["timeout_ms"]["anyOf"][0], timeout);
    let words = json!(["last_write_wins", "concat", "array", "json_object"]);
    assert_eq!(config["merge"]["anyOf"][0]["enum"], words);
    let kinds = schema["$defs"]["VersionDoc"]["properties"]["kind"]["anyOf"][0]["enum"].as_array();
    assert_eq!(kinds.map(Vec::len), Some(11));
    // Every word in the schema is accepted.
    for kind in kinds.expect("words") {
        let text = format!(
            "name: g\nlenses: {{l: {{versions: {{1: {{template: x, kind: {kind}}}}}}}}}\nnodes: [{{id: a, lens_id: l}}]\n"
        );
        assert!(!Script::lens(&text).transcript().contains("bad_value"), "{kind}");
    }
}
