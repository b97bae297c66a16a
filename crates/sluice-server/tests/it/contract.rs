//! Checks responses against the OpenAPI description.

use crate::client::{TestRequest, TestResponse};
use serde_json::{Value, json};
use sluice_server::api;
use std::sync::LazyLock;

/// The OpenAPI description.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| api::openapi::document(&api::routes()));

/// The operation of a method and path, if the description has one.
fn operation(method: &str, target: &str) -> Option<&'static Value> {
    let path = target.split('?').next().unwrap_or_default();
    let given: Vec<&str> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let same = |(part, one): (&&str, &&str)| part.starts_with('{') || part == one;
        parts.len() == given.len() && parts.iter().zip(&given).all(same)
    };
    let names = |template: &str| template.matches('{').count();
    let mut known: Vec<(&String, &Value)> = paths.iter().filter(|(path, _)| fits(path)).collect();
    known.sort_by_key(|(path, _)| names(path));
    let method = if method == "HEAD" { "get".to_owned() } else { method.to_ascii_lowercase() };
    known.into_iter().find_map(|(_, methods)| methods.get(&method))
}

/// Schemas of objects whose further fields depend on their kind.
const OPEN: [&str; 1] = ["RowShown"];

/// Fields of an answer that its description does not name.
fn undescribed(schema: &Value, body: &Value, path: &str, found: &mut Vec<String>) {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    if let Some(name) = name {
        if !OPEN.contains(&name) {
            undescribed(&DOCUMENT["components"]["schemas"][name], body, path, found);
        }
        return;
    }
    match body {
        Value::Array(items) => {
            items.iter().for_each(|item| undescribed(&schema["items"], item, path, found));
        }
        Value::Object(fields) => {
            let Some(described) = schema["properties"].as_object() else { return };
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match described.get(name) {
                    Some(schema) => undescribed(schema, value, &path, found),
                    None => found.push(path),
                }
            }
        }
        _ => {}
    }
}

/// Checks a response against the description of its request.
pub(crate) fn check(request: &TestRequest, response: &TestResponse) {
    let what = format!(
        "{} {} -> {}: {}",
        request.method,
        request.target,
        response.status,
        response.text()
    );
    let id = response.header("x-request-id").unwrap_or_default();
    assert!(id.starts_with("req_"), "no id: {what}");
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{what}");
    assert!(response.header("content-security-policy").is_some(), "{what}");
    if request.method == "HEAD" {
        assert!(response.body.is_empty(), "{what}");
        return;
    }
    let media = response.header("content-type").unwrap_or_default();
    let Some(operation) = operation(&request.method, &request.target) else {
        // The description does not describe itself.
        if request.method == "OPTIONS" && response.status == 204 {
            return;
        }
        assert!(matches!(response.status, 400 | 404 | 405), "{what}");
        return problem(response, &what);
    };
    let told = &operation["responses"][response.status.to_string()];
    if told.is_null() {
        assert!(response.status >= 400, "a status that is not described: {what}");
        return problem(response, &what);
    }
    let content = told["content"].as_object().unwrap();
    let plain = media.split(';').next().unwrap();
    let described = content.get(plain);
    let described = described.unwrap_or_else(|| panic!("{media} is not described: {what}"));
    if plain == "application/json" {
        let body = response.json();
        fits(&described["schema"], &body, &what);
        let mut found = Vec::new();
        undescribed(&described["schema"], &body, "", &mut found);
        assert!(found.is_empty(), "these fields are not described: {found:?} in {what}");
        if let Some(meta) = body.get("meta") {
            assert_eq!(meta["request_id"], id, "{what}");
        }
    }
}

/// Every error is a problem with the same fields.
fn problem(response: &TestResponse, what: &str) {
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{what}");
    let body = response.json();
    let schema = &DOCUMENT["components"]["responses"]["Problem"]["content"];
    fits(&schema["application/problem+json"]["schema"], &body, what);
    assert_eq!(body["status"], response.status, "{what}");
    assert_eq!(
        Some(body["request_id"].as_str().unwrap()),
        response.header("x-request-id"),
        "{what}"
    );
    let code = body["code"].as_str().unwrap();
    let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(!code.is_empty() && code.chars().all(snake), "{what}");
}

fn fits(schema: &Value, body: &Value, what: &str) {
    let whole = json!({"allOf": [schema], "components": DOCUMENT["components"]});
    let validator = jsonschema::draft202012::new(&whole).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(body).map(|one| format!("{}: {one}", one.instance_path())).collect();
    assert!(errors.is_empty(), "the description says otherwise: {errors:#?} in {what}");
}
