//! OpenTelemetry traces, sent as OTLP over HTTP in JSON.
//!
//! Spans are made from journalled events when they are durable: a run, each dispatch of a
//! step, and the call that it makes. No OpenTelemetry SDK is used;
//! docs/decisions/008-otlp.md gives the reasons.
//!
//! INVARIANT: a run never waits for a collector. A span that does not fit into the queue is
//! dropped and counted. INVARIANT: a span contains no prompt, output or message.

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

/// The collector, and the service name of the spans.
#[derive(Debug, Clone)]
pub struct ExportTarget {
    url: Url,
    headers: HeaderMap,
    service: String,
}

/// A setting of the exporter that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// The endpoint is not an HTTP URL.
    #[error("OTLP endpoint `{0}` is not valid: expected a URL such as `http://localhost:4318`")]
    Endpoint(String),
    /// The headers cannot be parsed.
    #[error("OTLP headers are not valid: expected `name=value,name=value`")]
    Headers,
}

impl ExportTarget {
    /// A target from the values of `OTEL_EXPORTER_OTLP_ENDPOINT`,
    /// `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME`.
    pub fn new(
        endpoint: &str,
        headers: &str,
        service: Option<&str>,
    ) -> Result<ExportTarget, BadTarget> {
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
        Ok(ExportTarget { url, headers: sent, service })
    }
}

/// Decodes percent-encoded text.
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

enum Message {
    Span(Box<Span>),
    /// Send everything queued before it, then notify the sender.
    Flush(oneshot::Sender<()>),
}

/// Makes spans from the events of engines, and queues them.
pub struct Exporter {
    spans: Spans,
    queue: Sender<Message>,
    metrics: Arc<Metrics>,
}

/// The task that sends spans. Dropping it stops the task.
pub struct Sending(JoinHandle<()>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Exporter {
    /// Starts the task that sends spans.
    pub fn start(target: ExportTarget, metrics: Arc<Metrics>) -> (Arc<Exporter>, Sending) {
        let (queue, waiting) = channel(SPANS_WAITING_MAX);
        let task = tokio::spawn(send::send(target, waiting, Arc::clone(&metrics)));
        let exporter = Exporter { spans: Spans::default(), queue, metrics };
        (Arc::new(exporter), Sending(task))
    }

    /// Sends all queued spans, as far as the collector accepts them. For the end of a process.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            // A stopped task sends no notification.
            let _ = flushed.await;
        }
    }
}

impl Observer for Exporter {
    fn turned(&self, turned: &Turned<'_>) {
        for span in self.spans.ended(turned) {
            if self.queue.try_send(Message::Span(Box::new(span))).is_err() {
                self.metrics.spans_dropped(1);
            }
        }
    }
}
