//! The engine's end of a call, as a suite holds it: keeps what passes and when.

use sluice_core::port::Later;
use sluice_core::port::adapter::{Call, Closed, Emission, ToolUse, ToolVerdict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// What a watch does with what it is handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Manner {
    /// Takes everything, and lets every tool be called.
    #[default]
    Takes,
    /// Takes everything, and lets no tool be called.
    Denies,
    /// Is gone: whatever is handed over is answered so.
    Gone,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// What was handed over and taken.
    pub(super) taken: Vec<Emission>,
    /// How often something was handed over, taken or not.
    pub(super) handed: usize,
    /// The tools that were asked about, each with what the probe said then.
    pub(super) asked: Vec<(String, usize)>,
}

impl Seen {
    /// The pieces of text, joined.
    pub(super) fn text(&self) -> String {
        let piece = |one: &Emission| match one {
            Emission::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.taken.iter().filter_map(piece).collect()
    }
}

/// Says how often something has happened.
pub(super) type Probe<'a> = &'a (dyn Fn() -> usize + Send + Sync);

/// The engine's end.
pub(super) struct Watch<'a> {
    manner: Manner,
    /// How often tools were called, for whoever asks about one.
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
            // Whoever does not wait for it has not handed it over.
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
                Manner::Denies => Ok(ToolVerdict::Denied("a rule says no".to_owned())),
                Manner::Gone => Err(Closed),
            }
        })
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.cancelled())
    }
}
