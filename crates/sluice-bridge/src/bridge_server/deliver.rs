//! Delivery of results to the engine.
//!
//! A few quick attempts, then a slow schedule, until the engine accepts the result or it
//! expires. A result that the engine rejects for good is logged and stays in the spool.

use super::Inner;
use super::dispatch_call::with_tokens;
use super::outbox;
use super::spool::record::{SpoolRecord, SpoolState};
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_MS, DELIVERY_TRY_MS, HAND_OVER_MS};
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::secret::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Retry schedule of a delivery. The last wait repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySchedule {
    /// Waits before the second, third, … attempt.
    pub waits: Vec<Duration>,
    /// Age at which a result is no longer sent.
    pub expires: Duration,
}

impl Default for DeliverySchedule {
    /// Three quick attempts, then after 5 s, 30 s, and every minute for a day.
    fn default() -> DeliverySchedule {
        let waits = [200, 1_000, 5_000, 30_000, 60_000];
        DeliverySchedule {
            waits: waits.map(Duration::from_millis).to_vec(),
            expires: Duration::from_millis(DELIVERY_MS),
        }
    }
}

impl DeliverySchedule {
    /// Wait after the given number of attempts.
    pub(super) fn wait(&self, attempts: usize) -> Duration {
        let last = self.waits.last().copied().unwrap_or(Duration::from_secs(60));
        self.waits.get(attempts - 1).copied().unwrap_or(last)
    }
}

/// Attempts that keep the result in memory; later ones read it from the spool.
const QUICK: usize = 3;

/// Result of one attempt.
pub(super) enum SendOutcome {
    Accepted,
    /// Temporary failure: retry.
    Retry(String),
    /// Permanent failure.
    Rejected(String),
}

/// Returns the result on the connection of a synchronous dispatch, or delivers it by callback
/// if no connection waits for it.
pub(super) async fn return_or_deliver(
    inner: Arc<Inner>,
    record: SpoolRecord,
    mut received: mpsc::Receiver<()>,
) {
    let patience = Duration::from_millis(HAND_OVER_MS);
    let handed = matches!(tokio::time::timeout(patience, received.recv()).await, Ok(Some(())));
    if handed || record.callback_url.is_none() {
        return record_outcome(&inner, record, SpoolState::Delivered).await;
    }
    deliver(inner, record).await;
}

/// Delivers a result, from memory or from the spool.
pub(super) async fn deliver(inner: Arc<Inner>, mut record: SpoolRecord) {
    let expires_ms = u64::try_from(inner.settings.pace.expires.as_millis()).unwrap_or(u64::MAX);
    let Some(url) = record.callback_url.clone() else {
        return record_outcome(&inner, record, SpoolState::Delivered).await;
    };
    for attempts in 1_usize.. {
        if inner.clock.now_ms().saturating_sub(record.at_ms) > expires_ms {
            tracing::warn!(
                run = record.run,
                step = record.step,
                "a result expired before the engine accepted it"
            );
            return record_outcome(&inner, record, SpoolState::GivenUp).await;
        }
        match attempt(&inner, &url, &mut record).await {
            SendOutcome::Accepted => {
                return record_outcome(&inner, record, SpoolState::Delivered).await;
            }
            SendOutcome::Rejected(why) => {
                tracing::warn!(
                    run = record.run,
                    step = record.step,
                    why,
                    "the engine rejected a result"
                );
                return record_outcome(&inner, record, SpoolState::GivenUp).await;
            }
            SendOutcome::Retry(why) if attempts == QUICK => {
                tracing::warn!(
                    run = record.run,
                    step = record.step,
                    why,
                    "a result could not be delivered yet; retrying"
                );
            }
            SendOutcome::Retry(_) => {}
        }
        if attempts >= QUICK && in_spool(&inner, &record).await {
            record = record.without_result();
        }
        tokio::select! {
            // The next process continues the delivery.
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep(inner.settings.pace.wait(attempts)) => {}
        }
    }
}

async fn in_spool(inner: &Inner, record: &SpoolRecord) -> bool {
    record.result.is_none()
        || matches!(inner.spool.read(record.key()).await, Ok(Some(stored)) if stored.result == record.result)
}

async fn attempt(inner: &Inner, url: &str, record: &mut SpoolRecord) -> SendOutcome {
    let Ok(_permit) = inner.deliveries.acquire().await else {
        return SendOutcome::Retry("the bridge is stopping".to_owned());
    };
    if let Err(why) = load_result(inner, record).await {
        return SendOutcome::Retry(why);
    }
    if let SendOutcome::Retry(why) = send_parts(inner, record).await {
        return SendOutcome::Retry(why);
    }
    let Some(result) = &record.result else {
        return SendOutcome::Rejected("the result is missing from the spool".to_owned());
    };
    let patience = Duration::from_millis(DELIVERY_TRY_MS);
    let request = Request::post(url, result.bytes(), patience, DELIVERY_ANSWER_BYTES_MAX);
    let token = record.dispatch_token.as_deref().map(Secret::new);
    let Some(request) = with_tokens(request, &inner.settings.token, token.as_ref()) else {
        return SendOutcome::Rejected("the tokens cannot be sent".to_owned());
    };
    match inner.outbound.send(&request).await {
        Ok(answer) => classify_status(answer.status),
        // A response that is too long does not say reliably whether the result was
        // accepted: retry.
        Err(OutboundError::Refused(refusal)) => SendOutcome::Rejected(refusal.to_string()),
        Err(error) => SendOutcome::Retry(error.to_string()),
    }
}

/// Sends the parts that precede a result. Rejected parts are dropped: the result has the whole
/// text.
async fn send_parts(inner: &Inner, record: &mut SpoolRecord) -> SendOutcome {
    let Some(url) = record.parts_url.clone() else { return SendOutcome::Accepted };
    let token = record.dispatch_token.as_deref().map(Secret::new);
    while let Some(batch) = record.parts.first() {
        match outbox::send(inner, &url, token.as_ref(), batch).await {
            SendOutcome::Accepted => drop(record.parts.remove(0)),
            SendOutcome::Rejected(why) => {
                tracing::warn!(step = record.step, why, "the engine rejected parts of an answer");
                record.parts.clear();
            }
            later @ SendOutcome::Retry(_) => return later,
        }
    }
    SendOutcome::Accepted
}

/// Maps an HTTP status to the result of an attempt.
pub(super) fn classify_status(status: u16) -> SendOutcome {
    match status {
        200..300 => SendOutcome::Accepted,
        408 | 425 | 429 => SendOutcome::Retry(format!("the engine answered {status}")),
        400..500 => SendOutcome::Rejected(format!("the engine answered {status}")),
        _ => SendOutcome::Retry(format!("the engine answered {status}")),
    }
}

/// Loads the result from the spool if it is not in memory.
async fn load_result(inner: &Inner, record: &mut SpoolRecord) -> Result<(), String> {
    if record.result.is_none() {
        let stored = inner.spool.read(record.key()).await.map_err(|error| error.to_string())?;
        if let Some(stored) = stored {
            (record.result, record.parts) = (stored.result, stored.parts);
        }
    }
    Ok(())
}

/// Records that a result is delivered or given up. It stays in the spool in case the dispatch
/// is sent again.
async fn record_outcome(inner: &Inner, mut record: SpoolRecord, state: SpoolState) {
    let (key, now_ms) = (record.key(), inner.clock.now_ms());
    let noted = match load_result(inner, &mut record).await {
        Ok(()) if record.result.is_some() => {
            let record = record.with_state(state, now_ms);
            inner.spool.write(key, &record).await.map_err(|error| error.to_string())
        }
        Ok(()) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        // The next process delivers it once more, and the engine recognises the
        // duplicate.
        tracing::warn!(error, "cannot record that a result was delivered");
    }
    inner.dispatches.record(key, state, now_ms);
}
