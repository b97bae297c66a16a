//! Interface to one provider's API: encodes a conversation as a request and decodes the events
//! of the response into a draft.
//!
//! A dialect only translates. Which tools may be called, what a turn may cost and when to stop
//! is the same for all providers and decided in `converse`.

use super::draft::TurnDraft;
use super::offer::OfferedTool;
use super::sse::SseEvent;
use crate::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::Value;
use sluice_core::port::adapter::CallError;
use std::fmt::Debug;

/// A request to a model, independent of the provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelRequest<'a> {
    pub(super) model: &'a str,
    /// System prompt.
    pub(super) system: Option<&'a str>,
    /// The conversation, oldest first.
    pub(super) conversation: &'a [ConversationMessage],
    /// Tools that the model may call.
    pub(super) tools: &'a [OfferedTool],
    /// Output limit.
    pub(super) max_output_tokens: Option<u64>,
    /// Required format of the answer.
    pub(super) format: AnswerFormat<'a>,
}

/// Required format of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnswerFormat<'a> {
    Text,
    /// Any JSON object.
    Object,
    /// An object that matches a schema.
    Schema(&'a Value),
}

#[derive(Debug, Clone)]
pub(super) enum ConversationMessage {
    User(String),
    /// The model's message, in the form that its provider wants back.
    Model(Value),
    /// Results of the requested tool calls, in order.
    Results(Vec<ToolResult>),
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RequestedCall {
    /// Id that the model gave it.
    pub(super) id: String,
    /// Alias of the tool, as it was offered.
    pub(super) name: String,
    /// Arguments as written by the model; may be invalid JSON.
    pub(super) arguments: String,
}

impl RequestedCall {
    /// The arguments; `None` if they are not an object. An empty text is an empty object,
    /// because models call tools without parameters that way.
    pub(super) fn input(&self) -> Option<Value> {
        if self.arguments.trim().is_empty() {
            return Some(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.arguments).ok().filter(Value::is_object)
    }

    /// The arguments as they are sent back: providers reject anything but an object.
    pub(super) fn echo(&self) -> Value {
        self.input().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolResult {
    pub(super) call: RequestedCall,
    /// Text that the model reads.
    pub(super) text: String,
    pub(super) failed: bool,
}

/// Interface to one provider's API.
pub(super) trait Dialect: Send + Sync + Debug {
    fn provider(&self) -> &'static str;

    /// Default base URL.
    fn home(&self) -> &'static str;

    /// Path of a turn, below the base URL.
    fn turn_path(&self, base: &str, model: &str) -> String;

    /// Path of the model list, below the base URL.
    fn models_path(&self, base: &str) -> String;

    /// Header that carries the key.
    fn key_header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue>;

    /// Headers of every request.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// Whether the provider can enforce a format while these tools are offered. Otherwise
    /// the system prompt asks for it.
    fn enforces(&self, format: AnswerFormat<'_>, tools: &[OfferedTool]) -> bool;

    fn body(&self, request: &ModelRequest<'_>) -> Value;

    /// Creates the decoder of the response.
    fn decoder(&self, request: &ModelRequest<'_>) -> Box<dyn ResponseDecoder>;

    /// Removes provider-specific parts from an answer object.
    fn unpack(&self, object: &mut Value, format: AnswerFormat<'_>) {
        let _ = (object, format);
    }
}

/// Decodes one response.
pub(super) trait ResponseDecoder: Send {
    /// Processes an event of the stream.
    fn event(&mut self, event: &SseEvent, draft: &mut TurnDraft) -> Result<(), CallError>;

    /// The model's message, in the form that its provider wants back in the next turn.
    fn echo(&mut self, draft: &TurnDraft) -> Value;
}

/// Version prefix of a path, unless the base URL already ends with it.
pub(super) fn below<'v>(base: &str, version: &'v str) -> &'v str {
    if base.ends_with(version) { "" } else { version }
}

/// A header value that is not logged.
pub(super) fn sensitive(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}
