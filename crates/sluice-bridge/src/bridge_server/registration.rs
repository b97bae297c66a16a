//! Heartbeats of a bridge to its engine, with its health.
//!
//! An instance id begins with its creation time, so that the engine can order a process and its
//! successor: when an old process stops late, it does not unregister the new one.

use super::BridgeServer;
use crate::limits::{HEARTBEAT_ANSWER_BYTES_MAX, HEARTBEAT_MS, HEARTBEAT_TRY_MS};
use crate::outbound::{Outbound, Request};
use crate::protocol::GATEWAY_TOKEN;
use crate::secret::Secret;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::json;
use sluice_core::id::Entropy;
use sluice_core::port::adapter::Health;
use std::sync::Arc;
use std::time::Duration;

/// How a bridge registers with its engine.
#[derive(Debug)]
pub struct Registration {
    /// Base URL of the server.
    pub server: Url,
    /// Name of the gateway.
    pub gateway: String,
    /// Token of the gateway.
    pub token: Secret,
    /// Id of this process.
    pub instance_id: String,
    /// Interval of heartbeats.
    pub every: Duration,
    /// Sends the heartbeats.
    pub outbound: Arc<Outbound>,
}

/// Returns a new instance id. Later ids are larger.
pub fn instance_id(now_ms: u64, entropy: &mut dyn Entropy) -> String {
    format!("brg_{now_ms:012x}{:016x}", entropy.bits())
}

/// Default interval of heartbeats.
pub const EVERY: Duration = Duration::from_millis(HEARTBEAT_MS);

impl Registration {
    /// Sends heartbeats until the bridge stops.
    pub async fn keep(&self, bridge: &BridgeServer) {
        let mut trouble = None;
        loop {
            let sent = self.send_heartbeat(bridge.health().await).await;
            // Logged once per cause, not at every heartbeat.
            if let Err(why) = &sent
                && trouble.as_ref() != Some(why)
            {
                tracing::warn!(why, "the server rejected the heartbeat");
            }
            trouble = sent.err();
            tokio::select! {
                () = bridge.0.stop.cancelled() => return,
                () = tokio::time::sleep(self.every) => {}
            }
        }
    }

    /// Reports that the bridge goes offline. Best effort: the server also notices missing
    /// heartbeats.
    pub async fn leave(&self) {
        if let Err(why) = self.send_heartbeat(Health::Offline).await {
            tracing::warn!(why, "could not report to the server that this bridge stops");
        }
    }

    async fn send_heartbeat(&self, health: Health) -> Result<(), String> {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .map_err(|()| "the server's address is not a base URL".to_owned())?
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
