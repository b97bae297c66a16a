//! Who says whether a text may go into a step, or come out of one.
//!
//! INVARIANT: it fails closed. What nobody has cleared counts as flagged:
//! a moderator that cannot answer says so, and the step fails.

pub use crate::plan::policy::ModerationPhase as Phase;

use super::Later;
use crate::id::RunId;
use serde_json::{Value, json};

/// Something that can judge a text.
pub trait Moderator: Send + Sync {
    /// Judges a text. Dropping the future gives the question up.
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict>;
}

/// What is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Which side of the step it is on.
    pub phase: Phase,
    /// The run.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// All of the text, or of a window of it.
    pub text: String,
}

/// What a moderator says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It has nothing against the text.
    Clear,
    /// It has: what it found, an object for whoever reads the journal.
    Flagged(Value),
    /// It could not say, and why: lower case, no full stop.
    Unavailable(String),
}

impl Verdict {
    /// What is written down of a verdict that stops a step; none for one that
    /// does not.
    pub fn decision(&self) -> Option<Value> {
        match self {
            Verdict::Clear => None,
            Verdict::Flagged(Value::Object(found)) => {
                let mut decision = found.clone();
                decision.insert("outcome".to_owned(), "flagged".into());
                Some(Value::Object(decision))
            }
            Verdict::Flagged(found) => Some(json!({"outcome": "flagged", "found": found})),
            Verdict::Unavailable(reason) => {
                Some(json!({"outcome": "unavailable", "reason": reason}))
            }
        }
    }
}
