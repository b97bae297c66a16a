//! Requests of the suite to the gateway.

use super::super::adapter::request;
use super::super::{CaseStop, failed};
use super::CaseContext;
use crate::limits::{CALLBACK_BYTES_MAX, CONFORMANCE_ANSWER_MS, CONFORMANCE_CALL_MS};
use crate::outbound::Request as Sent;
use crate::protocol::DISPATCH_PATH;
use crate::protocol::dispatch::{DispatchBody, ReturnAddress};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use sluice_core::port::adapter::Request;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct GatewayResponse {
    pub(super) status: u16,
    pub(super) bytes: Vec<u8>,
    pub(super) body: Value,
}

/// Credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    /// The gateway's key.
    GatewayKey,
    /// No key.
    Missing,
    /// A wrong key.
    Wrong,
}

/// Which instruction to dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    Quick,
    Slow,
}

impl CaseContext<'_> {
    /// A dispatch of a new run.
    pub(super) fn dispatch(&self, pace: Workload) -> DispatchBody {
        self.dispatch_for(pace, CONFORMANCE_CALL_MS)
    }

    pub(super) fn dispatch_for(&self, pace: Workload, timeout_ms: u64) -> DispatchBody {
        let (step, command) = match pace {
            Workload::Quick => ("quick", &self.target.quick),
            Workload::Slow => ("slow", &self.target.slow),
        };
        let (run, step) = (self.run(), step.to_owned());
        let idempotency_key = format!("{run}/{step}/1");
        let request = Request { run, step, idempotency_key, timeout_ms, ..request(command) };
        let back = ReturnAddress {
            callback_url: Some(self.receiver.url()),
            dispatch_token: Some(token(&request)),
            tool_url: None,
            parts_url: None,
        };
        DispatchBody::new(&request, &self.target.provider, back)
    }

    /// Sends a dispatch, which the gateway must accept.
    pub(super) async fn submit(&self, body: &DispatchBody) -> Result<GatewayResponse, CaseStop> {
        self.submit_json(&json(body)).await
    }

    pub(super) async fn submit_json(&self, body: &Value) -> Result<GatewayResponse, CaseStop> {
        let answered = self.post(DISPATCH_PATH, body).await?;
        match answered.status {
            202 => Ok(answered),
            status => {
                let title = answered.body["title"].as_str().unwrap_or("no reason given");
                failed(format!("a dispatch got status {status} instead of 202: {title}"))
            }
        }
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<GatewayResponse, CaseStop> {
        self.send(Method::POST, path, Credentials::GatewayKey, body.to_string().into_bytes()).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        who: Credentials,
        body: Vec<u8>,
    ) -> Result<GatewayResponse, CaseStop> {
        let url = format!("{}{path}", self.target.url.trim_end_matches('/'));
        let patience = Duration::from_millis(CONFORMANCE_ANSWER_MS);
        let mut request = Sent::post(&url, body, patience, CALLBACK_BYTES_MAX);
        request.method = method;
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let shown = match who {
            Credentials::GatewayKey => Some(self.target.key.expose()),
            Credentials::Missing => None,
            Credentials::Wrong => Some("a-wrong-key"),
        };
        if let Some(key) = shown {
            let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {key}")) else {
                return failed("the key cannot be sent in a header");
            };
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        match self.out.send(&request).await {
            Ok(answer) => {
                let body = serde_json::from_slice(&answer.body).unwrap_or_default();
                Ok(GatewayResponse { status: answer.status, bytes: answer.body, body })
            }
            Err(error) => failed(format!("`{path}` failed: the gateway {error}")),
        }
    }
}

/// The token of a dispatch, derived from the run.
fn token(request: &Request) -> String {
    format!("sld_conformance-{}", request.run)
}

pub(super) fn json(body: &DispatchBody) -> Value {
    serde_json::to_value(body).expect("a dispatch is plain JSON")
}
