//! Tools that models may use, and the servers that provide them.

use crate::media::File;
use crate::wire::RequestIndex;
use serde_json::{Map, Value};
use sluice_core::port::Later;
use sluice_govern::catalog::ToolState;
use std::fmt::Debug;
use std::sync::Arc;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Qualified name: `server.tool`.
    pub name: String,
    /// Description, as the server wrote it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// Whether the operator declares it read-only. The server's own hint is ignored,
    /// because it is not trusted.
    pub read_only: bool,
}

/// Answer of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolAnswer {
    /// Text of the answer.
    pub text: String,
    /// Whether the tool reports an error.
    pub failed: bool,
    /// Images, audio and other files.
    pub files: Vec<File>,
}

/// Structured content of an answer, if the server sends any.
pub type Structured = Option<Map<String, Value>>;

/// A tool server failed, or could not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolServerError(pub String);

impl ToolServerError {
    /// Prefix of the error when a recording does not match.
    pub(crate) const DIVERGED: &str = "diverges from the recording";

    /// Whether the error comes from a replay with a recording that does not match. A retry does
    /// not help.
    pub(crate) fn is_divergence(&self) -> bool {
        self.0.starts_with(ToolServerError::DIVERGED)
    }
}

/// A provider of tools.
pub trait ToolServer: Send + Sync + Debug {
    /// Name that the operator gave the server.
    fn name(&self) -> &str;

    /// Whether the operator declares a tool read-only, by its qualified name.
    fn reads_only(&self, _tool: &str) -> bool {
        false
    }

    /// Whether the current definition of a tool is accepted, by its qualified name.
    fn state<'a>(&'a self, _tool: &'a str) -> Later<'a, Result<ToolState, ToolServerError>> {
        Box::pin(std::future::ready(Ok(ToolState::Accepted)))
    }

    /// Lists its tools that may be used.
    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>>;

    /// Calls a tool by its qualified name, and returns its answer with the structured content.
    /// Dropping the future abandons the call.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        index: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>>;
}
