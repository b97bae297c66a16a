//! A remote moderator over HTTP.
//!
//! The request is `{"phase", "run", "step", "text"}`; the response is 200 with `{"flagged":
//! true or false}` and optionally `reason` and `categories`. The URL comes from the operator,
//! never from a document.
//!
//! INVARIANT: any other response leaves the text uncleared: another status, a redirect, a body
//! that is too long or has no `flagged`.

use crate::limits::{MODERATOR_ANSWER_MS, VERDICT_BYTES_MAX};
use crate::outbound::allow::AllowList;
use crate::outbound::error::{OutboundError, peer_at};
use crate::outbound::{Outbound, Request};
use crate::secret::Secret;
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value, json};
use sluice_core::port::Later;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use std::time::Duration;

/// An invalid moderator URL.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    /// It is not an HTTP URL.
    #[error("moderator URL `{0}` is not valid: expected http:// or https://")]
    NotOne(String),
    /// The outbound guard refuses it.
    #[error("the moderator {0}")]
    Refused(String),
    /// The token is not a valid header value.
    #[error("the moderator's token has characters that cannot be sent")]
    BadToken,
}

/// Client of a remote moderator.
#[derive(Debug)]
pub struct HttpModerator {
    outbound: Outbound,
    url: String,
    patience: Duration,
    authorization: Option<HeaderValue>,
}

impl HttpModerator {
    /// Whether a setting is a URL, and not a file.
    pub fn is_address(word: &str) -> bool {
        word.starts_with("http://") || word.starts_with("https://")
    }

    /// A moderator at a URL. The operator configured it, so it is allowed.
    pub fn new(address: &str) -> Result<HttpModerator, BadAddress> {
        HttpModerator::with_timeout(address, Duration::from_millis(MODERATOR_ANSWER_MS))
    }

    /// A moderator with another time limit.
    pub fn with_timeout(address: &str, patience: Duration) -> Result<HttpModerator, BadAddress> {
        let bad = || BadAddress::NotOne(address.to_owned());
        let url = Url::parse(address).map_err(|_| bad())?;
        if !HttpModerator::is_address(url.as_str()) || !url.has_host() {
            return Err(bad());
        }
        let outbound = Outbound::new(AllowList::none().and(&url));
        outbound.check(address).map_err(|refusal| BadAddress::Refused(refusal.to_string()))?;
        Ok(HttpModerator { outbound, url: address.to_owned(), patience, authorization: None })
    }

    /// Adds the token that authenticates the engine.
    pub fn with_token(mut self, token: &Secret) -> Result<HttpModerator, BadAddress> {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
        let mut value = value.map_err(|_| BadAddress::BadToken)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    async fn request_verdict(&self, subject: &Subject) -> Result<Verdict, String> {
        let body = json!({
            "phase": subject.phase, "run": subject.run.to_string(), "step": subject.step,
            "text": subject.text,
        });
        let json = HeaderValue::from_static("application/json");
        let body = body.to_string().into_bytes();
        let mut request = Request::post(&self.url, body, self.patience, VERDICT_BYTES_MAX)
            .header(CONTENT_TYPE, json.clone())
            .header(ACCEPT, json);
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        let answer = self.outbound.send(&request).await.map_err(|error| match error {
            OutboundError::TooLong(most) => format!("the moderator's answer exceeds {most} bytes"),
            other => format!("{} {other}", peer_at("the moderator", &self.url)),
        })?;
        if answer.status != 200 {
            return Err(format!("the moderator answered {}", answer.status));
        }
        verdict(&answer.body)
    }
}

impl Moderator for HttpModerator {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        Box::pin(
            async move { self.request_verdict(subject).await.unwrap_or_else(Verdict::Unavailable) },
        )
    }
}

fn verdict(body: &[u8]) -> Result<Verdict, String> {
    let unclear = || "the moderator's answer has no boolean `flagged`".to_owned();
    let answer: Map<String, Value> = serde_json::from_slice(body).map_err(|_| unclear())?;
    match answer.get("flagged") {
        Some(Value::Bool(false)) => Ok(Verdict::Clear),
        Some(Value::Bool(true)) => {
            let mut decision = Map::from_iter([("by".to_owned(), json!("http"))]);
            for name in ["reason", "categories"] {
                let field = answer.get(name).filter(|value| !value.is_null());
                decision.extend(field.map(|value| (name.to_owned(), value.clone())));
            }
            Ok(Verdict::Flagged(Value::Object(decision)))
        }
        _ => Err(unclear()),
    }
}

#[cfg(test)]
mod tests;
