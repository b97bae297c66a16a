//! Errors as RFC 9457 problem details.
//!
//! INVARIANT: causes are logged, never sent. For an internal error the client gets only
//! its code and the id of the request.

use crate::refused::{self, Failure, Refused};
use crate::service::callback::CALLBACK_REFUSED;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;
use sluice_core::port::store::StoreError;
use std::sync::Arc;
use std::time::Duration;

/// The token is missing, invalid, expired or revoked.
pub const UNAUTHENTICATED: &str = "unauthenticated";
/// The caller lacks a permission.
pub const FORBIDDEN: &str = "forbidden";
/// A change with a session cookie that does not come from a page of the console.
pub(crate) const CSRF_REFUSED: &str = "csrf_refused";
/// The resource does not exist.
pub const NOT_FOUND: &str = "not_found";
/// The resource exists, but does not support this method.
pub const METHOD_NOT_ALLOWED: &str = "method_not_allowed";
/// The media type of the body is not supported.
pub(crate) const UNSUPPORTED_MEDIA_TYPE: &str = "unsupported_media_type";
pub(crate) const BODY_TOO_LARGE: &str = "body_too_large";
/// The client exceeds a rate limit or its share of the capacity.
pub const TOO_MANY_REQUESTS: &str = "too_many_requests";
/// The server is at its capacity.
pub(crate) const OVERLOADED: &str = "overloaded";
/// The request timed out.
pub const REQUEST_TIMEOUT: &str = "request_timeout";
pub(crate) const STORE_UNAVAILABLE: &str = "store_unavailable";
/// The server is stopping.
pub(crate) const STOPPING: &str = "stopping";
/// A defect of Sluice.
pub const INTERNAL: &str = "internal_error";

/// Problem details of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProblemDetails {
    /// URL of the page about the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Stable error code, for programs.
    pub code: String,
    /// What to do about it.
    pub detail: String,
    /// One message for each thing that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Id of the request.
    pub request_id: String,
}

/// An error response.
#[derive(Debug)]
pub struct Rejection {
    refused: Refused,
    retry_after: Option<Duration>,
    cause: Option<StoreCause>,
}

/// Why the store failed: an extension of the response, for callers in this process.
/// It is never sent.
#[derive(Debug, Clone)]
pub struct StoreCause(pub Arc<StoreError>);

impl Rejection {
    /// An error after which the client may try again.
    pub fn later(code: &'static str, message: &str, after: Duration) -> Rejection {
        let remedy = "try again after the time in `Retry-After`";
        let refused = Refused::new(code, message, remedy);
        Rejection { refused, retry_after: Some(after), cause: None }
    }

    /// An internal error.
    pub fn internal() -> Rejection {
        let remedy = "search the server's log for the request id";
        Refused::new(INTERNAL, "internal error", remedy).into()
    }

    /// The error code.
    pub fn code(&self) -> &'static str {
        self.refused.code
    }

    /// The refusal, without its retry time.
    pub(crate) fn into_refused(self) -> Refused {
        self.refused
    }

    /// The HTTP response.
    pub fn into_response(self, request_id: &str) -> Response {
        let Refused { code, message, notes, remedy } = self.refused;
        let status = status(code);
        let problem = ProblemDetails {
            kind: format!("/api/docs/errors/{code}"),
            title: message,
            status: status.as_u16(),
            code: code.to_owned(),
            detail: remedy,
            errors: notes,
            request_id: request_id.to_owned(),
        };
        let body = serde_json::to_vec(&problem).expect("a problem is plain JSON");
        let mut response = (status, body).into_response();
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer realm=\"sluice\"");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl From<Refused> for Rejection {
    fn from(refused: Refused) -> Rejection {
        Rejection { refused, retry_after: None, cause: None }
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Rejection {
        match failure {
            Failure::Refused(refused) => refused.into(),
            Failure::Store(error) => {
                tracing::error!(%error, "the store failed");
                let message = "the store is unavailable";
                let rejection =
                    Rejection::later(STORE_UNAVAILABLE, message, Duration::from_secs(2));
                Rejection { cause: Some(StoreCause(Arc::new(error))), ..rejection }
            }
            Failure::Stopping => {
                let message = "this process is stopping";
                Rejection::later(STOPPING, message, Duration::from_secs(2))
            }
        }
    }
}

/// The HTTP status of a code: 400 if the request itself is wrong, 422 if the content of a
/// document is.
pub fn status(code: &str) -> StatusCode {
    match code {
        refused::BAD_REQUEST | refused::ID_AMBIGUOUS => StatusCode::BAD_REQUEST,
        UNAUTHENTICATED => StatusCode::UNAUTHORIZED,
        FORBIDDEN
        | CSRF_REFUSED
        | CALLBACK_REFUSED
        | refused::CHANGE_REFUSED
        | refused::SECRET_NOT_NAMED
        | refused::ROLE_BOUND
        | "not_approver"
        | "self_approval" => StatusCode::FORBIDDEN,
        NOT_FOUND
        | refused::RUN_UNKNOWN
        | refused::APPROVAL_UNKNOWN
        | refused::ROW_UNKNOWN
        | refused::CHECKPOINT_UNKNOWN
        | refused::EVENT_UNKNOWN
        | "unknown_step" => StatusCode::NOT_FOUND,
        METHOD_NOT_ALLOWED => StatusCode::METHOD_NOT_ALLOWED,
        BODY_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        refused::ROW_IN_USE
        | refused::VERSION_TAKEN
        | refused::KEY_CONFLICT
        | refused::RUN_NOT_ENDED
        | refused::RUN_OWNED
        | refused::RUN_PAUSED
        | refused::NOTHING_FAILED
        | refused::REGISTRY_BUSY
        | refused::DOCUMENT_CHANGED
        | refused::NOT_SEALED
        | refused::NOT_ON_TRIAL
        | super::triggers::REPLAYED
        | "run_ended"
        | "run_not_paused"
        | "run_not_failed"
        | "step_not_blocked"
        | "approval_resolved"
        | "answered_already"
        | "completion_late"
        | "nothing_to_rewind" => StatusCode::CONFLICT,
        TOO_MANY_REQUESTS => StatusCode::TOO_MANY_REQUESTS,
        OVERLOADED | REQUEST_TIMEOUT | STORE_UNAVAILABLE | STOPPING => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        INTERNAL | refused::RUN_UNREADABLE => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
