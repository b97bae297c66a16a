//! Conformance suites for authors of adapters and gateways: what the engine relies on, tested
//! case by case on the real implementation.
//!
//! `adapter` tests implementations of the port, `gateway` tests remote implementations of the
//! bridge's protocol. Both return a report and never panic, so that one fault does not hide the
//! others.
//!
//! INVARIANT: every case can fail: the tests have a broken implementation for each.

pub mod adapter;
pub mod gateway;
#[cfg(test)]
mod tests;
mod watch;

use crate::limits::CONFORMANCE_WHY_BYTES_MAX;
use serde::Serialize;

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum Verdict {
    /// The implementation conforms.
    Passed,
    /// The implementation does not conform, with the reason.
    Failed(String),
    /// The case could not be tested, with the reason.
    Skipped(String),
}

/// A case with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Name of the case: the requirement as a sentence.
    pub case: &'static str,
    /// Result of the case.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Results of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// All cases, in the suite's order.
    pub cases: Vec<Case>,
}

impl Report {
    /// Whether no case failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The failed cases.
    pub fn failures(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)))
    }

    /// Number of passed, failed and skipped cases.
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

/// Why a case ends early.
#[derive(Debug)]
enum Stop {
    Failed(String),
    Skipped(String),
}

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
            // It may repeat a remote text of any length.
            Err(Stop::Failed(mut why)) => {
                why.truncate(why.floor_char_boundary(CONFORMANCE_WHY_BYTES_MAX));
                Verdict::Failed(why)
            }
            Err(Stop::Skipped(why)) => Verdict::Skipped(why),
        }
    }
}
