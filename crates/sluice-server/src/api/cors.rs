//! Cross-origin requests: allowed only for the origins that the operator configures.
//!
//! INVARIANT: a session cookie is useless to a page of another origin. Credentials are
//! never allowed across origins; such a page sends a token instead.

use crate::app::App;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

/// Headers that a page may send.
const SENT: &str =
    "authorization, content-type, idempotency-key, last-event-id, traceparent, tracestate";
/// Headers that a page may read.
const READ: &str = "location, retry-after, x-request-id";
/// How long a browser caches a preflight response, in seconds.
const REMEMBERED_S: &str = "600";

/// The origin of a request, if it is allowed.
pub(super) fn origin(app: &App, headers: &HeaderMap) -> Option<HeaderValue> {
    let sent = headers.get(header::ORIGIN)?;
    let named = app.settings().cors_origins.iter().any(|one| one.as_bytes() == sent.as_bytes());
    named.then(|| sent.clone())
}

/// Whether a request is a CORS preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

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

/// Lets the page that sent the request read the response.
pub(super) fn allow(app: &App, origin: Option<HeaderValue>, response: &mut Response) {
    if app.settings().cors_origins.is_empty() {
        return;
    }
    let headers = response.headers_mut();
    // A cached response must not be used for another origin.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    }
}
