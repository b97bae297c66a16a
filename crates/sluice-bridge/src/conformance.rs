//! Conformance suites for authors of adapters and gateways: what the engine relies on, tested
//! case by case on the real implementation.
//!
//! `adapter` tests implementations of the port, `gateway` tests remote implementations of the
//! bridge's protocol. Both return a report and never panic, so that one fault does not hide
//! another.
//!
//! INVARIANT: every case can fail: the tests have a broken implementation for each.

pub mod adapter;
pub mod gateway;
mod recording_call;
#[cfg(test)]
mod tests;

use crate::limits::CONFORMANCE_WHY_BYTES_MAX;
use serde::Serialize;

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum CaseVerdict {
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
    pub verdict: CaseVerdict,
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
        self.cases.iter().filter(|case| matches!(case.verdict, CaseVerdict::Failed(_)))
    }

    /// Number of passed, failed and skipped cases.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |like: fn(&CaseVerdict) -> bool| {
            self.cases.iter().filter(|case| like(&case.verdict)).count()
        };
        (
            count(|verdict| *verdict == CaseVerdict::Passed),
            count(|verdict| matches!(verdict, CaseVerdict::Failed(_))),
            count(|verdict| matches!(verdict, CaseVerdict::Skipped(_))),
        )
    }
}

/// Why a case ends early.
#[derive(Debug)]
enum CaseStop {
    Failed(String),
    Skipped(String),
}

type CaseResult = Result<(), CaseStop>;

fn failed<T>(why: impl Into<String>) -> Result<T, CaseStop> {
    Err(CaseStop::Failed(why.into()))
}

fn skipped<T>(why: impl Into<String>) -> Result<T, CaseStop> {
    Err(CaseStop::Skipped(why.into()))
}

impl From<CaseResult> for CaseVerdict {
    fn from(tried: CaseResult) -> CaseVerdict {
        match tried {
            Ok(()) => CaseVerdict::Passed,
            // It may repeat a remote text of any length.
            Err(CaseStop::Failed(mut why)) => {
                why.truncate(why.floor_char_boundary(CONFORMANCE_WHY_BYTES_MAX));
                CaseVerdict::Failed(why)
            }
            Err(CaseStop::Skipped(why)) => CaseVerdict::Skipped(why),
        }
    }
}
