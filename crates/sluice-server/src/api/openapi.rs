//! The OpenAPI 3.1 description, generated from the table of routes.

use super::BASE;
use super::problem::ProblemDetails;
use super::route::{MakeSchema, Need, ResponseKind, Route};
use crate::auth::permission::Role;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use sluice_bridge::protocol::GATEWAY_TOKEN;
use sluice_core::journal::event::payload_schemas;

/// The description of these routes.
pub fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<ProblemDetails>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let described = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Meta".to_owned(), meta());
    schemas.insert("EventPayloads".to_owned(), event_payloads());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A governed, durable workflow engine for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Problem": {
                "description": "Problem details of an error",
                "content": {"application/problem+json": {"schema": problem}},
            }},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "gateway": {"type": "apiKey", "in": "header", "name": GATEWAY_TOKEN},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": super::cookie::BASE,
                    "description": "The name continues with a hash of the server's URL, \
                                    and begins with `__Host-` over TLS.",
                },
            },
        },
    })
}

fn meta() -> Value {
    json!({
        "type": "object",
        "properties": {
            "request_id": {"type": "string"},
            "next_cursor": {"type": "string"},
        },
        "required": ["request_id"],
    })
}

/// The payload of each event, by the name of the event, for the types of clients. Erasure
/// removes fields, so no response is checked against it.
fn event_payloads() -> Value {
    let payloads = payload_schemas();
    let names: Vec<&str> = payloads.keys().copied().collect();
    json!({"type": "object", "properties": payloads, "required": names})
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route.names().map(path_parameter).collect();
    if let Some(make) = route.query {
        parameters.extend(query_parameters(make, generator));
    }
    let mut described = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "tags": [tag(route.path)],
        "parameters": parameters,
        "responses": responses(route, generator),
    });
    match route.need {
        Need::Nothing => described["security"] = json!([]),
        Need::Gateway => described["security"] = json!([{"gateway": []}]),
        Need::Token => described["security"] = json!([{"token": []}, {"session": []}]),
        Need::Permission(permission) => {
            described["security"] = json!([{"token": []}, {"session": []}]);
            described["x-permission"] = permission.as_str().into();
            let roles = Role::ALL.iter().filter(|role| role.permissions().has(permission));
            described["x-roles"] = roles.map(|role| role.as_str()).collect();
        }
    }
    if let Some(make) = route.body {
        let schema = make(generator).to_value();
        described["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    described
}

fn path_parameter(name: &str) -> Value {
    let schema = json!({"type": "string", "minLength": 1});
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

/// The fields of a query, each as a parameter.
fn query_parameters(make: MakeSchema, generator: &mut SchemaGenerator) -> Vec<Value> {
    let schema = make(generator);
    let named = schema.as_value()["$ref"].as_str().and_then(|name| name.rsplit('/').next());
    let whole = named.and_then(|name| generator.definitions().get(name).cloned());
    let whole = whole.unwrap_or_else(|| schema.to_value());
    let required = |name: &str| {
        let list = whole["required"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == name))
    };
    let Some(fields) = whole["properties"].as_object() else { return Vec::new() };
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        let mut one = json!({"name": name, "in": "query", "required": required(name)});
        one["schema"] = schema;
        if let Some(about) = about {
            one["description"] = about;
        }
        one
    };
    fields.iter().map(parameter).collect()
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let wrapped = |data: Value| {
        json!({
            "type": "object",
            "properties": {"data": data, "meta": {"$ref": "#/components/schemas/Meta"}},
            "required": ["data", "meta"],
        })
    };
    let (media, schema) = match route.response {
        ResponseKind::Data(make) | ResponseKind::Page(make) => {
            ("application/json", wrapped(make(generator).to_value()))
        }
        ResponseKind::Json(make) => ("application/json", make(generator).to_value()),
        ResponseKind::Text(media) => (media, json!({"type": "string"})),
    };
    let mut all = Map::new();
    let good = json!({"description": "Success", "content": {media: {"schema": schema}}});
    all.insert(route.status.to_string(), good);
    all.insert("default".to_owned(), json!({"$ref": "#/components/responses/Problem"}));
    Value::Object(all)
}

/// `GET /api/v1/runs/{run}/state` is `get_runs_run_state`.
pub fn operation_id(route: &Route) -> String {
    if let Some(operation) = route.operation {
        return operation.to_owned();
    }
    let path = route.path.strip_prefix(BASE).unwrap_or(route.path);
    let words = path.split(['/', '.', '-']).filter(|part| !part.is_empty());
    let words = words.map(|part| part.trim_matches(['{', '}']));
    let method = route.method.as_str().to_ascii_lowercase();
    std::iter::once(method.as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn tag(path: &str) -> &str {
    let path = path.strip_prefix(BASE).unwrap_or(path);
    path.split('/').find(|part| !part.is_empty()).unwrap_or("server")
}
