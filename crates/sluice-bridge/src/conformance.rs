//! Suites for whoever writes an adapter or a gateway: what the engine relies on,
//! case by case, tried on the real thing.
//!
//! `adapter` tries anything that implements the port, `gateway` anything elsewhere
//! that speaks the bridge's protocol. Both answer with a report and never panic, so
//! that one fault does not hide the others.
//!
//! INVARIANT: every case can fail: the tests have somebody broken for each.

pub mod adapter;
pub mod gateway;
#[cfg(test)]
mod tests;
mod watch;

use crate::limits::CONFORMANCE_WHY_BYTES_MAX;
use serde::Serialize;

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum Verdict {
    /// It is so.
    Passed,
    /// It is not so, and why.
    Failed(String),
    /// It could not be tried, and why.
    Skipped(String),
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// What should be so, as a sentence.
    pub case: &'static str,
    /// Whether it is.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a suite found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Every case, in the suite's order.
    pub cases: Vec<Case>,
}

impl Report {
    /// Whether no case failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)))
    }

    /// How many cases passed, failed and were skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |like: fn(&Verdict) -> bool| {
            self.cases.iter().filter(|case| like(&case.verdict)).count()
        };
        (
            count(|verdict| *verdict == Verdict::Passed),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            count(|verdict| matches!(verdict, Verdict::Skipped(_))),
        )
    }
}

/// Why a case ends before its end.
#[derive(Debug)]
enum Stop {
    Failed(String),
    Skipped(String),
}

/// How a case ends.
type Tried = Result<(), Stop>;

fn failed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(why.into()))
}

fn skipped<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skipped(why.into()))
}

impl From<Tried> for Verdict {
    fn from(tried: Tried) -> Verdict {
        match tried {
            Ok(()) => Verdict::Passed,
            // It may hold what somebody elsewhere said, at any length.
            Err(Stop::Failed(mut why)) => {
                why.truncate(why.floor_char_boundary(CONFORMANCE_WHY_BYTES_MAX));
                Verdict::Failed(why)
            }
            Err(Stop::Skipped(why)) => Verdict::Skipped(why),
        }
    }
}
