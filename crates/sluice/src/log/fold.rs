//! Lines that come again and again: the first of an interval are written, the others
//! counted, and their number written when the interval is over.
//!
//! INVARIANT: how much is logged is bounded in time by the places in the program that
//! log, whatever a client or a full disk does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Lines of one place in the program that are written in each interval.
const LINES: u64 = 10;
/// How long an interval lasts.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// Lines of each place in the program since its interval began.
#[derive(Debug, Default)]
pub(super) struct Fold(Mutex<HashMap<Identifier, Interval>>);

#[derive(Debug)]
struct Interval {
    began: Instant,
    lines: u64,
    target: String,
}

/// Lines of one place that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Omitted {
    pub(super) lines: u64,
    pub(super) target: String,
}

impl Fold {
    /// Whether a line is to be written. What is only looked at while searching for a
    /// cause is never left out.
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

    /// Ends the intervals that are over, and answers with what was not written in them.
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
