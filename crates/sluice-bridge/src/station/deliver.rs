//! Results on their way to the engine.
//!
//! A few quick tries, then a slow schedule, until somebody has the result or it is
//! too old. A result that is refused for good is kept, and told of.

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

/// When a result is sent: after each of these waits, the last again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// The waits before the second, third, … try.
    pub waits: Vec<Duration>,
    /// How long it is tried at all.
    pub expires: Duration,
}

impl Default for Pace {
    /// Three quick tries, then after 5 s, 30 s, and every minute for a day.
    fn default() -> Pace {
        let waits = [200, 1_000, 5_000, 30_000, 60_000];
        Pace {
            waits: waits.map(Duration::from_millis).to_vec(),
            expires: Duration::from_millis(DELIVERY_MS),
        }
    }
}

impl Pace {
    /// The wait before the try that follows so many.
    pub(super) fn wait(&self, tries: usize) -> Duration {
        let last = self.waits.last().copied().unwrap_or(Duration::from_secs(60));
        self.waits.get(tries - 1).copied().unwrap_or(last)
    }
}

/// How many tries hold the result in memory.
const QUICK: usize = 3;

/// What came of a try.
pub(super) enum Tried {
    Taken,
    /// Not now.
    Later(String),
    /// Never.
    Refused(String),
}

/// Gives a result to whoever waits for it at the other end of a connection, or
/// delivers it if nobody does.
pub(super) async fn hand_over(inner: Arc<Inner>, kept: Kept, mut taken: mpsc::Receiver<()>) {
    let patience = Duration::from_millis(HAND_OVER_MS);
    let handed = matches!(tokio::time::timeout(patience, taken.recv()).await, Ok(Some(())));
    if handed || kept.callback_url.is_none() {
        return settle(&inner, kept, State::Delivered).await;
    }
    deliver(inner, kept).await;
}

/// Delivers a result, which stands in the spool if it does not stand here.
pub(super) async fn deliver(inner: Arc<Inner>, mut kept: Kept) {
    let expires_ms = u64::try_from(inner.settings.pace.expires.as_millis()).unwrap_or(u64::MAX);
    let Some(url) = kept.callback_url.clone() else {
        return settle(&inner, kept, State::Delivered).await;
    };
    for tries in 1_usize.. {
        if inner.clock.now_ms().saturating_sub(kept.at_ms) > expires_ms {
            tracing::warn!(run = kept.run, step = kept.step, "nobody took a result in time");
            return settle(&inner, kept, State::GivenUp).await;
        }
        match attempt(&inner, &url, &mut kept).await {
            Tried::Taken => return settle(&inner, kept, State::Delivered).await,
            Tried::Refused(why) => {
                tracing::warn!(run = kept.run, step = kept.step, why, "a result is not taken");
                return settle(&inner, kept, State::GivenUp).await;
            }
            Tried::Later(why) if tries == QUICK => {
                tracing::warn!(run = kept.run, step = kept.step, why, "a result waits");
            }
            Tried::Later(_) => {}
        }
        if tries >= QUICK && in_spool(&inner, &kept).await {
            kept = kept.without_result();
        }
        tokio::select! {
            // The next life goes on with it.
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
        return Tried::Later("the station ends".to_owned());
    };
    if let Err(why) = load(inner, kept).await {
        return Tried::Later(why);
    }
    if let Tried::Later(why) = send_parts(inner, kept).await {
        return Tried::Later(why);
    }
    let Some(result) = &kept.result else {
        return Tried::Refused("the result is gone from the spool".to_owned());
    };
    let patience = Duration::from_millis(DELIVERY_TRY_MS);
    let request = Request::post(url, result.bytes(), patience, DELIVERY_ANSWER_BYTES_MAX);
    let token = kept.dispatch_token.as_deref().map(Secret::new);
    let Some(request) = shown(request, &inner.settings.token, token.as_ref()) else {
        return Tried::Refused("the tokens cannot be sent".to_owned());
    };
    match inner.outbound.send(&request).await {
        Ok(answer) => judged(answer.status),
        // A long answer is an answer, but says nothing that can be relied on.
        Err(OutboundError::Refused(refusal)) => Tried::Refused(refusal.to_string()),
        Err(error) => Tried::Later(error.to_string()),
    }
}

/// Sends the parts that go before a result. What the engine refuses is left out: the
/// result has the whole text.
async fn send_parts(inner: &Inner, kept: &mut Kept) -> Tried {
    let Some(url) = kept.parts_url.clone() else { return Tried::Taken };
    let token = kept.dispatch_token.as_deref().map(Secret::new);
    while let Some(batch) = kept.parts.first() {
        match outbox::send(inner, &url, token.as_ref(), batch).await {
            Tried::Taken => drop(kept.parts.remove(0)),
            Tried::Refused(why) => {
                tracing::warn!(step = kept.step, why, "parts of an answer are refused");
                kept.parts.clear();
            }
            later @ Tried::Later(_) => return later,
        }
    }
    Tried::Taken
}

/// What a status means for what was sent.
pub(super) fn judged(status: u16) -> Tried {
    match status {
        200..300 => Tried::Taken,
        408 | 425 | 429 => Tried::Later(format!("the engine answered {status}")),
        400..500 => Tried::Refused(format!("the engine answered {status}")),
        _ => Tried::Later(format!("the engine answered {status}")),
    }
}

/// Makes sure that the result is at hand.
async fn load(inner: &Inner, kept: &mut Kept) -> Result<(), String> {
    if kept.result.is_none() {
        let there = inner.spool.read(kept.key()).await.map_err(|error| error.to_string())?;
        if let Some(there) = there {
            (kept.result, kept.parts) = (there.result, there.parts);
        }
    }
    Ok(())
}

/// Notes that a result is delivered, or never will be. It is kept for whoever
/// asks again.
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
        // The next life delivers it once more, and is told that it is known.
        tracing::warn!(error, "it cannot be noted that a result was delivered");
    }
    inner.book.keep(key, state, now_ms);
}
