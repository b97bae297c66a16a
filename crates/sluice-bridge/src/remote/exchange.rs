//! One HTTP request to a remote worker, and the classification of its response.

use crate::limits::{CALLBACK_BYTES_MAX, REFUSAL_BYTES_MAX, TITLE_BYTES_MAX};
use crate::outbound::error::{OutboundError, peer_at};
use crate::outbound::{Redirects, Request};
use crate::secret::Secret;
use crate::secret::scrub::Scrub;
use crate::wire::{Incoming, RequestIndex, Wire};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use sluice_core::port::adapter::{Answer, CallError, CallErrorCode, Usage};
use std::time::Duration;

/// Sends requests to one worker.
pub(crate) struct RemoteExchange<'a> {
    pub(crate) wire: &'a dyn Wire,
    pub(crate) key: Option<&'a Secret>,
    /// Name of the worker in error messages, which also show its origin.
    pub(crate) peer: &'a str,
}

/// Whether the worker may have started to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkStarted {
    No,
    /// Unknown, and so is the cost.
    Maybe,
}

impl WorkStarted {
    /// Marks the answer's cost as unknown where it is.
    pub(crate) fn with_known_cost(self, answer: Answer) -> Answer {
        match self {
            WorkStarted::No => answer,
            WorkStarted::Maybe => Answer { usage: Usage::unknown(), ..answer },
        }
    }
}

/// Classified response.
#[derive(Debug)]
pub(crate) enum ExchangeOutcome {
    /// The work has ended; the body of the response.
    Result(Vec<u8>),
    /// The worker accepted the work.
    Accepted,
    /// A temporary failure: the request may be repeated.
    Retryable(Box<Answer>, WorkStarted),
    /// A permanent failure.
    Failed(Box<Answer>),
}

impl RemoteExchange<'_> {
    pub(crate) async fn post(
        &self,
        index: RequestIndex<'_>,
        url: &str,
        body: Vec<u8>,
        patience: Duration,
    ) -> ExchangeOutcome {
        let request = Request::post(url, body, patience, CALLBACK_BYTES_MAX);
        let json = HeaderValue::from_static("application/json");
        let request = request.header(CONTENT_TYPE, json.clone()).header(ACCEPT, json);
        let Some(request) = self.with_key(request) else {
            let message = format!("the key for {} has characters that cannot be sent", self.peer);
            return ExchangeOutcome::Failed(Box::new(Answer::failed(CallErrorCode::Auth, message)));
        };
        let reply = match self.wire.open(index, &request).await {
            Ok(reply) => reply,
            Err(error) => return no_reply(&peer_at(self.peer, url), &error),
        };
        let status = reply.status();
        let headers = reply.headers().clone();
        match read(reply).await {
            Ok(bytes) => self.classify(url, status, &headers, bytes),
            // Status 202 is enough, even if the body cannot be read.
            Err(_) if status == 202 => ExchangeOutcome::Accepted,
            Err(OutboundError::TooLong(most)) => {
                let who = peer_at(self.peer, url);
                let message = format!("{who} answered with more than {most} bytes");
                let answer = Answer::failed(CallErrorCode::ProviderError, message);
                ExchangeOutcome::Failed(Box::new(WorkStarted::Maybe.with_known_cost(answer)))
            }
            Err(error) => {
                retryable(format!("{} {error}", peer_at(self.peer, url)), WorkStarted::Maybe)
            }
        }
    }

    /// Reads a resource; `None` on any failure.
    pub(crate) async fn get(
        &self,
        index: RequestIndex<'_>,
        url: &str,
        patience: Duration,
        bytes_max: usize,
    ) -> Option<Vec<u8>> {
        let reply = self.open(index, url, patience, bytes_max).await?;
        read(reply).await.ok()
    }

    /// Opens a response as a stream; `None` on any failure.
    pub(crate) async fn open(
        &self,
        index: RequestIndex<'_>,
        url: &str,
        patience: Duration,
        bytes_max: usize,
    ) -> Option<Box<dyn Incoming>> {
        let request = Request {
            method: Method::GET,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            body: Vec::new(),
            patience,
            answer_bytes_max: bytes_max,
            redirects: Redirects::Keep,
        };
        let reply = self.wire.open(index, &self.with_key(request)?).await.ok()?;
        (reply.status() == 200).then_some(reply)
    }

    fn with_key(&self, request: Request) -> Option<Request> {
        let Some(key) = self.key else { return Some(request) };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        Some(request.header(AUTHORIZATION, value))
    }

    fn classify(
        &self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        bytes: Vec<u8>,
    ) -> ExchangeOutcome {
        let code = match status {
            202 => return ExchangeOutcome::Accepted,
            200..300 => return ExchangeOutcome::Result(bytes),
            500.. => CallErrorCode::ProviderError,
            401 | 403 => CallErrorCode::Auth,
            429 => CallErrorCode::RateLimit,
            400..500 => CallErrorCode::InvalidRequest,
            _ => CallErrorCode::ProviderError,
        };
        let retry_after_ms = retry_after_ms(headers).filter(|_| status == 429);
        let error =
            CallError { code, message: self.error_message(url, status, &bytes), retry_after_ms };
        let text = self.error_body(&bytes);
        let answer = Box::new(Answer { error: Some(error), text, ..Answer::default() });
        if status >= 500 {
            return ExchangeOutcome::Retryable(answer, WorkStarted::Maybe);
        }
        ExchangeOutcome::Failed(answer)
    }

    /// Body of an error response for the record; `None` if it is empty or might contain the
    /// key.
    fn error_body(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(REFUSAL_BYTES_MAX)]);
        let scrub = Scrub::new(self.key).ok()?;
        Some(scrub.text(&text).into_owned()).filter(|text| !text.is_empty())
    }

    /// Error message of a response, with its `title` or `error`, redacted.
    fn error_message(&self, url: &str, status: u16, bytes: &[u8]) -> String {
        let response: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let title = response["title"].as_str().or(response["error"].as_str()).unwrap_or_default();
        let title = match Scrub::new(self.key) {
            Ok(scrub) => scrub.text(title).into_owned(),
            Err(_) => String::new(),
        };
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        let title = &title[..title.floor_char_boundary(TITLE_BYTES_MAX)];
        let colon = if title.is_empty() { "" } else { ": " };
        format!("{} answered {status}{colon}{title}", peer_at(self.peer, url))
    }
}

fn no_reply(who: &str, error: &OutboundError) -> ExchangeOutcome {
    let message = format!("{who} {error}");
    match error {
        OutboundError::Refused(_) => {
            let answer = Answer::failed(CallErrorCode::InvalidRequest, message);
            ExchangeOutcome::Failed(Box::new(answer))
        }
        OutboundError::Unreachable(_) => retryable(message, WorkStarted::No),
        OutboundError::Late | OutboundError::Broken | OutboundError::TooLong(_) => {
            retryable(message, WorkStarted::Maybe)
        }
    }
}

fn retryable(message: String, started: WorkStarted) -> ExchangeOutcome {
    ExchangeOutcome::Retryable(
        Box::new(Answer::failed(CallErrorCode::ProviderError, message)),
        started,
    )
}

async fn read(mut reply: Box<dyn Incoming>) -> Result<Vec<u8>, OutboundError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The `Retry-After` header, if it is in seconds.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    seconds.checked_mul(1000)
}
