//! Error responses of a bridge, as RFC 9457 problem details.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BridgeProblem {
    status: StatusCode,
    code: &'static str,
    /// Lower case, no full stop, no secret.
    title: String,
    /// What the caller can do.
    detail: &'static str,
}

impl BridgeProblem {
    pub(super) fn unauthenticated() -> BridgeProblem {
        let detail = "send the gateway's key as `Authorization: Bearer …`";
        BridgeProblem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "the gateway's key is missing or wrong",
            detail,
        )
    }

    /// The body is malformed.
    pub(super) fn bad_request(title: impl Into<String>) -> BridgeProblem {
        let detail = "see the guide's page on the bridge for the request bodies";
        BridgeProblem::new(StatusCode::BAD_REQUEST, "bad_request", title, detail)
    }

    /// The body is well formed, but the bridge does not accept it.
    pub(super) fn invalid(title: impl Into<String>, detail: &'static str) -> BridgeProblem {
        BridgeProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", title, detail)
    }

    pub(super) fn body_too_large(bytes_max: usize) -> BridgeProblem {
        let title = format!("the body has more than {bytes_max} bytes");
        BridgeProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", title, "send less")
    }

    pub(super) fn request_timeout() -> BridgeProblem {
        let title = "the body did not arrive in time";
        BridgeProblem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", title, "send it again")
    }

    pub(super) fn not_found(title: &str) -> BridgeProblem {
        let detail = "see the guide's page on the bridge for the paths";
        BridgeProblem::new(StatusCode::NOT_FOUND, "not_found", title, detail)
    }

    pub(super) fn method_not_allowed() -> BridgeProblem {
        let detail = "see the guide's page on the bridge for the methods";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        BridgeProblem::new(
            status,
            "method_not_allowed",
            "the path does not support this method",
            detail,
        )
    }

    pub(super) fn overloaded() -> BridgeProblem {
        BridgeProblem::unavailable("overloaded", "the bridge is at its limit of concurrent work")
    }

    pub(super) fn stopping() -> BridgeProblem {
        BridgeProblem::unavailable("stopping", "the bridge is stopping")
    }

    pub(super) fn spool_unavailable() -> BridgeProblem {
        BridgeProblem::unavailable("store_unavailable", "the spool cannot be read or written")
    }

    fn unavailable(code: &'static str, title: &str) -> BridgeProblem {
        let detail = "try again after the time in `Retry-After`";
        BridgeProblem::new(StatusCode::SERVICE_UNAVAILABLE, code, title, detail)
    }

    fn new(
        status: StatusCode,
        code: &'static str,
        title: impl Into<String>,
        detail: &'static str,
    ) -> BridgeProblem {
        BridgeProblem { status, code, title: title.into(), detail }
    }
}

impl IntoResponse for BridgeProblem {
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
