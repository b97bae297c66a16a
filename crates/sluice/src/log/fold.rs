//! Folds repeated log lines: the first of an interval are written, the rest are counted, and
//! the count is written at the end of the interval.
//!
//! INVARIANT: the log rate is bounded per call site, whatever a client or a full disk does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Lines per call site and interval that are written.
const LINES: u64 = 10;
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// Lines of each call site since its interval began.
#[derive(Debug, Default)]
pub(super) struct Fold(Mutex<HashMap<Identifier, Interval>>);

#[derive(Debug)]
struct Interval {
    began: Instant,
    lines: u64,
    target: String,
}

/// Lines of one call site that were omitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Omitted {
    pub(super) lines: u64,
    pub(super) target: String,
}

impl Fold {
    /// Whether a line is written. Debug lines are never omitted.
    pub(super) fn writes(&self, line: &Metadata<'_>, now: Instant) -> bool {
        if *line.level() > Level::INFO {
            return true;
        }
        let mut all = self.held();
        let fresh = Interval { began: now, lines: 0, target: line.target().to_owned() };
        let interval = all.entry(line.callsite()).or_insert(fresh);
        interval.lines += 1;
        interval.lines <= LINES
    }

    /// Ends the intervals that are over, and returns what was omitted in them.
    pub(super) fn ended(&self, now: Instant) -> Vec<Omitted> {
        let mut omitted = Vec::new();
        self.held().retain(|_, interval| {
            if now.saturating_duration_since(interval.began) < INTERVAL {
                return true;
            }
            if interval.lines > LINES {
                let lines = interval.lines - LINES;
                omitted.push(Omitted { lines, target: std::mem::take(&mut interval.target) });
            }
            false
        });
        omitted
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Identifier, Interval>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
