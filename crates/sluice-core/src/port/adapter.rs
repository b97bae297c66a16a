//! Adapters: models, tools and shells that execute steps, behind one trait.

use super::Later;
use crate::choices::choices;
use crate::id::RunId;
use crate::limits::{ANSWER_BYTES_MAX, TOOL_CONTENT_BYTES_MAX};
use crate::money::Money;
use crate::trace::TraceParent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_govern::decision::Constraints;
use sluice_govern::registry::{Gateway, Price};
use std::sync::Arc;

/// An adapter that can execute steps.
pub trait Adapter: Send + Sync {
    /// The provider that it calls: `mock`, `shell`, …
    fn provider(&self) -> &'static str;

    /// The features that it supports.
    fn capabilities(&self) -> Capabilities;

    /// Whether it can execute steps now.
    fn health(&self) -> Later<'_, Health>;

    /// The highest cost of one dispatch of a step, if the adapter knows it.
    fn quote(&self, step: &str) -> Quote {
        let _ = step;
        Quote::Priced
    }

    /// Executes a step. Dropping the future aborts the call and stops everything that it
    /// started.
    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution>;

    /// Asks the worker of a dispatch that was accepted remotely to stop, because its result
    /// is no longer needed. Its usage may still arrive by callback.
    fn recall<'a>(&'a self, dispatch: &'a Recall) -> Later<'a, ()> {
        let _ = dispatch;
        Box::pin(std::future::ready(()))
    }

    /// Stops a process that this adapter started before a restart and that may still run.
    /// Completes when the process is gone.
    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        let _ = process;
        Box::pin(std::future::ready(()))
    }
}

/// Creates adapters for gateways from their registry rows.
pub trait Gateways: Send + Sync {
    /// Whether this process has an adapter for this gateway row. The router calls it for
    /// every route, so it must create nothing.
    fn speaks_to(&self, row: &Gateway) -> bool;

    /// The adapter for this gateway; `None` if this process has none. Called for every
    /// dispatch, so the adapter is cached until the row changes.
    fn adapter(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>>;
}

/// A dispatch whose result is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recall {
    /// The run that the dispatch belongs to.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// The number of the dispatch within the step.
    pub dispatch_no: u32,
}

/// The highest cost of a dispatch, as far as an adapter knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// The dispatch costs nothing.
    Free,
    /// The dispatch costs at most this.
    AtMost(Money),
    /// The price table decides.
    Priced,
}

/// The features of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent features, named at every use")]
pub struct Capabilities {
    /// It streams partial output.
    pub streaming: bool,
    /// It can offer tools to a model.
    pub tools: bool,
    /// It can force a model's output to fit a schema.
    pub structured_output: bool,
    /// Cancelling a call really stops the work.
    pub cancel: bool,
}

choices! {
    /// Whether an adapter or a gateway can execute steps.
    pub enum Health, "a health" {
        /// It works normally.
        Healthy = "healthy",
        /// It works, but worse than usual.
        Degraded = "degraded",
        /// It does not work.
        Offline = "offline",
    }
}

/// The engine's end of a call in flight.
pub trait Call: Send + Sync {
    /// Passes on something that arrives before the result. Completes when the engine has
    /// received it; for a process, when it is journalled.
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>>;

    /// Requests permission for one call of a tool. Completes when the decision is
    /// journalled; if an approval is required, when it is decided.
    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>>;

    /// Completes when the call is cancelled. The adapter then stops the work and answers
    /// `cancelled`; an adapter that does not is dropped.
    fn cancelled(&self) -> Later<'_, ()>;
}

/// The engine has aborted the call and receives nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call was abandoned")]
pub struct Closed;

/// What an adapter reports before the result.
#[derive(Debug, Clone, PartialEq)]
pub enum Emission {
    /// A piece of the output's text.
    Text(String),
    /// A picture or sound, by URL.
    Media {
        /// Where the file is; a `data:` URL contains it.
        url: String,
        /// Its media type.
        mime: String,
    },
    /// A log line.
    Log(String),
    /// An allowed tool call has ended.
    ToolEnded(ToolEnded),
    /// A process was started. It executes nothing until this is journalled, so that it can
    /// be found after a crash.
    Process(Process),
}

/// A call of a tool that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The model's id of this call, unique within the dispatch.
    pub id: String,
    /// The tool: `server.tool`.
    pub tool: String,
    /// The arguments of the call.
    pub input: Value,
}

/// Whether a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolVerdict {
    /// The tool may be called once.
    Allowed,
    /// The call is denied, with the reason, which the model receives.
    Denied(String),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnded {
    /// The model's id of the call.
    pub id: String,
    /// The tool's name, as policies write it.
    pub tool: String,
    /// Whether the tool reported an error or did not answer.
    pub failed: bool,
    /// The length of the tool's answer.
    pub bytes: u64,
    /// The duration of the call.
    pub duration_ms: u64,
    /// What the tool answered. `None` if the adapter does not report it: then every value of
    /// a later call may come from this answer.
    pub content: Option<ToolContent>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolContent {
    /// The text that the model reads; `None` if it only repeats the structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The structured content, if the server sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether a part is missing, because the answer was over 256 KiB.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl ToolContent {
    /// The answer with this text and structured content.
    pub fn new(text: String, structured: Option<Value>) -> ToolContent {
        let is_repeated = structured.as_ref().is_some_and(|structured| {
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value == *structured)
        });
        let text = (!text.is_empty() && !is_repeated).then_some(text);
        ToolContent { text, structured, cut: false }.bounded()
    }

    /// The answer within 256 KiB. Structured content that does not fit is
    /// dropped whole.
    #[must_use]
    pub fn bounded(mut self) -> ToolContent {
        let mut room = TOOL_CONTENT_BYTES_MAX;
        if let Some(structured) = self.structured.take() {
            let written = structured.to_string();
            if written.len() <= room {
                room -= written.len();
                self.structured = Some(structured);
            } else {
                self.text.get_or_insert(written);
                self.cut = true;
            }
        }
        if let Some(text) = self.text.as_mut().filter(|text| text.len() > room) {
            text.truncate(text.floor_char_boundary(room));
            self.cut = true;
        }
        self
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        let structured = self.structured.as_ref().map_or(0, |value| value.to_string().len());
        structured + self.text.as_ref().map_or(0, String::len)
    }
}

/// A process group on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id, which is the process id of its leader.
    pub group: u32,
    /// The start time of its leader in the machine's own units: it tells this process from
    /// a later one with the same id. Empty if the system does not report it.
    pub started: String,
}

/// Everything that an adapter receives for one dispatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The run that the dispatch belongs to.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The gateway that the request is sent to.
    pub gateway: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of the dispatch within the step, from 1.
    pub dispatch_no: u32,
    /// Stays the same if the request is sent again after a crash; new for a retry.
    pub idempotency_key: String,
    /// An earlier conversation to continue.
    pub session: Option<String>,
    /// The agent that executes the step.
    pub agent: String,
    /// The agent's system prompt.
    pub system_prompt: Option<String>,
    /// The instruction. For a shell: the script.
    pub message: String,
    /// The standard input, for a shell.
    pub stdin: Option<String>,
    /// Environment variables, for a shell.
    pub env: Vec<(String, String)>,
    /// Working directory inside the run's workspace, for a shell.
    pub cwd: Option<String>,
    /// The model to use.
    pub model: Option<String>,
    /// Tools that the agent may use.
    pub tools: Vec<String>,
    /// The JSON Schema of the structured output.
    pub output_schema: Option<Value>,
    /// The form of output that is wanted.
    pub output_strategy: OutputStrategy,
    /// The limit on output tokens.
    pub max_output_tokens: Option<u64>,
    /// The price per million tokens at the time of the reservation.
    pub price: Option<Price>,
    /// The reservation for the whole call: the call must not cost more.
    pub ceiling: Option<Money>,
    /// The time limit.
    pub timeout_ms: u64,
    /// Constraints that governance sets.
    pub constraints: Constraints,
    /// SHA-256 of the allowed action; the adapter may execute nothing else.
    pub action_digest: String,
    /// The parent span that remote components continue.
    pub trace: Option<TraceParent>,
}

choices! {
    /// The form of output that is wanted.
    pub enum OutputStrategy, "an output strategy" {
        /// Text of any shape.
        Text = "text",
        /// A JSON object of any shape.
        Json = "json",
        /// A JSON object that fits the schema.
        Structured = "structured",
    }
}

/// The state of a call when `execute` returns.
#[derive(Debug, Clone, PartialEq)]
pub enum Execution {
    /// The call has ended.
    Done(Box<Answer>),
    /// A remote worker accepted the call; the result arrives by callback.
    Accepted,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The error; `None` if the call succeeded.
    pub error: Option<CallError>,
    /// The text of the output, unchanged.
    pub text: Option<String>,
    /// The structured output.
    pub outputs: Option<Map<String, Value>>,
    /// The kind of output, for lens output envelopes.
    pub kind: Option<String>,
    /// The kind of artifact, for lens output envelopes.
    pub artifact_kind: Option<String>,
    /// Pictures, sound and other files, for lens output envelopes.
    pub media: Option<Value>,
    /// More metadata, for lens output envelopes.
    pub metadata: Option<Map<String, Value>>,
    /// Tokens and cost of the call.
    pub usage: Usage,
    /// The id of the conversation, to continue it later.
    pub session: Option<String>,
    /// The messages of the conversation, oldest first, as [`Message::value`] writes them.
    /// People can read them in the step's details. The adapter bounds their number.
    pub conversation: Vec<Value>,
    /// Files that the call produced, as [`Artefact::value`] writes them. Bounded by the
    /// adapter.
    pub artefacts: Vec<Value>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// The author: `system`, `user`, `assistant` or `tool`.
    pub role: &'a str,
    /// The text of the message.
    pub text: &'a str,
    /// The tool that is called or answers: its name and the id of the call.
    pub tool: Option<(&'a str, &'a str)>,
}

impl Message<'_> {
    /// The message as JSON.
    pub fn value(&self) -> Value {
        match self.tool {
            None => json!({"role": self.role, "text": self.text}),
            Some((tool, call)) => {
                json!({"role": self.role, "text": self.text, "tool": tool, "call": call})
            }
        }
    }
}

/// A file that a step produced.
#[derive(Debug, Clone, PartialEq)]
pub struct Artefact<'a> {
    /// Its media type.
    pub mime: &'a str,
    /// Its size.
    pub bytes: u64,
    /// The content; `None` if it was too large to keep.
    pub content: Option<Content<'a>>,
}

/// The content of an artefact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// A URL of the content.
    Url(&'a str),
    /// The content in base64.
    Base64(&'a str),
}

impl Artefact<'_> {
    /// The artefact as JSON.
    pub fn value(&self) -> Value {
        let mut kept = json!({"mime": self.mime, "bytes": self.bytes});
        match self.content {
            Some(Content::Url(url)) => kept["url"] = url.into(),
            Some(Content::Base64(data)) => kept["data"] = data.into(),
            None => kept["dropped"] = true.into(),
        }
        kept
    }
}

impl Answer {
    /// A result with only an error.
    pub fn failed(code: CallErrorCode, message: impl Into<String>) -> Answer {
        let error = CallError { code, message: message.into(), retry_after_ms: None };
        Answer { error: Some(error), ..Answer::default() }
    }

    /// The answer of a failed attempt as the journal keeps it; `None` if there was none. A
    /// text over [`ANSWER_BYTES_MAX`] is cut, and `text_bytes` holds its original length.
    pub(crate) fn into_record(self) -> Option<Arc<Value>> {
        let mut record = Map::new();
        if let Some(mut text) = self.text.filter(|text| !text.is_empty()) {
            if text.len() > ANSWER_BYTES_MAX {
                record.insert("text_bytes".to_owned(), text.len().into());
                text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
            }
            record.insert("text".to_owned(), text.into());
        }
        let parts = [
            ("outputs", self.outputs.map(Value::Object)),
            ("kind", self.kind.map(Value::String)),
            ("artifact_kind", self.artifact_kind.map(Value::String)),
            ("media", self.media),
            ("metadata", self.metadata.map(Value::Object)),
            ("conversation", (!self.conversation.is_empty()).then(|| self.conversation.into())),
            ("artefacts", (!self.artefacts.is_empty()).then(|| self.artefacts.into())),
        ];
        let parts = parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?)));
        record.extend(parts);
        (!record.is_empty()).then(|| Arc::new(Value::Object(record)))
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The kind of error.
    pub code: CallErrorCode,
    /// A message for people: lower case, no full stop.
    pub message: String,
    /// How long to wait before a retry, if the provider reported it.
    pub retry_after_ms: Option<u64>,
}

choices! {
    /// The kinds of errors of a call.
    pub enum CallErrorCode, "an error code" {
        /// The call took too long.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider limits the rate of requests.
        RateLimit = "rate_limit",
        /// The provider rejected the credentials.
        Auth = "auth",
        /// The provider rejected the request as invalid.
        InvalidRequest = "invalid_request",
        /// The tool was added to a known server, and its definition is not accepted.
        ToolNotAccepted = "tool_not_accepted",
        /// The definition of the tool is not the accepted one.
        ToolDefinitionChanged = "tool_definition_changed",
        /// The provider's content filter rejected the request.
        ContentFilter = "content_filter",
        /// The adapter crashed, or its process was killed.
        AdapterCrash = "adapter_crash",
        /// The engine cancelled the call.
        Cancelled = "cancelled",
    }
}

/// Tokens and cost of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Output tokens, without thinking.
    pub output_tokens: u64,
    /// Tokens that the model used before it answered.
    pub thinking_tokens: u64,
    /// Input tokens that the provider had cached, included in the input tokens.
    pub cached_tokens: u64,
    /// What the provider reported or the price gives.
    pub cost: Money,
    /// Whether the cost must still be computed from the tokens and the price of the
    /// reservation.
    pub unpriced: bool,
    /// Whether the cost is unknown, because the call was aborted before it answered.
    pub unknown: bool,
}

impl Usage {
    /// The usage of a call that was aborted before it answered.
    pub fn unknown() -> Usage {
        Usage { unknown: true, ..Usage::default() }
    }
}
