//! Calls to the moderator, with a timeout and retries.
//!
//! INVARIANT: moderation fails closed. Without a moderator, or if it fails, panics or
//! times out, or if the text is too long, the text is not cleared.

use crate::config::Moderation;
use futures_util::FutureExt as _;
use sluice_core::limits::MODERATED_BYTES_MAX;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// First and longest delay between attempts.
const PAUSE_MS: (u64, u64) = (250, 2000);

/// Calls the configured moderator.
pub(crate) struct ModeratorClient {
    moderator: Option<Arc<dyn Moderator>>,
    pub(crate) config: Moderation,
    permits: Semaphore,
}

impl ModeratorClient {
    pub(crate) fn new(
        moderator: Option<Arc<dyn Moderator>>,
        config: Moderation,
    ) -> ModeratorClient {
        let permits = Semaphore::new(config.parallel.max(1));
        ModeratorClient { moderator, config, permits }
    }

    /// Checks a text; gives up when `cancel` fires.
    pub(crate) async fn check(&self, subject: &Subject, cancel: &CancellationToken) -> Verdict {
        let unwanted = || Verdict::Unavailable("cancelled before the check".to_owned());
        tokio::select! {
            biased;
            verdict = self.check_with_retries(subject) => verdict,
            () = cancel.cancelled() => unwanted(),
        }
    }

    async fn check_with_retries(&self, subject: &Subject) -> Verdict {
        let Some(moderator) = &self.moderator else {
            let reason = "no moderator is configured: set a word list or a URL";
            return Verdict::Unavailable(reason.to_owned());
        };
        let bytes = subject.text.len();
        if bytes > MODERATED_BYTES_MAX {
            let reason = format!("text of {bytes} bytes is over {MODERATED_BYTES_MAX}");
            return Verdict::Unavailable(reason);
        }
        let Ok(_room) = self.permits.acquire().await else {
            return Verdict::Unavailable("the engine is stopping".to_owned());
        };
        let mut pause_ms = PAUSE_MS.0;
        let mut tries = self.config.tries.max(1);
        loop {
            tries -= 1;
            let reason = match self.check_once(&**moderator, subject).await {
                Verdict::Unavailable(reason) => reason,
                verdict => return verdict,
            };
            tracing::warn!(run = %subject.run, step = subject.step, reason, tries, "no verdict");
            if tries == 0 {
                return Verdict::Unavailable(reason);
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(PAUSE_MS.1);
        }
    }

    async fn check_once(&self, moderator: &dyn Moderator, subject: &Subject) -> Verdict {
        let check = AssertUnwindSafe(async { moderator.check(subject).await }).catch_unwind();
        let patience = Duration::from_millis(self.config.timeout_ms);
        match tokio::time::timeout(patience, check).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Verdict::Unavailable("the moderator panicked".to_owned()),
            Err(_) => {
                let reason = format!("no answer within {} ms", self.config.timeout_ms);
                Verdict::Unavailable(reason)
            }
        }
    }
}
