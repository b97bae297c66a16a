//! Connection to a remote tool server: streamable HTTP.
//!
//! Every message is a POST. The answer comes as JSON, or as an event of a stream. A server that
//! has lost our session answers 404, and the session is initialised again.

use super::error::McpError;
use super::message::{self, Message};
use super::sse::EventParser;
use crate::limits::{MCP_CALLS_MAX, MCP_MESSAGE_BYTES_MAX, MCP_NOTE_MS};
use crate::outbound::Request;
use crate::outbound::error::{OutboundError, origin};
use crate::secret::keyring::NamedSecret;
use crate::wire::{Incoming, RequestIndex, Wire};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Address of a remote tool server, as the operator configures it.
#[derive(Debug, Clone)]
pub struct McpEndpoint {
    /// URL of the MCP endpoint.
    pub url: String,
    /// Key that Sluice sends to the server.
    pub key: Option<NamedSecret>,
    /// Sends the requests.
    pub wire: Arc<dyn Wire>,
}

/// Connection to a remote server.
#[derive(Debug)]
pub(super) struct HttpConnection {
    address: McpEndpoint,
    /// Session id that the server assigned.
    session: Mutex<Option<HeaderValue>>,
    version: Mutex<Option<&'static str>>,
    last: AtomicU64,
    changed: AtomicBool,
    calls: Semaphore,
}

impl HttpConnection {
    pub(super) fn new(address: &McpEndpoint) -> Arc<HttpConnection> {
        Arc::new(HttpConnection {
            address: address.clone(),
            session: Mutex::default(),
            version: Mutex::default(),
            last: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            calls: Semaphore::new(MCP_CALLS_MAX),
        })
    }

    /// Sets the negotiated protocol version, which every further request carries.
    pub(super) fn set_version(&self, version: &'static str) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }

    /// Whether the tool list has changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn request(
        self: &Arc<HttpConnection>,
        method: &str,
        params: &Value,
        patience: Duration,
        index: RequestIndex<'_>,
    ) -> Result<Value, McpError> {
        let _turn = self.calls.try_acquire().map_err(|_| McpError::Busy(MCP_CALLS_MAX))?;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut guard =
            HttpCancelGuard { link: (method != "initialize").then(|| Arc::clone(self)), id };
        let asked = async {
            let body = message::request(id, method, params);
            let mut incoming = self.post(body, patience, index).await?;
            self.check_status(incoming.as_ref())?;
            if method == "initialize" {
                let given = incoming.headers().get(SESSION).cloned();
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = given;
            }
            self.read_answer(id, incoming.as_mut()).await
        };
        let late = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let outcome = tokio::time::timeout(patience, asked).await;
        let outcome = outcome.unwrap_or(Err(McpError::Late(late)));
        if !matches!(outcome, Err(McpError::Late(_))) {
            guard.link = None;
        }
        outcome
    }

    /// Sends a notification or a reply.
    pub(super) async fn send(&self, text: String) {
        // If the server is unreachable, the next request gets the error.
        let _ = self
            .post(text, Duration::from_millis(MCP_NOTE_MS), RequestIndex::OUTSIDE_DISPATCH)
            .await;
    }

    async fn post(
        &self,
        body: String,
        patience: Duration,
        index: RequestIndex<'_>,
    ) -> Result<Box<dyn Incoming>, McpError> {
        let McpEndpoint { url, wire, .. } = &self.address;
        let mut request = Request::post(url, body.into_bytes(), patience, MCP_MESSAGE_BYTES_MAX);
        request.headers = self.headers()?;
        let opened = wire.open(index, &request).await;
        opened.map_err(|error| match origin(url) {
            Some(origin) => McpError::Lost(format!("at {origin} {error}")),
            None => lost(&error),
        })
    }

    fn headers(&self) -> Result<HeaderMap, McpError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        headers.extend(session.map(|session| (SESSION, session)));
        let version = *self.version.lock().unwrap_or_else(PoisonError::into_inner);
        headers.extend(version.map(|version| (VERSION, HeaderValue::from_static(version))));
        if let Some(key) = &self.address.key {
            let key = key.read_for(&self.address.url);
            let key = key.map_err(|error| McpError::Lost(error.to_string()))?;
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| {
                McpError::Lost("has a key with characters that cannot be sent".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// Checks the HTTP status.
    fn check_status(&self, incoming: &dyn Incoming) -> Result<(), McpError> {
        let known = || self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        match incoming.status() {
            200 => Ok(()),
            404 if known() => Err(McpError::Unsent("has lost the session".to_owned())),
            401 | 403 => Err(McpError::Refused("the key was not accepted".to_owned())),
            status => Err(McpError::Lost(format!("answered {status}"))),
        }
    }

    /// Reads the response until it contains the answer.
    async fn read_answer(&self, id: u64, incoming: &mut dyn Incoming) -> Result<Value, McpError> {
        let kind = incoming.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        let stream = kind.eq_ignore_ascii_case("text/event-stream");
        if !stream && !kind.eq_ignore_ascii_case("application/json") {
            let kind = message::brief(kind);
            return Err(McpError::Lost(format!(
                "answered with content type `{kind}`, expected `application/json` or `text/event-stream`"
            )));
        }
        let (mut events, mut whole) = (EventParser::default(), Vec::new());
        while let Some(part) = incoming.chunk().await.map_err(|error| lost(&error))? {
            if !stream {
                whole.extend_from_slice(&part);
                continue;
            }
            let ended = events.push(&part);
            for event in ended.map_err(|_| McpError::Lost("sent too long an event".to_owned()))? {
                if let Some(answer) = self.process(id, &event).await {
                    return answer;
                }
            }
        }
        let answer = if stream { None } else { self.process(id, &whole).await };
        answer.unwrap_or_else(|| Err(McpError::Lost("ended without an answer".to_owned())))
    }

    /// Processes messages of the server; returns the answer if it is among them.
    async fn process(&self, id: u64, text: &[u8]) -> Option<Result<Value, McpError>> {
        let mut answer = None;
        for received in message::read(text) {
            match received {
                Message::Answer { id: of, outcome } if of == id => {
                    answer = Some(outcome.map_err(McpError::Refused));
                }
                Message::Answer { .. } => {}
                Message::Request { id, method } => self.send(message::reply(&id, &method)).await,
                Message::Notification { method } => {
                    if method == "notifications/tools/list_changed" {
                        self.changed.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
        answer
    }
}

fn lost(error: &OutboundError) -> McpError {
    McpError::Lost(error.to_string())
}

/// Cancels a request when its caller is dropped or timed out.
struct HttpCancelGuard {
    /// `None` once the request is answered.
    link: Option<Arc<HttpConnection>>,
    id: u64,
}

impl Drop for HttpCancelGuard {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let id = self.id;
        // Best effort: without a runtime nothing can be sent.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { link.send(message::cancelled(id)).await });
        }
    }
}
