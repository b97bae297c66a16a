//! One HTTP request to a remote worker, and the classification of its response.

use crate::limits::{CALLBACK_BYTES_MAX, REFUSAL_BYTES_MAX, TITLE_BYTES_MAX};
use crate::outbound::error::{OutboundError, asked_at};
use crate::outbound::{Redirects, Request};
use crate::secret::Secret;
use crate::secret::scrub::Scrub;
use crate::wire::{Incoming, Place, Wire};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use sluice_core::port::adapter::{Answer, CallError, CallErrorCode, Usage};
use std::time::Duration;

/// Sends requests to one worker.
pub(crate) struct Exchange<'a> {
    pub(crate) wire: &'a dyn Wire,
    pub(crate) key: Option<&'a Secret>,
    /// Name of the worker in error messages, which also show its origin.
    pub(crate) who: &'a str,
}

/// Whether the worker may have started to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    No,
    /// Unknown, and so is the cost.
    Maybe,
}

impl Reached {
    /// Marks the answer's cost as unknown where it is.
    pub(crate) fn paid(self, answer: Answer) -> Answer {
        match self {
            Reached::No => answer,
            Reached::Maybe => Answer { usage: Usage::unknown(), ..answer },
        }
    }
}

/// Classified response.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The work has ended; the body of the response.
    Result(Vec<u8>),
    /// The worker accepted the work.
    Accepted,
    /// A temporary failure: the request may be repeated.
    Again(Box<Answer>, Reached),
    /// A permanent failure.
    Failed(Box<Answer>),
}

impl Exchange<'_> {
    pub(crate) async fn post(
        &self,
        place: Place<'_>,
        url: &str,
        body: Vec<u8>,
        patience: Duration,
    ) -> Outcome {
        let request = Request::post(url, body, patience, CALLBACK_BYTES_MAX);
        let json = HeaderValue::from_static("application/json");
        let request = request.header(CONTENT_TYPE, json.clone()).header(ACCEPT, json);
        let Some(request) = self.shown(request) else {
            let message = format!("the key for {} has characters that cannot be sent", self.who);
            return Outcome::Failed(Box::new(Answer::failed(CallErrorCode::Auth, message)));
        };
        let reply = match self.wire.open(place, &request).await {
            Ok(reply) => reply,
            Err(error) => return no_reply(&asked_at(self.who, url), &error),
        };
        let status = reply.status();
        let headers = reply.headers().clone();
        match read(reply).await {
            Ok(bytes) => self.judged(url, status, &headers, bytes),
            // Status 202 is enough, even if the body cannot be read.
            Err(_) if status == 202 => Outcome::Accepted,
            Err(OutboundError::TooLong(most)) => {
                let who = asked_at(self.who, url);
                let message = format!("{who} answers with more than {most} bytes");
                let answer = Answer::failed(CallErrorCode::ProviderError, message);
                Outcome::Failed(Box::new(Reached::Maybe.paid(answer)))
            }
            Err(error) => again(format!("{} {error}", asked_at(self.who, url)), Reached::Maybe),
        }
    }

    /// Reads a resource; `None` on any failure.
    pub(crate) async fn get(
        &self,
        place: Place<'_>,
        url: &str,
        patience: Duration,
        bytes_max: usize,
    ) -> Option<Vec<u8>> {
        let reply = self.open(place, url, patience, bytes_max).await?;
        read(reply).await.ok()
    }

    /// Opens a response as a stream; `None` on any failure.
    pub(crate) async fn open(
        &self,
        place: Place<'_>,
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
        let reply = self.wire.open(place, &self.shown(request)?).await.ok()?;
        (reply.status() == 200).then_some(reply)
    }

    fn shown(&self, request: Request) -> Option<Request> {
        let Some(key) = self.key else { return Some(request) };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        Some(request.header(AUTHORIZATION, value))
    }

    fn judged(&self, url: &str, status: u16, headers: &HeaderMap, bytes: Vec<u8>) -> Outcome {
        let code = match status {
            202 => return Outcome::Accepted,
            200..300 => return Outcome::Result(bytes),
            500.. => CallErrorCode::ProviderError,
            401 | 403 => CallErrorCode::Auth,
            429 => CallErrorCode::RateLimit,
            400..500 => CallErrorCode::InvalidRequest,
            _ => CallErrorCode::ProviderError,
        };
        let retry_after_ms = retry_after_ms(headers).filter(|_| status == 429);
        let error = CallError { code, message: self.told(url, status, &bytes), retry_after_ms };
        let text = self.body(&bytes);
        let answer = Box::new(Answer { error: Some(error), text, ..Answer::default() });
        if status >= 500 {
            return Outcome::Again(answer, Reached::Maybe);
        }
        Outcome::Failed(answer)
    }

    /// Body of an error response for the record; `None` if it is empty or might contain the
    /// key.
    fn body(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(REFUSAL_BYTES_MAX)]);
        let scrub = Scrub::new(self.key).ok()?;
        Some(scrub.text(&text).into_owned()).filter(|text| !text.is_empty())
    }

    /// Error message of a response, with its `title` or `error`, redacted.
    fn told(&self, url: &str, status: u16, bytes: &[u8]) -> String {
        let said: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let title = said["title"].as_str().or(said["error"].as_str()).unwrap_or_default();
        let title = match Scrub::new(self.key) {
            Ok(scrub) => scrub.text(title).into_owned(),
            Err(_) => String::new(),
        };
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        let title = &title[..title.floor_char_boundary(TITLE_BYTES_MAX)];
        let colon = if title.is_empty() { "" } else { ": " };
        format!("{} answered {status}{colon}{title}", asked_at(self.who, url))
    }
}

fn no_reply(who: &str, error: &OutboundError) -> Outcome {
    let message = format!("{who} {error}");
    match error {
        OutboundError::Refused(_) => {
            let answer = Answer::failed(CallErrorCode::InvalidRequest, message);
            Outcome::Failed(Box::new(answer))
        }
        OutboundError::Unreachable(_) => again(message, Reached::No),
        OutboundError::Late | OutboundError::Broken | OutboundError::TooLong(_) => {
            again(message, Reached::Maybe)
        }
    }
}

fn again(message: String, reached: Reached) -> Outcome {
    Outcome::Again(Box::new(Answer::failed(CallErrorCode::ProviderError, message)), reached)
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
