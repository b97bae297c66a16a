//! The exact thing that is about to be done, and its digest.

mod diff;

pub use diff::{Difference, diff};

use crate::canonical;
use crate::decision::Constraints;
use crate::money::Money;
use serde::Serialize;
use serde_json::Value;

/// A dispatch as it would be sent. Its canonical JSON is what people agree to.
/// Fields stand in alphabetical order: canonical JSON then needs no sorting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// Who does it.
    pub agent: String,
    /// The instruction, rendered.
    pub command: String,
    /// What it must keep to.
    pub constraints: Constraints,
    /// Most it may cost; none where nobody can say.
    pub cost_ceiling: Option<Money>,
    /// Working directory, for a shell.
    pub cwd: Option<String>,
    /// SHA-256 of the plan.
    pub definition: String,
    /// Environment variables, for a shell.
    pub env: Vec<(String, String)>,
    /// Where. Fixed when a person is asked.
    pub gateway: String,
    /// Values a sub-workflow is given, or a person is asked about.
    pub inputs: Value,
    /// What it is told of the past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// SHA-256 over the policies that matched it. An edit of another policy
    /// does not change it.
    pub policies: String,
    /// What is piped in.
    pub stdin: Option<String>,
    /// The step; `step[3]` for an instance.
    pub step: String,
    /// Standing instructions, where there are any but the engine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tools it may use.
    pub tools: Vec<String>,
    /// The workflow.
    pub workflow: String,
}

impl Action {
    /// As canonical JSON.
    pub fn text(&self) -> String {
        canonical::to_string(self)
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    pub fn digest(&self) -> String {
        canonical::sha256_hex(self, 512)
    }

    /// As a value, to be kept beside a question and compared later.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("an action is plain data")
    }
}
