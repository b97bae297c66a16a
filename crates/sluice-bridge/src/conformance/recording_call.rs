//! The suite's implementation of `Call`: records what the adapter emits and requests.

use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolUse, ToolVerdict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How the call responds to the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CallBehaviour {
    /// Accepts emissions and allows every tool.
    #[default]
    Allows,
    /// Accepts emissions and denies every tool.
    Denies,
    Closed,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedCall {
    pub(super) accepted: Vec<Emission>,
    /// Number of emissions, accepted or not.
    pub(super) emitted: usize,
    /// Requested tools, each with the number of tool calls before the request.
    pub(super) requested: Vec<(String, usize)>,
}

impl RecordedCall {
    /// The joined text emissions.
    pub(super) fn text(&self) -> String {
        let piece = |one: &Emission| match one {
            Emission::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.accepted.iter().filter_map(piece).collect()
    }
}

/// Returns how often something has happened.
pub(super) type Probe<'a> = &'a (dyn Fn() -> usize + Send + Sync);

pub(super) struct RecordingCall<'a> {
    manner: CallBehaviour,
    /// Counts the tool calls that were made.
    called: Probe<'a>,
    pub(super) cancel: CancellationToken,
    seen: Mutex<RecordedCall>,
}

impl<'a> RecordingCall<'a> {
    pub(super) fn new(manner: CallBehaviour) -> RecordingCall<'a> {
        RecordingCall::counting(manner, &|| 0)
    }

    pub(super) fn counting(manner: CallBehaviour, called: Probe<'a>) -> RecordingCall<'a> {
        let (cancel, seen) = (CancellationToken::new(), Mutex::default());
        RecordingCall { manner, called, cancel, seen }
    }

    pub(super) fn seen(&self) -> RecordedCall {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RecordedCall> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call for RecordingCall<'_> {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        self.lock().emitted += 1;
        Box::pin(async move {
            // An adapter that does not await the future has not handed the emission
            // over.
            tokio::task::yield_now().await;
            if self.manner == CallBehaviour::Closed {
                return Err(Closed);
            }
            self.lock().accepted.push(emission);
            Ok(())
        })
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        let before = (self.called)();
        self.lock().requested.push((wanted.tool, before));
        Box::pin(async move {
            tokio::task::yield_now().await;
            match self.manner {
                CallBehaviour::Allows => Ok(ToolVerdict::Allowed),
                CallBehaviour::Denies => Ok(ToolVerdict::Denied("a policy denies it".to_owned())),
                CallBehaviour::Closed => Err(Closed),
            }
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}
