//! What the server says of itself: whether it lives, is ready, what it offers.

use super::ask::Ask;
use super::openapi;
use super::problem::{FORBIDDEN, STOPPING, STORE_UNAVAILABLE};
use super::route::{Answers, Incoming, Need, Route};
use crate::auth::permission::Permission;
use crate::pages;
use crate::ready::trouble;
use crate::refused::{Done, Refused};
use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The routes of the server itself.
pub(super) fn routes() -> Vec<Route> {
    let get = |path| (Method::GET, path);
    let health = Answers::Json(health_schema);
    vec![
        Route::open(get("/healthz"), Need::Nothing, "Whether the process lives", health, alive),
        Route::open(get("/readyz"), Need::Nothing, "Whether it takes work", health, ready),
        Route::raw(
            get("/metrics"),
            Need::Permission(Permission::AuditRead),
            "What is counted, as Prometheus reads it",
            Answers::Text("text/plain"),
            metrics,
        ),
        Route::open(
            get("/api/v1/openapi.json"),
            Need::Nothing,
            "This description",
            Answers::Json(|_| json_schema!({"type": "object"})),
            description,
        ),
        Route::open(
            get("/api/docs"),
            Need::Nothing,
            "The API for people",
            Answers::Text("text/html"),
            docs,
        ),
        Route::open(
            get("/api/docs/errors/{code}"),
            Need::Nothing,
            "What a code means, and what to do",
            Answers::Text("text/markdown"),
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

/// Ready: every organisation's store takes writes, has room, and answers reads.
async fn ready(incoming: Incoming) -> Response {
    let not = |body: Value| json(StatusCode::SERVICE_UNAVAILABLE, &body);
    if incoming.app.stop().is_cancelled() {
        return not(json!({"status": "not_ready", "why": STOPPING}));
    }
    let houses = incoming.app.houses();
    let troubles = join_all(houses.iter().map(|house| trouble(house))).await;
    if let Some(detail) = troubles.into_iter().flatten().next() {
        return not(json!({"status": "not_ready", "why": STORE_UNAVAILABLE, "detail": detail}));
    }
    json(StatusCode::OK, &json!({"status": "ready"}))
}

async fn description(_: Incoming) -> Response {
    // Made once: a client without a token may ask for it as often as it likes.
    static MADE: LazyLock<Bytes> =
        LazyLock::new(|| openapi::document(&super::routes()).to_string().into());
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (StatusCode::OK, [json], MADE.clone()).into_response()
}

/// A page that lists the API: plain, without scripts.
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
         <code>Authorization: Bearer TOKEN</code>. Answers are <code>{{data, meta}}</code>; \
         problems are <code>application/problem+json</code> with a <code>code</code>.</p>\
         <table><thead><tr><th>Method<th>Path<th>What<th>Permission</thead><tbody>{rows}\
         </tbody></table></html>"
    )
}

/// The organisation of whoever operates the server.
const OPERATOR: &str = "default";

/// What the server counts. It is about everybody, so only the operator's own
/// organisation is told.
async fn metrics(ask: Ask) -> Done<Response> {
    if ask.house.name() != OPERATOR {
        let remedy = "ask whoever operates the server";
        return Err(Refused::new(FORBIDDEN, "this is for the operator alone", remedy).into());
    }
    let text = ask.app.metrics().render(&ask.app, &ask.app.houses()).await;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, plain)], text).into_response())
}

async fn error_page(incoming: Incoming) -> Response {
    let code = incoming.path.first().map(|(_, code)| code.as_str()).unwrap_or_default();
    let Some(page) = pages::page(code) else { return super::gate::nowhere(&incoming.app, &[]) };
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
        Need::Gateway => "a gateway's token",
        Need::Token => "any token",
        Need::Permission(permission) => permission.as_str(),
    };
    let (method, path, about) = (&route.method, route.path, route.about);
    format!("<tr><td>{method}<td><code>{path}</code><td>{about}<td>{need}")
}
