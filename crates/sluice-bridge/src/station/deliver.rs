//! Delivery of results to the engine.
//!
//! A few quick attempts, then a slow schedule, until the engine accepts the result or it
//! expires. A result that the engine rejects for good is logged and stays in the spool.

use super::Inner;
use super::line::shown;
use super::outbox;
use super::spool::kept::{Kept, State};
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_MS, DELIVERY_TRY_MS, HAND_OVER_MS};
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::secret::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Retry schedule of a delivery. The last wait repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// Waits before the second, third, … attempt.
    pub waits: Vec<Duration>,
    /// Age at which a result is no longer sent.
    pub expires: Duration,
}

impl Default for Pace {
    /// Three quick attempts, then after 5 s, 30 s, and every minute for a day.
    fn default() -> Pace {
        let waits = [200, 1_000, 5_000, 30_000, 60_000];
        Pace {
            waits: waits.map(Duration::from_millis).to_vec(),
            expires: Duration::from_millis(DELIVERY_MS),
        }
    }
}

impl Pace {
    /// Wait after the given number of attempts.
    pub(super) fn wait(&self, tries: usize) -> Duration {
        let last = self.waits.last().copied().unwrap_or(Duration::from_secs(60));
        self.waits.get(tries - 1).copied().unwrap_or(last)
    }
}

/// Attempts that keep the result in memory; later ones read it from the spool.
const QUICK: usize = 3;

/// Result of one attempt.
pub(super) enum Tried {
    Taken,
    /// Temporary failure: retry.
    Later(String),
    /// Permanent failure.
    Refused(String),
}

/// Returns the result on the connection of a synchronous dispatch, or delivers it by callback
/// if no connection waits for it.
pub(super) async fn hand_over(inner: Arc<Inner>, kept: Kept, mut taken: mpsc::Receiver<()>) {
    let patience = Duration::from_millis(HAND_OVER_MS);
    let handed = matches!(tokio::time::timeout(patience, taken.recv()).await, Ok(Some(())));
    if handed || kept.callback_url.is_none() {
        return settle(&inner, kept, State::Delivered).await;
    }
    deliver(inner, kept).await;
}

/// Delivers a result, from memory or from the spool.
pub(super) async fn deliver(inner: Arc<Inner>, mut kept: Kept) {
    let expires_ms = u64::try_from(inner.settings.pace.expires.as_millis()).unwrap_or(u64::MAX);
    let Some(url) = kept.callback_url.clone() else {
        return settle(&inner, kept, State::Delivered).await;
    };
    for tries in 1_usize.. {
        if inner.clock.now_ms().saturating_sub(kept.at_ms) > expires_ms {
            tracing::warn!(
                run = kept.run,
                step = kept.step,
                "a result expired before the engine accepted it"
            );
            return settle(&inner, kept, State::GivenUp).await;
        }
        match attempt(&inner, &url, &mut kept).await {
            Tried::Taken => return settle(&inner, kept, State::Delivered).await,
            Tried::Refused(why) => {
                tracing::warn!(
                    run = kept.run,
                    step = kept.step,
                    why,
                    "the engine rejected a result"
                );
                return settle(&inner, kept, State::GivenUp).await;
            }
            Tried::Later(why) if tries == QUICK => {
                tracing::warn!(
                    run = kept.run,
                    step = kept.step,
                    why,
                    "a result could not be delivered yet; retrying"
                );
            }
            Tried::Later(_) => {}
        }
        if tries >= QUICK && in_spool(&inner, &kept).await {
            kept = kept.without_result();
        }
        tokio::select! {
            // The next process continues the delivery.
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep(inner.settings.pace.wait(tries)) => {}
        }
    }
}

async fn in_spool(inner: &Inner, kept: &Kept) -> bool {
    kept.result.is_none()
        || matches!(inner.spool.read(kept.key()).await, Ok(Some(there)) if there.result == kept.result)
}

async fn attempt(inner: &Inner, url: &str, kept: &mut Kept) -> Tried {
    let Ok(_place) = inner.deliveries.acquire().await else {
        return Tried::Later("the bridge is stopping".to_owned());
    };
    if let Err(why) = load(inner, kept).await {
        return Tried::Later(why);
    }
    if let Tried::Later(why) = send_parts(inner, kept).await {
        return Tried::Later(why);
    }
    let Some(result) = &kept.result else {
        return Tried::Refused("the result is missing from the spool".to_owned());
    };
    let patience = Duration::from_millis(DELIVERY_TRY_MS);
    let request = Request::post(url, result.bytes(), patience, DELIVERY_ANSWER_BYTES_MAX);
    let token = kept.dispatch_token.as_deref().map(Secret::new);
    let Some(request) = shown(request, &inner.settings.token, token.as_ref()) else {
        return Tried::Refused("the tokens cannot be sent".to_owned());
    };
    match inner.outbound.send(&request).await {
        Ok(answer) => judged(answer.status),
        // A response that is too long does not say reliably whether the result was
        // accepted: retry.
        Err(OutboundError::Refused(refusal)) => Tried::Refused(refusal.to_string()),
        Err(error) => Tried::Later(error.to_string()),
    }
}

/// Sends the parts that precede a result. Rejected parts are dropped: the result has the whole
/// text.
async fn send_parts(inner: &Inner, kept: &mut Kept) -> Tried {
    let Some(url) = kept.parts_url.clone() else { return Tried::Taken };
    let token = kept.dispatch_token.as_deref().map(Secret::new);
    while let Some(batch) = kept.parts.first() {
        match outbox::send(inner, &url, token.as_ref(), batch).await {
            Tried::Taken => drop(kept.parts.remove(0)),
            Tried::Refused(why) => {
                tracing::warn!(step = kept.step, why, "the engine rejected parts of an answer");
                kept.parts.clear();
            }
            later @ Tried::Later(_) => return later,
        }
    }
    Tried::Taken
}

/// Maps an HTTP status to the result of an attempt.
pub(super) fn judged(status: u16) -> Tried {
    match status {
        200..300 => Tried::Taken,
        408 | 425 | 429 => Tried::Later(format!("the engine answered {status}")),
        400..500 => Tried::Refused(format!("the engine answered {status}")),
        _ => Tried::Later(format!("the engine answered {status}")),
    }
}

/// Loads the result from the spool if it is not in memory.
async fn load(inner: &Inner, kept: &mut Kept) -> Result<(), String> {
    if kept.result.is_none() {
        let there = inner.spool.read(kept.key()).await.map_err(|error| error.to_string())?;
        if let Some(there) = there {
            (kept.result, kept.parts) = (there.result, there.parts);
        }
    }
    Ok(())
}

/// Records that a result is delivered or given up. It stays in the spool in case the dispatch
/// is sent again.
async fn settle(inner: &Inner, mut kept: Kept, state: State) {
    let (key, now_ms) = (kept.key(), inner.clock.now_ms());
    let noted = match load(inner, &mut kept).await {
        Ok(()) if kept.result.is_some() => {
            let kept = kept.now(state, now_ms);
            inner.spool.write(key, &kept).await.map_err(|error| error.to_string())
        }
        Ok(()) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        // The next process delivers it once more, and the engine recognises the
        // duplicate.
        tracing::warn!(error, "cannot record that a result was delivered");
    }
    inner.book.keep(key, state, now_ms);
}
