//! Collects queued spans into batches, and sends them.

use super::span::Span;
use super::{ExportTarget, Message, wire};
use crate::limits::{SPANS_ANSWER_BYTES, SPANS_AT_ONCE, SPANS_SEND_MS, SPANS_WAIT_MS};
use crate::metrics::Metrics;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::outbound::{Outbound, Request};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Number of attempts for a batch, and the delay between them.
const TRIES: u32 = 3;
const AGAIN: Duration = Duration::from_millis(500);

/// Sends spans until the queue is closed.
pub(super) async fn send(
    target: ExportTarget,
    mut queue: Receiver<Message>,
    metrics: Arc<Metrics>,
) {
    // The operator chose this URL, so a local address is allowed.
    let outbound = Outbound::new(AllowList::none().and(&target.url));
    while let Some((spans, flushed)) = gather(&mut queue).await {
        if !spans.is_empty() {
            if offer(&outbound, &target, &spans).await {
                metrics.spans_sent(spans.len());
            } else {
                metrics.spans_dropped(spans.len());
            }
        }
        for waiter in flushed {
            // The caller of `flush` may have stopped waiting.
            let _ = waiter.send(());
        }
    }
}

/// A batch of spans, and the callers of `flush` that wait for it. `None` when the queue is
/// closed.
async fn gather(queue: &mut Receiver<Message>) -> Option<(Vec<Span>, Vec<oneshot::Sender<()>>)> {
    let mut spans = Vec::new();
    let mut next = Some(queue.recv().await?);
    let until = Instant::now() + Duration::from_millis(SPANS_WAIT_MS);
    loop {
        match next {
            Some(Message::Span(span)) => spans.push(*span),
            Some(Message::Flush(waiter)) => return Some((spans, vec![waiter])),
            None => return Some((spans, Vec::new())),
        }
        if spans.len() >= SPANS_AT_ONCE {
            return Some((spans, Vec::new()));
        }
        next = timeout_at(until, queue.recv()).await.unwrap_or_default();
    }
}

/// Whether the collector accepted the spans. Temporary errors are retried.
async fn offer(outbound: &Outbound, target: &ExportTarget, spans: &[Span]) -> bool {
    let patience = Duration::from_millis(SPANS_SEND_MS);
    let body = wire::request(&target.service, spans);
    let mut request = Request::post(target.url.as_str(), body, patience, SPANS_ANSWER_BYTES);
    request.headers = target.headers.clone();
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for attempt in 1..=TRIES {
        match outbound.send(&request).await {
            Ok(answer) if (200..300).contains(&answer.status) => return true,
            Ok(answer) if !matches!(answer.status, 429 | 502..=504) => {
                tracing::warn!(status = answer.status, "a collector refused spans");
                return false;
            }
            Ok(answer) => tracing::debug!(status = answer.status, "a collector is busy"),
            Err(error) => tracing::debug!(%error, "a collector cannot be reached"),
        }
        if attempt < TRIES {
            tokio::time::sleep(AGAIN * attempt).await;
        }
    }
    tracing::warn!(spans = spans.len(), "spans were dropped after the last attempt");
    false
}
