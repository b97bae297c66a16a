//! Pages of other origins: none may ask, but those an operator names.
//!
//! INVARIANT: a cookie of ours is of no use to a page elsewhere. Credentials are
//! never allowed across origins; such a page sends a token it was given.

use crate::app::App;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

/// Headers that a page may send.
const SENT: &str =
    "authorization, content-type, idempotency-key, last-event-id, traceparent, tracestate";
/// Headers that a page may read.
const READ: &str = "location, retry-after, x-request-id";
/// How long a browser need not ask again, in seconds.
const REMEMBERED_S: &str = "600";

/// The origin that asks, if it is one that may.
pub(super) fn origin(app: &App, headers: &HeaderMap) -> Option<HeaderValue> {
    let sent = headers.get(header::ORIGIN)?;
    let named = app.settings().cors_origins.iter().any(|one| one.as_bytes() == sent.as_bytes());
    named.then(|| sent.clone())
}

/// Whether a browser asks if a page may ask.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Tells a browser what a page may ask.
pub(super) fn preflight(methods: &[Method]) -> Response {
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, names);
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED_S));
    response
}

/// Lets the page that asked read an answer.
pub(super) fn allow(app: &App, origin: Option<HeaderValue>, response: &mut Response) {
    if app.settings().cors_origins.is_empty() {
        return;
    }
    let headers = response.headers_mut();
    // What is kept for one origin is not for another.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    }
}
