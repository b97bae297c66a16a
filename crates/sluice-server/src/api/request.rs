//! A parsed request of an authorised caller.

use crate::app::App;
use crate::auth::Caller;
use crate::organisation::Organisation;
use crate::refused::{BAD_REQUEST, Refused};
use crate::service::Service;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_core::trace::TraceParent;
use std::sync::Arc;

/// An empty query or body.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A parsed request of a caller who may make it.
pub struct ApiRequest<Q = Nothing, B = Nothing> {
    /// The server.
    pub app: App,
    /// The organisation of the caller.
    pub organisation: Arc<Organisation>,
    /// The principal that sent the request.
    pub caller: Caller,
    /// The path parameters, by name.
    pub path: Vec<(&'static str, String)>,
    /// The query parameters.
    pub query: Q,
    /// The parsed body.
    pub body: B,
    /// The headers.
    pub headers: HeaderMap,
    /// Id of the request, as in the response header.
    pub request_id: String,
}

impl<Q, B> ApiRequest<Q, B> {
    /// A path parameter.
    pub fn path(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(one, _)| *one == name);
        &found.expect("the handler uses a parameter of its route").1
    }

    /// The operations on the caller's organisation.
    pub fn service(&self) -> &Service {
        self.organisation.service()
    }
}

/// The trace of a W3C `traceparent` header; `None` if it is missing or not valid.
pub fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(headers.get("traceparent")?.to_str().ok()?)
}

/// The refusal of a request that cannot be parsed.
pub fn bad(message: impl Into<String>) -> Refused {
    Refused::new(BAD_REQUEST, message, "see the description of the API: /api/docs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_trace_header_is_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(trace(&headers), None);
        let sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        headers.insert("traceparent", sent.parse().unwrap());
        assert_eq!(trace(&headers).map(|cause| cause.to_string()).as_deref(), Some(sent));
        headers.insert("traceparent", "nonsense".parse().unwrap());
        assert_eq!(trace(&headers), None);
    }
}
