//! Tools that models may be offered, by the servers that have them.

use crate::media::File;
use crate::wire::Place;
use serde_json::{Map, Value};
use sluice_core::port::Later;
use std::fmt::Debug;
use std::sync::Arc;

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name in all lists and rules: `server.tool`.
    pub name: String,
    /// What it does, in its server's words.
    pub description: String,
    /// What it takes: a JSON Schema.
    pub input_schema: Value,
    /// Whether the operator says that it changes nothing. What its server says of that
    /// is not believed.
    pub read_only: bool,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolAnswer {
    /// Its answer, as text.
    pub text: String,
    /// Whether it says that it failed.
    pub failed: bool,
    /// Pictures, sound and other files in it.
    pub files: Vec<File>,
}

/// The structured part of an answer, where there is one.
pub type Structured = Option<Map<String, Value>>;

/// A server of tools cannot be spoken to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolTrouble(pub String);

impl ToolTrouble {
    /// What a recording says that has something else.
    pub(crate) const DIVERGED: &str = "diverges from the recording";

    /// Whether only a recording was asked, and it has something else: asking again
    /// does not help.
    pub fn is_divergence(&self) -> bool {
        self.0.starts_with(ToolTrouble::DIVERGED)
    }
}

/// Somebody who has tools.
pub trait ToolServer: Send + Sync + Debug {
    /// The operator's name for it.
    fn name(&self) -> &str;

    /// Whether the operator says that a tool, by its full name, changes nothing.
    fn reads_only(&self, _tool: &str) -> bool {
        false
    }

    /// The tools it has.
    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>>;

    /// Calls one of them, by its full name. Dropping the future abandons the call.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>>;

    /// The same, with the structured part of the answer where the server sends one.
    fn call_whole<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolTrouble>> {
        Box::pin(async move { Ok((self.call(tool, input, place).await?, None)) })
    }
}
