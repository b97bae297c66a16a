//! Watching the engine at work: for metrics and traces, never for decisions.
//!
//! An observer is told of what is durable, on the run's own task, so it must be
//! quick: it counts, or puts something into a queue of its own. Where there is
//! none, nothing is kept for it.

use crate::engine::Inner;
use sluice_core::journal::event::Event;
use sluice_core::run::state::Run;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Someone who is told what became of runs.
pub trait Observer: Send + Sync {
    /// A turn of a run is durable. Told once for each append that this process
    /// made and was answered for.
    fn turned(&self, turned: &Turned<'_>);
}

/// Several observers, told one after the other.
pub struct All(pub Vec<Arc<dyn Observer>>);

impl Observer for All {
    fn turned(&self, turned: &Turned<'_>) {
        for observer in &self.0 {
            observer.turned(turned);
        }
    }
}

/// Several of them, told one after the other.
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn turned(&self, turned: &Turned<'_>) {
        self.0.iter().for_each(|one| one.turned(turned));
    }
}

/// A turn that is durable.
#[derive(Debug, Clone, Copy)]
pub struct Turned<'a> {
    /// The run, after it.
    pub run: &'a Run,
    /// What happened, oldest first.
    pub events: &'a [Event],
    /// The id of the first event.
    pub first: u64,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long deciding and writing took.
    pub took: Duration,
    /// How much of that was writing.
    pub append: Duration,
}

/// How much an engine has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Runs in memory.
    pub residents: usize,
    /// Runs there is still room for.
    pub room: usize,
    /// Mail that waits in the mailboxes of runs.
    pub mail: usize,
    /// Readers that follow all runs.
    pub feed_readers: usize,
    /// Runs that are left alone because they cannot be read.
    pub poisoned: usize,
}

/// How long a turn takes.
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

    /// What is left is writing.
    pub(crate) fn decided(&mut self) {
        self.decided = Instant::now();
    }
}

impl Inner {
    /// An append that led to the run as it is now is durable.
    pub(crate) fn tell_observer(&self, run: &Run, events: &[Event], at_ms: u64, watch: &Stopwatch) {
        let Some(observer) = self.observer.as_ref().filter(|_| !events.is_empty()) else { return };
        let (took, append) = (watch.began.elapsed(), watch.decided.elapsed());
        let first = run.version + 1 - events.len() as u64;
        observer.turned(&Turned { run, events, first, at_ms, took, append });
    }
}
