//! Observers of durable turns: for metrics and traces, never for decisions.
//!
//! An observer is called on the task of the run, so it must be quick: count, or put
//! something into a queue of its own. Without an observer nothing is recorded for one.

use crate::engine::Inner;
use sluice_core::journal::event::Event;
use sluice_core::run::state::Run;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receives every durable turn.
pub trait Observer: Send + Sync {
    /// A turn is durable. Called once for each confirmed append of this process.
    fn turned(&self, turned: &Turned<'_>);
}

/// Several observers, called in order.
pub struct All(pub Vec<Arc<dyn Observer>>);

impl Observer for All {
    fn turned(&self, turned: &Turned<'_>) {
        for observer in &self.0 {
            observer.turned(turned);
        }
    }
}

/// A durable turn.
#[derive(Debug, Clone, Copy)]
pub struct Turned<'a> {
    /// The run after the turn.
    pub run: &'a Run,
    /// Appended events, oldest first.
    pub events: &'a [Event],
    /// Id of the first event.
    pub first: u64,
    /// Time of the decision, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Duration of deciding and appending.
    pub took: Duration,
    /// Duration of the append alone.
    pub append: Duration,
}

/// Current load of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Loaded runs.
    pub residents: usize,
    /// Further runs that may be loaded.
    pub room: usize,
    /// Items in the mailboxes of loaded runs.
    pub mail: usize,
    /// Readers of the feed of all runs.
    pub feed_readers: usize,
    /// Quarantined runs, whose journals cannot be read.
    pub poisoned: usize,
}

/// Measures a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    began: Instant,
    decided: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        let began = Instant::now();
        Stopwatch { began, decided: began }
    }

    /// Marks the end of deciding; the rest is the append.
    pub(crate) fn decided(&mut self) {
        self.decided = Instant::now();
    }
}

impl Inner {
    /// Notifies the observer of a durable append that led to the current state of the run.
    pub(crate) fn notify_observer(
        &self,
        run: &Run,
        events: &[Event],
        at_ms: u64,
        watch: &Stopwatch,
    ) {
        let Some(observer) = self.observer.as_ref().filter(|_| !events.is_empty()) else { return };
        let (took, append) = (watch.began.elapsed(), watch.decided.elapsed());
        let first = run.version + 1 - events.len() as u64;
        observer.turned(&Turned { run, events, first, at_ms, took, append });
    }
}
