//! Questions to the moderator, so that there is always an answer.
//!
//! INVARIANT: it fails closed. No moderator, one that fails, panics or is too
//! slow, and a text that is too long: none of these is a clearance.

use crate::config::Moderation;
use futures_util::FutureExt as _;
use sluice_core::limits::MODERATED_BYTES_MAX;
#[cfg(feature = "sabotage")]
use sluice_core::port::moderator::Phase;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// First and longest wait before the moderator is asked once more.
const PAUSE_MS: (u64, u64) = (250, 2000);

/// Who is asked, and how.
pub(crate) struct Judge {
    moderator: Option<Arc<dyn Moderator>>,
    pub(crate) config: Moderation,
    room: Semaphore,
    /// Safeguards that are off.
    #[cfg(feature = "sabotage")]
    pub(crate) sabotage: crate::config::Sabotage,
}

impl Judge {
    pub(crate) fn new(moderator: Option<Arc<dyn Moderator>>, config: Moderation) -> Judge {
        let room = Semaphore::new(config.parallel.max(1));
        Judge {
            moderator,
            config,
            room,
            #[cfg(feature = "sabotage")]
            sabotage: crate::config::Sabotage::default(),
        }
    }

    #[cfg(feature = "sabotage")]
    pub(crate) fn sabotaged(self, sabotage: crate::config::Sabotage) -> Judge {
        Judge { sabotage, ..self }
    }

    /// What the moderator says of a text; it is not waited for once nobody
    /// wants to know.
    pub(crate) async fn check(&self, subject: &Subject, cancel: &CancellationToken) -> Verdict {
        let unwanted = || Verdict::Unavailable("it was stopped before it was checked".to_owned());
        tokio::select! {
            biased;
            verdict = self.ask(subject) => verdict,
            () = cancel.cancelled() => unwanted(),
        }
    }

    async fn ask(&self, subject: &Subject) -> Verdict {
        #[cfg(feature = "sabotage")]
        if self.sabotage.let_in && subject.phase == Phase::Input {
            return Verdict::Clear;
        }
        let Some(moderator) = &self.moderator else {
            let reason = "no moderator is set up: name a word list or an address";
            return Verdict::Unavailable(reason.to_owned());
        };
        let bytes = subject.text.len();
        if bytes > MODERATED_BYTES_MAX {
            let reason = format!("the text is {bytes} bytes, over {MODERATED_BYTES_MAX}");
            return Verdict::Unavailable(reason);
        }
        let Ok(_room) = self.room.acquire().await else {
            return Verdict::Unavailable("the engine is stopping".to_owned());
        };
        let mut pause_ms = PAUSE_MS.0;
        let mut tries = self.config.tries.max(1);
        loop {
            tries -= 1;
            let reason = match self.ask_once(&**moderator, subject).await {
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

    async fn ask_once(&self, moderator: &dyn Moderator, subject: &Subject) -> Verdict {
        let asked = AssertUnwindSafe(async { moderator.check(subject).await }).catch_unwind();
        let patience = Duration::from_millis(self.config.timeout_ms);
        match tokio::time::timeout(patience, asked).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Verdict::Unavailable("the moderator broke off".to_owned()),
            Err(_) => {
                let reason = format!("no answer within {} ms", self.config.timeout_ms);
                Verdict::Unavailable(reason)
            }
        }
    }
}
