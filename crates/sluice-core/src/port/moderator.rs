//! The moderator: decides whether a text may enter or leave a step.
//!
//! INVARIANT: moderation fails closed. If a moderator cannot answer, it returns
//! [`Verdict::Unavailable`], and the step fails as if the text were flagged.

use super::Later;
use crate::id::RunId;
use crate::plan::policy::ModerationPhase;
use serde_json::{Value, json};

/// A moderator of texts.
pub trait Moderator: Send + Sync {
    /// Checks a text. Dropping the future cancels the check.
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict>;
}

/// A text to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Whether the text is an input or an output of the step.
    pub phase: ModerationPhase,
    /// The run that waits for the verdict.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// The text, or a window of it.
    pub text: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The text is allowed.
    Clear,
    /// The text is flagged, with an object that the journal keeps for people.
    Flagged(Value),
    /// The moderator could not answer, with the reason: lower case, no full stop.
    Unavailable(String),
}

impl Verdict {
    /// The journalled decision if the result stops the step; `None` for an allowed text.
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
