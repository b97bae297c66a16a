//! Traces for OpenTelemetry, sent as OTLP over HTTP, in JSON.
//!
//! Spans are made from what is journalled, when it is durable: a run, each
//! dispatch of a step, the call that it makes. Nothing of an SDK is needed, and
//! docs/decisions/008-otlp.md says why none is used.
//!
//! INVARIANT: a run never waits for a collector. What finds no room in the queue
//! is dropped and counted. INVARIANT: no prompt, output or message is in a span.

mod send;
mod span;
#[cfg(test)]
mod tests;
mod wire;

use crate::limits::SPANS_WAITING_MAX;
use crate::metrics::Metrics;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sluice_engine::observe::{Observer, Turned};
use span::{Span, Spans};
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where spans are sent, and as whose.
#[derive(Debug, Clone)]
pub struct Target {
    url: Url,
    headers: HeaderMap,
    service: String,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// The endpoint is no address.
    #[error("`{0}` is no address that traces can be sent to, such as `http://localhost:4318`")]
    Endpoint(String),
    /// The headers are none.
    #[error("headers for traces are written as `name=value,name=value`")]
    Headers,
}

impl Target {
    /// What `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS` and
    /// `OTEL_SERVICE_NAME` say.
    pub fn new(endpoint: &str, headers: &str, service: Option<&str>) -> Result<Target, BadTarget> {
        let bad = || BadTarget::Endpoint(endpoint.to_owned());
        let mut url = Url::parse(endpoint).map_err(|_| bad())?;
        let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
        url.set_path(&path);
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(bad());
        }
        let mut sent = HeaderMap::new();
        for pair in headers.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(BadTarget::Headers)?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| BadTarget::Headers)?;
            let value = decoded(value.trim()).ok_or(BadTarget::Headers)?;
            let mut value = HeaderValue::from_bytes(&value).map_err(|_| BadTarget::Headers)?;
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        let service = service.filter(|name| !name.is_empty()).unwrap_or("sluice").to_owned();
        Ok(Target { url, headers: sent, service })
    }
}

/// Text with `%` and two digits for what cannot be written plainly.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    Some(bytes)
}

/// What is put into the queue.
enum Message {
    Span(Box<Span>),
    /// Everything before it is to be sent now, and then this is told.
    Flush(oneshot::Sender<()>),
}

/// Makes spans of what engines do, and has them sent.
pub struct Exporter {
    spans: Spans,
    queue: Sender<Message>,
    metrics: Arc<Metrics>,
}

/// The task that sends. Dropping it stops it.
pub struct Sending(JoinHandle<()>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Exporter {
    /// Begins to send.
    pub fn start(target: Target, metrics: Arc<Metrics>) -> (Arc<Exporter>, Sending) {
        let (queue, waiting) = channel(SPANS_WAITING_MAX);
        let task = tokio::spawn(send::send(target, waiting, Arc::clone(&metrics)));
        let exporter = Exporter { spans: Spans::default(), queue, metrics };
        (Arc::new(exporter), Sending(task))
    }

    /// Sends everything that waits, as far as the collector takes it. For the
    /// end of a process.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            // A task that was stopped tells nothing.
            let _ = flushed.await;
        }
    }
}

impl Observer for Exporter {
    fn turned(&self, turned: &Turned<'_>) {
        for span in self.spans.of(turned) {
            if self.queue.try_send(Message::Span(Box::new(span))).is_err() {
                self.metrics.spans_dropped(1);
            }
        }
    }
}
