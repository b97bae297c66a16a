//! The suite's implementation of `Call`: records what the adapter emits and requests.

use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolUse, ToolVerdict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How the call responds to the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Manner {
    /// Accepts emissions and allows every tool.
    #[default]
    Takes,
    /// Accepts emissions and denies every tool.
    Denies,
    /// Is closed.
    Gone,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Accepted emissions.
    pub(super) taken: Vec<Emission>,
    /// Number of emissions, accepted or not.
    pub(super) handed: usize,
    /// Requested tools, each with the number of tool calls before the request.
    pub(super) asked: Vec<(String, usize)>,
}

impl Seen {
    /// The joined text emissions.
    pub(super) fn text(&self) -> String {
        let piece = |one: &Emission| match one {
            Emission::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.taken.iter().filter_map(piece).collect()
    }
}

/// Returns how often something has happened.
pub(super) type Probe<'a> = &'a (dyn Fn() -> usize + Send + Sync);

pub(super) struct Watch<'a> {
    manner: Manner,
    /// Counts the tool calls that were made.
    called: Probe<'a>,
    pub(super) cancel: CancellationToken,
    seen: Mutex<Seen>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(manner: Manner) -> Watch<'a> {
        Watch::counting(manner, &|| 0)
    }

    pub(super) fn counting(manner: Manner, called: Probe<'a>) -> Watch<'a> {
        let (cancel, seen) = (CancellationToken::new(), Mutex::default());
        Watch { manner, called, cancel, seen }
    }

    pub(super) fn seen(&self) -> Seen {
        self.look().clone()
    }

    fn look(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call for Watch<'_> {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        self.look().handed += 1;
        Box::pin(async move {
            // An adapter that does not await the future has not handed the emission
            // over.
            tokio::task::yield_now().await;
            if self.manner == Manner::Gone {
                return Err(Closed);
            }
            self.look().taken.push(emission);
            Ok(())
        })
    }

    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        let before = (self.called)();
        self.look().asked.push((wanted.tool, before));
        Box::pin(async move {
            tokio::task::yield_now().await;
            match self.manner {
                Manner::Takes => Ok(ToolVerdict::Allowed),
                Manner::Denies => Ok(ToolVerdict::Denied("a policy denies it".to_owned())),
                Manner::Gone => Err(Closed),
            }
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}
