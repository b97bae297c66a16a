//! Responses: `{data, meta}`, with a status and headers.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

/// The response to a request.
#[derive(Debug)]
pub struct Reply<T> {
    status: StatusCode,
    data: T,
    next_cursor: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<T: Serialize> Reply<T> {
    /// 200 OK.
    pub fn ok(data: T) -> Reply<T> {
        Reply { status: StatusCode::OK, data, next_cursor: None, headers: Vec::new() }
    }

    /// 201 Created.
    pub fn created(data: T) -> Reply<T> {
        Reply { status: StatusCode::CREATED, ..Reply::ok(data) }
    }

    /// 202 Accepted: the request is stored durably and will be executed.
    pub fn accepted(data: T) -> Reply<T> {
        Reply { status: StatusCode::ACCEPTED, ..Reply::ok(data) }
    }

    /// A page, and the cursor of the next one.
    pub fn page(data: T, next_cursor: Option<String>) -> Reply<T> {
        Reply { next_cursor, ..Reply::ok(data) }
    }

    /// Adds a header. A value that is not valid in a header is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Reply<T> {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// The HTTP response.
    pub fn into_response(self, request_id: &str) -> Response {
        let next_cursor = self.next_cursor;
        let answer = ResponseBody { data: self.data, meta: Meta { request_id, next_cursor } };
        let Ok(body) = serde_json::to_vec(&answer) else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let mut response = (self.status, body).into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

#[derive(Serialize)]
struct ResponseBody<'a, T> {
    data: T,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}
