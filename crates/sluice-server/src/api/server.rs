//! Health, readiness, metrics and documentation of the server.

use super::openapi;
use super::problem::{FORBIDDEN, STOPPING, STORE_UNAVAILABLE};
use super::request::ApiRequest;
use super::route::{Incoming, Need, ResponseKind, Route};
use crate::auth::permission::Permission;
use crate::pages;
use crate::ready::trouble;
use crate::refused::{Refused, ServiceResult};
use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::sync::LazyLock;

pub(super) fn routes() -> Vec<Route> {
    let get = |path| (Method::GET, path);
    let health = ResponseKind::Json(health_schema);
    vec![
        Route::open(
            get("/healthz"),
            Need::Nothing,
            "Report whether the process is alive",
            health,
            alive,
        ),
        Route::open(
            get("/readyz"),
            Need::Nothing,
            "Report whether the server accepts work",
            health,
            ready,
        ),
        Route::raw(
            get("/metrics"),
            Need::Permission(Permission::AuditRead),
            "Metrics in the Prometheus text format",
            ResponseKind::Text("text/plain"),
            metrics,
        ),
        Route::open(
            get("/api/v1/openapi.json"),
            Need::Nothing,
            "This OpenAPI description",
            ResponseKind::Json(|_| json_schema!({"type": "object"})),
            description,
        ),
        Route::open(
            get("/api/docs"),
            Need::Nothing,
            "The API as an HTML page",
            ResponseKind::Text("text/html"),
            docs,
        ),
        Route::open(
            get("/api/docs/errors/{code}"),
            Need::Nothing,
            "The documentation of an error code",
            ResponseKind::Text("text/markdown"),
            error_page,
        ),
    ]
}

fn health_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "status": {"type": "string"},
            "why": {"type": "string"},
            "detail": {"type": "string"},
        },
        "required": ["status"],
    })
}

fn json(status: StatusCode, body: &Value) -> Response {
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [json], body.to_string()).into_response()
}

async fn alive(_: Incoming) -> Response {
    json(StatusCode::OK, &json!({"status": "alive"}))
}

/// Ready means that every organisation's store accepts writes, has disk space, and answers
/// reads.
async fn ready(incoming: Incoming) -> Response {
    let not = |body: Value| json(StatusCode::SERVICE_UNAVAILABLE, &body);
    if incoming.app.stop().is_cancelled() {
        return not(json!({"status": "not_ready", "why": STOPPING}));
    }
    let organisations = incoming.app.organisations();
    let troubles = join_all(organisations.iter().map(|organisation| trouble(organisation))).await;
    if let Some(detail) = troubles.into_iter().flatten().next() {
        return not(json!({"status": "not_ready", "why": STORE_UNAVAILABLE, "detail": detail}));
    }
    json(StatusCode::OK, &json!({"status": "ready"}))
}

async fn description(_: Incoming) -> Response {
    // Generated once, because clients without a token may request it any number of times.
    static MADE: LazyLock<Bytes> =
        LazyLock::new(|| openapi::document(&super::routes()).to_string().into());
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (StatusCode::OK, [json], MADE.clone()).into_response()
}

/// An HTML page that lists the API, without scripts.
async fn docs(_: Incoming) -> Response {
    static MADE: LazyLock<Bytes> = LazyLock::new(|| page().into());
    let html = (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let csp = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    (StatusCode::OK, [html, csp], MADE.clone()).into_response()
}

fn page() -> String {
    let routes = super::routes();
    let rows: String = routes.iter().map(line).collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Sluice API</title>\
         <style>{STYLE}</style><h1>Sluice API</h1>\
         <p>As OpenAPI 3.1: <a href=\"/api/v1/openapi.json\">openapi.json</a>. Send \
         <code>Authorization: Bearer TOKEN</code>. Responses are <code>{{data, meta}}</code>; \
         errors are <code>application/problem+json</code> with a <code>code</code>.</p>\
         <table><thead><tr><th>Method<th>Path<th>Summary<th>Permission</thead><tbody>{rows}\
         </tbody></table></html>"
    )
}

/// The organisation of the server's operator.
const OPERATOR: &str = "default";

/// The metrics of the server. They cover all organisations, so only the operator's own
/// organisation may read them.
async fn metrics(request: ApiRequest) -> ServiceResult<Response> {
    if request.organisation.name() != OPERATOR {
        let remedy = "use a token of the operator's organisation, `default`";
        return Err(Refused::new(FORBIDDEN, "only the operator may read metrics", remedy).into());
    }
    let text = request.app.metrics().render(&request.app, &request.app.organisations()).await;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, plain)], text).into_response())
}

async fn error_page(incoming: Incoming) -> Response {
    let code = incoming.path.first().map(|(_, code)| code.as_str()).unwrap_or_default();
    let Some(page) = pages::page(code) else {
        return super::admission::no_route(&incoming.app, &[]);
    };
    let text = (header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
    (StatusCode::OK, [text], page.into_owned()).into_response()
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;\
    padding:0 1rem;color-scheme:light dark}table{border-collapse:collapse;width:100%}\
    td,th{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884}\
    code{font:13px ui-monospace,monospace}";

fn line(route: &Route) -> String {
    let need = match route.need {
        Need::Nothing => "none",
        Need::Gateway => "gateway token",
        Need::Token => "any token",
        Need::Permission(permission) => permission.as_str(),
    };
    let (method, path, about) = (&route.method, route.path, route.about);
    format!("<tr><td>{method}<td><code>{path}</code><td>{about}<td>{need}")
}
