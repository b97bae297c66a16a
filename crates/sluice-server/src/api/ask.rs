//! A request, read: who asks, where, and for what.

use crate::app::App;
use crate::auth::Caller;
use crate::house::House;
use crate::refused::Refused;
use crate::service::Service;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// The request makes no sense as such.
pub const BAD_REQUEST: &str = "bad_request";

/// No query, or no body.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A request by somebody who may make it.
pub struct Ask<Q = Nothing, B = Nothing> {
    /// The server.
    pub app: App,
    /// The organisation of whoever asks.
    pub house: Arc<House>,
    /// Whoever asks.
    pub caller: Caller,
    /// The values in the path, by name.
    pub path: Vec<(&'static str, String)>,
    /// What stands after the question mark.
    pub query: Q,
    /// The body.
    pub body: B,
    /// The headers.
    pub headers: HeaderMap,
    /// The request's own id.
    pub request_id: String,
}

impl<Q, B> Ask<Q, B> {
    /// A value in the path.
    pub fn path(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(one, _)| *one == name);
        &found.expect("a route asks for what its path has").1
    }

    /// What can be asked of the caller's organisation.
    pub fn service(&self) -> &Service {
        self.house.service()
    }
}

/// A request that cannot be read.
pub fn bad(message: impl Into<String>) -> Refused {
    Refused::new(BAD_REQUEST, message, "the API's description says what is taken: /api/docs")
}
