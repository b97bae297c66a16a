//! Error responses of a bridge, as RFC 9457 problem details.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    /// Lower case, no full stop, no secret.
    title: String,
    /// What the caller can do.
    detail: &'static str,
}

impl Problem {
    pub(super) fn stranger() -> Problem {
        let detail = "send the gateway's key as `Authorization: Bearer …`";
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "the gateway's key is missing or wrong",
            detail,
        )
    }

    /// The body is malformed.
    pub(super) fn bad(title: impl Into<String>) -> Problem {
        let detail = "see the guide's page on the bridge for the request bodies";
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", title, detail)
    }

    /// The body is well formed, but the bridge does not accept it.
    pub(super) fn refused(title: impl Into<String>, detail: &'static str) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", title, detail)
    }

    pub(super) fn too_long(bytes_max: usize) -> Problem {
        let title = format!("the body has more than {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", title, "send less")
    }

    pub(super) fn slow() -> Problem {
        let title = "the body did not arrive in time";
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", title, "send it again")
    }

    pub(super) fn unknown(title: &str) -> Problem {
        let detail = "see the guide's page on the bridge for the paths";
        Problem::new(StatusCode::NOT_FOUND, "not_found", title, detail)
    }

    pub(super) fn method() -> Problem {
        let detail = "see the guide's page on the bridge for the methods";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Problem::new(status, "method_not_allowed", "the path does not support this method", detail)
    }

    pub(super) fn full() -> Problem {
        Problem::later("overloaded", "the bridge is at its limit of concurrent work")
    }

    pub(super) fn stopping() -> Problem {
        Problem::later("stopping", "the bridge is stopping")
    }

    pub(super) fn forgetful() -> Problem {
        Problem::later("store_unavailable", "the spool cannot be read or written")
    }

    fn later(code: &'static str, title: &str) -> Problem {
        let detail = "try again after the time in `Retry-After`";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, title, detail)
    }

    fn new(
        status: StatusCode,
        code: &'static str,
        title: impl Into<String>,
        detail: &'static str,
    ) -> Problem {
        Problem { status, code, title: title.into(), detail }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("/api/docs/errors/{}", self.code), "title": self.title,
            "status": self.status.as_u16(), "code": self.code, "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer realm=\"sluice\"");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
