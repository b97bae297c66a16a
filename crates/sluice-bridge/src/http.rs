//! Somebody elsewhere who does work when it is sent as JSON: the dispatch's body
//! goes out, the result comes back as the answer, or later by callback.
//!
//! A request is sent once: unlike a bridge, whoever is there need not know the same
//! dispatch again. Retrying is the core's business.

use crate::directory::{Callbacks, Connection};
use crate::limits::{CONNECT_MS, HEALTH_MS, SYNC_MARGIN_MS};
use crate::outbound::error::OutboundError;
use crate::protocol::dispatch::DispatchBody;
use crate::remote::exchange::{Exchange, Outcome};
use crate::remote::{back, failed, result};
use crate::secret::Secret;
use crate::wire::{Place, Wire};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Execution, Health, Request, Usage,
};
use sluice_core::secret::SecretRef;
use std::sync::Arc;
use std::time::Duration;

/// Sends work somewhere.
#[derive(Debug)]
pub struct HttpAdapter {
    gateway: String,
    url: String,
    key: Option<SecretRef>,
    callbacks: Option<Callbacks>,
    wire: Arc<dyn Wire>,
}

impl HttpAdapter {
    /// To where a connection points; none if it does not say where.
    pub fn new(
        gateway: &str,
        connection: &Connection,
        callbacks: Option<Callbacks>,
        wire: Arc<dyn Wire>,
    ) -> Option<HttpAdapter> {
        let (gateway, url) = (gateway.to_owned(), connection.base_url.clone()?);
        Some(HttpAdapter { gateway, url, key: connection.key.clone(), callbacks, wire })
    }

    async fn send(&self, request: &Request) -> Execution {
        let key = match self.key.as_ref().map(Secret::read).transpose() {
            Ok(key) => key,
            Err(why) => {
                return failed(CallErrorCode::Auth, &format!("the key of the gateway: {why}"));
            }
        };
        let back = back(self.callbacks.as_ref(), request, &self.gateway);
        let body = DispatchBody::new(request, self.provider(), back);
        let body = serde_json::to_vec(&body).expect("a dispatch is plain JSON");
        let exchange = Exchange { wire: &*self.wire, key: key.as_ref(), who: "the gateway" };
        let place = Place { step: &request.step, dispatch_no: request.dispatch_no, number: 1 };
        let patience = request.timeout_ms.saturating_add(SYNC_MARGIN_MS + CONNECT_MS);
        let patience = Duration::from_millis(patience);
        let answer = match exchange.post(place, &self.url, body, patience).await {
            Outcome::Accepted if self.callbacks.is_some() => return Execution::Accepted,
            Outcome::Accepted => {
                let message = "the gateway answers later, and nobody here could be told";
                let answer = Answer::failed(CallErrorCode::ProviderError, message);
                Answer { usage: Usage::unknown(), ..answer }
            }
            Outcome::Result(bytes) => result(&bytes, request),
            Outcome::Again(answer, reached) => reached.paid(*answer),
            Outcome::Failed(answer) => *answer,
        };
        Execution::Done(Box::new(answer))
    }
}

impl Adapter for HttpAdapter {
    fn provider(&self) -> &'static str {
        "http"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: false, tools: false, structured_output: true, cancel: true }
    }

    /// Whether something takes connections there: nobody says what could be asked
    /// without doing work.
    fn health(&self) -> Later<'_, Health> {
        Box::pin(async move {
            let patience = Duration::from_millis(HEALTH_MS);
            match self.wire.reach(&self.url, patience).await {
                Ok(()) => Health::Healthy,
                Err(OutboundError::Refused(_)) => Health::Degraded,
                Err(_) => Health::Offline,
            }
        })
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            tokio::select! {
                biased;
                done = self.send(request) => done,
                // Dropping the request closes the connection.
                () = call.cancelled() => {
                    let answer = Answer::failed(CallErrorCode::Cancelled, "cancelled");
                    Execution::Done(Box::new(Answer { usage: Usage::unknown(), ..answer }))
                }
            }
        })
    }
}
