//! What a station says no to, as RFC 9457 problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Something that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    /// What is wrong: lower case, no full stop, no secret.
    title: String,
    /// What to do about it.
    detail: &'static str,
}

impl Problem {
    /// Whoever asks is not the engine.
    pub(super) fn stranger() -> Problem {
        let detail = "send the gateway's key as `Authorization: Bearer …`";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", "no key of this gateway", detail)
    }

    /// The body is not one.
    pub(super) fn bad(title: impl Into<String>) -> Problem {
        let detail = "the guide's page on the bridge has the bodies";
        Problem::new(StatusCode::BAD_REQUEST, "bad_request", title, detail)
    }

    /// The body is one, but nothing that is done here.
    pub(super) fn refused(title: impl Into<String>, detail: &'static str) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", title, detail)
    }

    /// The body is too long.
    pub(super) fn too_long(bytes_max: usize) -> Problem {
        let title = format!("the body has more than {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", title, "send less")
    }

    /// The body does not come.
    pub(super) fn slow() -> Problem {
        let title = "the body did not come in time";
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", title, "send it again")
    }

    /// There is no such thing.
    pub(super) fn unknown(title: &str) -> Problem {
        let detail = "the guide's page on the bridge says what there is";
        Problem::new(StatusCode::NOT_FOUND, "not_found", title, detail)
    }

    /// It is there, but not for this method.
    pub(super) fn method() -> Problem {
        let detail = "the guide's page on the bridge says what there is";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Problem::new(status, "method_not_allowed", "not with this method", detail)
    }

    /// There is too much to do.
    pub(super) fn full() -> Problem {
        Problem::later("overloaded", "as much is worked on as there is room for")
    }

    /// The station stops.
    pub(super) fn stopping() -> Problem {
        Problem::later("stopping", "this process is about to end")
    }

    /// The spool does not answer.
    pub(super) fn forgetful() -> Problem {
        Problem::later("store_unavailable", "the spool cannot be written or read")
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
