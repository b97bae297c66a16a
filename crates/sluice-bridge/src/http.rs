//! Adapter for remote HTTP endpoints: the dispatch's body is sent as JSON, and the result comes
//! back as the response, or later by callback.
//!
//! A request is sent once: unlike a bridge, an endpoint need not recognise a repeated dispatch.
//! The core decides about retries.

use crate::directory::{Callbacks, Connection};
use crate::limits::{CONNECT_MS, HEALTH_MS, SYNC_MARGIN_MS};
use crate::outbound::error::OutboundError;
use crate::protocol::dispatch::DispatchBody;
use crate::remote::exchange::{ExchangeOutcome, RemoteExchange};
use crate::remote::{failed, parse_result, return_address};
use crate::secret::keyring::NamedSecret;
use crate::wire::{RequestIndex, Wire};
use reqwest::Url;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Execution, Health, Request, Usage,
};
use std::sync::Arc;
use std::time::Duration;

/// Sends dispatches to an HTTP endpoint.
#[derive(Debug)]
pub struct HttpAdapter {
    gateway: String,
    destination: Destination,
    key: Option<NamedSecret>,
    callbacks: Option<Callbacks>,
    wire: Arc<dyn Wire>,
}

/// Destination of the requests.
#[derive(Debug)]
enum Destination {
    /// URL of a gateway.
    Gateway(String),
    /// URL in the first line of the step's command.
    Command,
}

impl HttpAdapter {
    /// Sends each step to the URL in the first line of its command. The following lines are
    /// the instruction. The result must be the response: without a gateway a callback could
    /// not be authenticated.
    pub(crate) fn by_command(wire: Arc<dyn Wire>) -> HttpAdapter {
        let (gateway, destination) = (String::new(), Destination::Command);
        HttpAdapter { gateway, destination, key: None, callbacks: None, wire }
    }

    /// Sends to the connection's base URL; `None` if it has none.
    pub fn new(
        gateway: &str,
        connection: &Connection,
        callbacks: Option<Callbacks>,
        wire: Arc<dyn Wire>,
    ) -> Option<HttpAdapter> {
        let (gateway, destination) =
            (gateway.to_owned(), Destination::Gateway(connection.base_url.clone()?));
        Some(HttpAdapter { gateway, destination, key: connection.key.clone(), callbacks, wire })
    }

    async fn send(&self, request: &Request) -> Execution {
        match &self.destination {
            Destination::Gateway(url) => self.send_to(url, "the gateway", request).await,
            Destination::Command => match split_command(request) {
                Ok((url, request)) => self.send_to(url.as_str(), "the server", &request).await,
                Err(message) => failed(CallErrorCode::InvalidRequest, &message),
            },
        }
    }

    async fn send_to(&self, url: &str, who: &str, request: &Request) -> Execution {
        let key = match self.key.as_ref().map(|key| key.read_for(url)).transpose() {
            Ok(key) => key,
            Err(why) => {
                return failed(CallErrorCode::Auth, &format!("the key of the gateway: {why}"));
            }
        };
        let return_to = return_address(self.callbacks.as_ref(), request, &self.gateway);
        let body = DispatchBody::new(request, self.provider(), return_to);
        let body = serde_json::to_vec(&body).expect("a dispatch is plain JSON");
        let exchange = RemoteExchange { wire: &*self.wire, key: key.as_ref(), peer: who };
        let index =
            RequestIndex { step: &request.step, dispatch_no: request.dispatch_no, number: 1 };
        let patience = request.timeout_ms.saturating_add(SYNC_MARGIN_MS + CONNECT_MS);
        let patience = Duration::from_millis(patience);
        let answer = match exchange.post(index, url, body, patience).await {
            ExchangeOutcome::Accepted if self.callbacks.is_some() => return Execution::Accepted,
            ExchangeOutcome::Accepted => {
                let message = format!(
                    "{who} answered 202, but this step has no callback address: answer with 200 \
                     and the result, or register it as a gateway with provider `http` at a server"
                );
                let answer = Answer::failed(CallErrorCode::ProviderError, message);
                Answer { usage: Usage::unknown(), ..answer }
            }
            ExchangeOutcome::Result(bytes) => parse_result(&bytes, request),
            ExchangeOutcome::Retryable(answer, started) => started.with_known_cost(*answer),
            ExchangeOutcome::Failed(answer) => *answer,
        };
        Execution::Done(Box::new(answer))
    }
}

/// Splits a command into the URL in its first line and the instruction in the following ones.
fn split_command(request: &Request) -> Result<(Url, Request), String> {
    let (first, rest) = request.message.split_once('\n').unwrap_or((&request.message, ""));
    let first = first.trim();
    let invalid = |why: &str| {
        // Text before an `@` may be a password.
        let shown = first.rsplit_once('@').map_or(first, |(_, host)| host);
        let shown = sluice_core::visible::brief(shown);
        format!(
            "the first line of an `http` step's command is the URL that the step is sent to; \
             `{shown}` {why}"
        )
    };
    let url = Url::parse(first).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("does not begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The URL is not shown, because it contains the password.
        let message = "the URL of an `http` step must not hold a user or password; \
                       register a gateway with provider `http` and a `key`";
        return Err(message.to_owned());
    }
    Ok((url, Request { message: rest.to_owned(), ..request.clone() }))
}

impl Adapter for HttpAdapter {
    fn provider(&self) -> &'static str {
        "http"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: false, tools: false, structured_output: true, cancel: true }
    }

    /// Only checks that the server accepts connections: every request would start work.
    fn health(&self) -> Later<'_, Health> {
        Box::pin(async move {
            // Each step has its own URL: there is nothing to check in advance.
            let Destination::Gateway(url) = &self.destination else { return Health::Healthy };
            let patience = Duration::from_millis(HEALTH_MS);
            match self.wire.reach(url, patience).await {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_call::{FakeCall, answer, error, request};
    use crate::outbound::Outbound;
    use crate::outbound::allow::AllowList;

    #[test]
    fn the_first_line_is_the_url_and_the_rest_the_instruction() {
        let (url, sent) = split_command(&request(
            "a",
            " https://x.example/do?a=1 \nReview this.\n\nAll of it.\n",
        ))
        .unwrap();
        assert_eq!(url.as_str(), "https://x.example/do?a=1");
        assert_eq!(sent.message, "Review this.\n\nAll of it.\n");
        let (_, alone) = split_command(&request("a", "http://x.example")).unwrap();
        assert_eq!(alone.message, "");
    }

    #[tokio::test]
    async fn a_url_that_is_not_public_is_refused_before_anything_is_sent() {
        let wire = Arc::new(Outbound::new(AllowList::default()));
        let adapter = HttpAdapter::by_command(wire);
        for (command, why) in [
            ("", "is not a URL"),
            ("Review this.", "is not a URL"),
            ("GET https://x.example/", "is not a URL"),
            ("file:///etc/passwd", "does not begin with http:// or https://"),
            ("https://me:hunter2@x.example:port/", "is not a URL"),
            ("https://me:hunter2@x.example/", "must not hold a user or password"),
            ("http://127.0.0.1:1/", "loopback"),
            ("http://169.254.169.254/latest/meta-data", "cloud metadata"),
            ("http://10.0.0.1/", "private"),
        ] {
            let answered = answer(&adapter, &request("a", command), &FakeCall::default()).await;
            let (code, message) = error(&answered);
            assert_eq!(code, CallErrorCode::InvalidRequest, "{command}: {message}");
            assert!(message.contains(why), "{command}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
