//! One try of one delivery.
//!
//! A receiver takes an event by answering with a status from 200 to 299. Redirects are
//! not followed: what is signed for one place is not sent to another.

use super::event::{MEDIA_TYPE, body, delivery_id};
use super::follow::Follow;
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

/// What came of a try.
enum Came {
    /// The receiver has it.
    Taken(u16),
    /// Not this time.
    Failed {
        status: Option<u16>,
        error: String,
        /// How long the receiver wants to be left alone.
        asked_ms: u64,
    },
    /// Never.
    Hopeless(String),
}

impl Follow {
    /// Tries a delivery, and says what became of it.
    pub(super) async fn attempt(
        &self,
        delivery: Delivery,
        at_hand: Option<Arc<Seen>>,
        secret: Result<&Secret, String>,
    ) -> Delivery {
        let came = match secret {
            Err(why) => Came::failed(format!("has no secret: {why}")),
            Ok(secret) => self.tried(&delivery, at_hand, secret).await,
        };
        let at_ms = self.post.clock.now_ms();
        let tries = delivery.tries + 1;
        let done = Delivery { tries, at_ms, next_ms: None, status: None, error: None, ..delivery };
        match came {
            Came::Taken(status) => Delivery { status: Some(status), ..done },
            Came::Hopeless(error) => Delivery { error: Some(error), ..done },
            Came::Failed { status, error, asked_ms } => {
                let chance = (self.post.entropy)().bits();
                let wait_ms = self.post.pace.wait_ms(tries, chance, asked_ms);
                let next_ms = wait_ms.map(|wait_ms| at_ms + wait_ms);
                Delivery { status, error: Some(error), next_ms, ..done }
            }
        }
    }

    async fn tried(
        &self,
        delivery: &Delivery,
        at_hand: Option<Arc<Seen>>,
        secret: &Secret,
    ) -> Came {
        let seen = match at_hand {
            Some(seen) => Some(seen),
            None => match self.read(delivery).await {
                Ok(seen) => seen,
                Err(LoadError::Store(_)) => return Came::failed("could not be read".to_owned()),
                Err(_) => None,
            },
        };
        let Some(Seen::Event(shown)) = seen.as_deref() else {
            return Came::Hopeless("is not in the journal any more".to_owned());
        };
        let body = body(self.house.name(), delivery.run, shown);
        let request = self.request(delivery, body, secret);
        match self.post.outbound.send(&request).await {
            Ok(answer) if (200..300).contains(&answer.status) => Came::Taken(answer.status),
            Ok(answer) => Came::Failed {
                status: Some(answer.status),
                error: format!("answered {}", answer.status),
                asked_ms: asked_ms(&answer.headers),
            },
            Err(OutboundError::Refused(refusal)) => Came::Hopeless(refusal.to_string()),
            Err(error) => Came::failed(error.to_string()),
        }
    }

    fn request(&self, delivery: &Delivery, body: Vec<u8>, secret: &Secret) -> Request {
        let now = (self.post.clock.now_ms() / 1000).to_string();
        let signature = sign(secret, &now, &body);
        let id = delivery_id(&delivery.webhook, delivery.run, delivery.event);
        let header = |text: &str| HeaderValue::from_str(text).expect("it is plain ASCII");
        let patience = Duration::from_millis(self.post.pace.answer_ms);
        Request::post(&self.webhook.url, body, patience, DELIVERY_ANSWER_BYTES)
            .header(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))
            .header(HeaderName::from_static(TIMESTAMP), header(&now))
            .header(HeaderName::from_static(SIGNATURE), header(&signature))
            .header(HeaderName::from_static(DELIVERY), header(&id))
    }

    /// The event of a delivery that was noted earlier.
    async fn read(&self, delivery: &Delivery) -> Result<Option<Arc<Seen>>, LoadError> {
        let engine = &self.house.service().engine;
        let mut reader = engine.reader(delivery.run, delivery.event - 1).await?;
        let page = reader.read().await?;
        Ok(page.into_iter().next().filter(|seen| seen.id() == delivery.event))
    }
}

impl Came {
    fn failed(error: String) -> Came {
        Came::Failed { status: None, error, asked_ms: 0 }
    }
}

/// How long a receiver wants to be left alone, where it says so in seconds.
fn asked_ms(headers: &HeaderMap) -> u64 {
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    asked.and_then(|text| text.trim().parse::<u64>().ok()).map_or(0, |s| s.saturating_mul(1000))
}
