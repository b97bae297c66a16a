//! A station tells its engine that it is there, and how it is.
//!
//! The id of an instance begins with when it was made, so that the engine can tell
//! a process from its successor: an old one that stops late does not take the new
//! one's place with it.

use super::Station;
use crate::limits::{HEARTBEAT_ANSWER_BYTES_MAX, HEARTBEAT_MS, HEARTBEAT_TRY_MS};
use crate::outbound::{Outbound, Request};
use crate::protocol::GATEWAY_TOKEN;
use crate::secret::Secret;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::json;
use sluice_core::port::Entropy;
use sluice_core::port::adapter::Health;
use std::sync::Arc;
use std::time::Duration;

/// Where a station is registered, and as what.
#[derive(Debug)]
pub struct Registration {
    /// The server.
    pub server: Url,
    /// The gateway.
    pub gateway: String,
    /// The gateway's token.
    pub token: Secret,
    /// This life of the station.
    pub instance_id: String,
    /// How often it says that it is there.
    pub every: Duration,
    /// Carries it.
    pub outbound: Arc<Outbound>,
}

/// A new id of an instance: later ones are larger.
pub fn instance_id(now_ms: u64, entropy: &mut dyn Entropy) -> String {
    format!("brg_{now_ms:012x}{:016x}", entropy.bits())
}

/// How often a station says that it is there.
pub const EVERY: Duration = Duration::from_millis(HEARTBEAT_MS);

impl Registration {
    /// Says how the station is, again and again, until it is stopped.
    pub async fn keep(&self, station: &Station) {
        let mut trouble = None;
        loop {
            let said = self.say(station.health().await).await;
            // Told once for each trouble, not at every beat.
            if let Err(why) = &said
                && trouble.as_ref() != Some(why)
            {
                tracing::warn!(why, "the server does not take the heartbeat");
            }
            trouble = said.err();
            tokio::select! {
                () = station.0.stop.cancelled() => return,
                () = tokio::time::sleep(self.every) => {}
            }
        }
    }

    /// Says that the station is gone. Best effort: the server finds out by itself.
    pub async fn leave(&self) {
        if let Err(why) = self.say(Health::Offline).await {
            tracing::warn!(why, "the server was not told that this bridge stops");
        }
    }

    async fn say(&self, health: Health) -> Result<(), String> {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .map_err(|()| "the server's address is none".to_owned())?
            .pop_if_empty()
            .extend(["api", "v1", "gateways", &self.gateway, "heartbeat"]);
        let body = json!({"status": health, "instance_id": self.instance_id}).to_string();
        let patience = Duration::from_millis(HEARTBEAT_TRY_MS);
        let body = body.into_bytes();
        let mut token = HeaderValue::from_str(self.token.expose())
            .map_err(|_| "the token has characters that cannot be sent".to_owned())?;
        token.set_sensitive(true);
        let request = Request::post(url.as_str(), body, patience, HEARTBEAT_ANSWER_BYTES_MAX)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(HeaderName::from_static(GATEWAY_TOKEN), token);
        let answer = self.outbound.send(&request).await;
        match answer.map_err(|error| format!("the server {error}"))?.status {
            200..300 => Ok(()),
            status => Err(format!("the server answered {status}")),
        }
    }
}
