//! One attempt of a delivery.
//!
//! A receiver accepts an event with a status from 200 to 299. Redirects are not followed: a
//! request that is signed for one URL is not sent to another.

use super::event::{MEDIA_TYPE, body, delivery_id};
use super::task::WebhookTask;
use crate::limits::DELIVERY_ANSWER_BYTES;
use crate::signature::{DELIVERY, SIGNATURE, TIMESTAMP, sign};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use sluice_bridge::outbound::Request;
use sluice_bridge::outbound::error::OutboundError;
use sluice_bridge::secret::Secret;
use sluice_core::journal::envelope::Seen;
use sluice_core::port::deliveries::Delivery;
use sluice_engine::error::LoadError;
use std::sync::Arc;
use std::time::Duration;

enum AttemptResult {
    /// The receiver accepted the event.
    Accepted(u16),
    /// To be retried.
    Failed {
        status: Option<u16>,
        error: String,
        /// The `Retry-After` of the receiver.
        retry_after_ms: u64,
    },
    /// Not to be retried.
    Permanent(String),
}

impl WebhookTask {
    /// Attempts a delivery, and returns it with the result.
    pub(super) async fn attempt(
        &self,
        delivery: Delivery,
        cached: Option<Arc<Seen>>,
        secret: Result<&Secret, String>,
    ) -> Delivery {
        let result = match secret {
            Err(why) => AttemptResult::failed(format!("the signing secret cannot be read: {why}")),
            Ok(secret) => self.send(&delivery, cached, secret).await,
        };
        let at_ms = self.post.clock.now_ms();
        let tries = delivery.tries + 1;
        let done = Delivery { tries, at_ms, next_ms: None, status: None, error: None, ..delivery };
        match result {
            AttemptResult::Accepted(status) => Delivery { status: Some(status), ..done },
            AttemptResult::Permanent(error) => Delivery { error: Some(error), ..done },
            AttemptResult::Failed { status, error, retry_after_ms } => {
                let chance = (self.post.entropy)().bits();
                let wait_ms = self.post.pace.wait_ms(tries, chance, retry_after_ms);
                let next_ms = wait_ms.map(|wait_ms| at_ms + wait_ms);
                Delivery { status, error: Some(error), next_ms, ..done }
            }
        }
    }

    async fn send(
        &self,
        delivery: &Delivery,
        cached: Option<Arc<Seen>>,
        secret: &Secret,
    ) -> AttemptResult {
        let seen = match cached {
            Some(seen) => Some(seen),
            None => match self.read(delivery).await {
                Ok(seen) => seen,
                Err(LoadError::Store(_)) => {
                    return AttemptResult::failed("the event could not be read".to_owned());
                }
                Err(_) => None,
            },
        };
        let Some(Seen::Event(shown)) = seen.as_deref() else {
            return AttemptResult::Permanent("the event is not in the journal any more".to_owned());
        };
        let body = body(self.organisation.name(), delivery.run, shown);
        let request = self.request(delivery, body, secret);
        match self.post.outbound.send(&request).await {
            Ok(answer) if (200..300).contains(&answer.status) => {
                AttemptResult::Accepted(answer.status)
            }
            Ok(answer) => AttemptResult::Failed {
                status: Some(answer.status),
                error: format!("answered {}", answer.status),
                retry_after_ms: retry_after_ms(&answer.headers),
            },
            Err(OutboundError::Refused(refusal)) => AttemptResult::Permanent(refusal.to_string()),
            Err(error) => AttemptResult::failed(error.to_string()),
        }
    }

    fn request(&self, delivery: &Delivery, body: Vec<u8>, secret: &Secret) -> Request {
        let now = (self.post.clock.now_ms() / 1000).to_string();
        let signature = sign(secret, &now, &body);
        let id = delivery_id(&delivery.webhook, delivery.run, delivery.event);
        let header = |text: &str| HeaderValue::from_str(text).expect("the value is plain ASCII");
        let patience = Duration::from_millis(self.post.pace.answer_ms);
        Request::post(&self.webhook.url, body, patience, DELIVERY_ANSWER_BYTES)
            .header(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))
            .header(HeaderName::from_static(TIMESTAMP), header(&now))
            .header(HeaderName::from_static(SIGNATURE), header(&signature))
            .header(HeaderName::from_static(DELIVERY), header(&id))
    }

    /// Reads the event of a delivery from the journal.
    async fn read(&self, delivery: &Delivery) -> Result<Option<Arc<Seen>>, LoadError> {
        let engine = &self.organisation.service().engine;
        let mut reader = engine.reader(delivery.run, delivery.event - 1).await?;
        let page = reader.read().await?;
        Ok(page.into_iter().next().filter(|seen| seen.id() == delivery.event))
    }
}

impl AttemptResult {
    fn failed(error: String) -> AttemptResult {
        AttemptResult::Failed { status: None, error, retry_after_ms: 0 }
    }
}

/// The `Retry-After` header in milliseconds; 0 without one in seconds.
fn retry_after_ms(headers: &HeaderMap) -> u64 {
    let sent = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    sent.and_then(|text| text.trim().parse::<u64>().ok()).map_or(0, |s| s.saturating_mul(1000))
}
