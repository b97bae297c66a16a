//! A moderator elsewhere, asked over HTTP.
//!
//! It is sent `{"phase", "run", "step", "text"}` and answers 200 with
//! `{"flagged": true or false}`, and `reason` and `categories` if it likes.
//! Where it is comes from whoever operates the engine, never from a document.
//!
//! INVARIANT: anything but a 200 with such an answer is no clearance: another
//! status, a redirect, a body that is too long or says nothing.

use crate::limits::{MODERATOR_ANSWER_MS, MODERATOR_CONNECT_MS, VERDICT_BYTES_MAX};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde_json::{Map, Value, json};
use sluice_core::port::Later;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use std::time::Duration;

/// An address that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    /// It is none.
    #[error("`{0}` is not an address of a moderator: it begins with `http://` or `https://`")]
    NotOne(String),
    /// No connection can be made here.
    #[error("connections cannot be made here: {0}")]
    NoClient(String),
}

/// Somebody to ask.
#[derive(Debug)]
pub struct HttpModerator {
    client: Client,
    url: Url,
}

impl HttpModerator {
    /// Whether a word is meant as an address, and not as a file.
    pub fn is_address(word: &str) -> bool {
        word.starts_with("http://") || word.starts_with("https://")
    }

    /// Asks at an address.
    pub fn new(address: &str) -> Result<HttpModerator, BadAddress> {
        HttpModerator::patient(address, Duration::from_millis(MODERATOR_ANSWER_MS))
    }

    /// The same, waiting only so long for an answer.
    pub fn patient(address: &str, patience: Duration) -> Result<HttpModerator, BadAddress> {
        let bad = || BadAddress::NotOne(address.to_owned());
        let url = Url::parse(address).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(bad());
        }
        // Whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(MODERATOR_CONNECT_MS).min(patience))
            .timeout(patience)
            .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| BadAddress::NoClient(error.to_string()))?;
        Ok(HttpModerator { client, url })
    }

    async fn ask(&self, subject: &Subject) -> Result<Verdict, String> {
        let question = json!({
            "phase": subject.phase, "run": subject.run.to_string(), "step": subject.step,
            "text": subject.text,
        });
        let request = self.client.post(self.url.clone());
        let request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json");
        let response = request.body(question.to_string()).send().await.map_err(unreachable)?;
        if response.status() != StatusCode::OK {
            return Err(format!("the moderator answered {}", response.status().as_u16()));
        }
        verdict(&body(response).await?)
    }
}

impl Moderator for HttpModerator {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        Box::pin(async move { self.ask(subject).await.unwrap_or_else(Verdict::Unavailable) })
    }
}

/// The address is left out: it may hold a password.
#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
fn unreachable(error: reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "does not answer in time"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "broke off"
    };
    format!("the moderator {what}")
}

async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > VERDICT_BYTES_MAX {
            return Err(format!("the moderator's answer is over {VERDICT_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn verdict(body: &[u8]) -> Result<Verdict, String> {
    let unclear = || "the moderator's answer does not say whether it is flagged".to_owned();
    let answer: Map<String, Value> = serde_json::from_slice(body).map_err(|_| unclear())?;
    match answer.get("flagged") {
        Some(Value::Bool(false)) => Ok(Verdict::Clear),
        Some(Value::Bool(true)) => {
            let mut decision = Map::from_iter([("by".to_owned(), json!("http"))]);
            for name in ["reason", "categories"] {
                let said = answer.get(name).filter(|value| !value.is_null());
                decision.extend(said.map(|value| (name.to_owned(), value.clone())));
            }
            Ok(Verdict::Flagged(Value::Object(decision)))
        }
        _ => Err(unclear()),
    }
}

#[cfg(test)]
mod tests;
