//! Who does the work of a step: models, tools, shells, behind one trait.

use super::Later;
use crate::choice::choices;
use crate::id::RunId;
use crate::limits::ANSWER_BYTES_MAX;
use crate::money::Money;
use crate::trace::TraceParent;
use serde_json::{Map, Value, json};
use sluice_govern::decision::Constraints;
use sluice_govern::registry::{Gateway, Price};
use std::sync::Arc;

/// Something that can do a step's work.
pub trait Adapter: Send + Sync {
    /// What it speaks to: `mock`, `shell`, …
    fn provider(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether it could do work now.
    fn health(&self) -> Later<'_, Health>;

    /// What a dispatch of a step costs at most, where the adapter itself knows.
    fn quote(&self, step: &str) -> Quote {
        let _ = step;
        Quote::Priced
    }

    /// Does the work. Dropping the future abandons it: whatever it started is stopped.
    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution>;

    /// Asks whoever does a dispatch that was accepted elsewhere to stop: nobody
    /// wants its result any more. What it cost may still come by callback.
    fn recall<'a>(&'a self, dispatch: &'a Recall) -> Later<'a, ()> {
        let _ = dispatch;
        Box::pin(std::future::ready(()))
    }

    /// Stops a process that an earlier life of this adapter started and that
    /// may have outlived it. Completes when it is gone.
    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        let _ = process;
        Box::pin(std::future::ready(()))
    }
}

/// Who speaks to gateways as their rows say.
pub trait Gateways: Send + Sync {
    /// Whether this process has an adapter for a gateway with this row. Called for
    /// every route, so it creates nothing.
    fn speaks_to(&self, row: &Gateway) -> bool;

    /// The adapter for this gateway; `None` if this process has none. Called for every
    /// dispatch: an adapter is kept while the row stays as it is.
    fn adapter(&self, name: &str, row: &Gateway) -> Option<Arc<dyn Adapter>>;
}

/// A dispatch that is no longer wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recall {
    /// The run.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// Which dispatch of the step.
    pub dispatch_no: u32,
}

/// What a dispatch costs at most, as far as an adapter can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// It cannot cost anything.
    Free,
    /// So much.
    AtMost(Money),
    /// As the price table says.
    Priced,
}

/// What an adapter can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent features, named at every use")]
pub struct Capabilities {
    /// It gives partial answers.
    pub streaming: bool,
    /// It can offer tools to a model.
    pub tools: bool,
    /// It can hold a model to a schema.
    pub structured_output: bool,
    /// A cancelled call really stops.
    pub cancel: bool,
}

choices! {
    /// Whether work can be done.
    pub enum Health, "a health" {
        /// Yes.
        Healthy = "healthy",
        /// Yes, but worse than usual.
        Degraded = "degraded",
        /// No.
        Offline = "offline",
    }
}

/// The engine's end of a call in flight.
pub trait Call: Send + Sync {
    /// Hands over something that came before the result. Completes when the
    /// engine has taken it; for a process, when it is journalled.
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>>;

    /// Asks whether a tool may be called, each time one is. Completes when the
    /// answer is journalled; where a person must agree, when they have answered.
    fn tool(&self, wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>>;

    /// Completes when the work is no longer wanted. The adapter then stops it
    /// and answers `cancelled`; if it does not, it is dropped.
    fn cancelled(&self) -> Later<'_, ()>;
}

/// Nobody listens any more: the call was abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call was abandoned")]
pub struct Closed;

/// What comes before a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Emission {
    /// A piece of the answer.
    Text(String),
    /// A picture or sound, by address.
    Media {
        /// Where it is.
        url: String,
        /// What it is.
        mime: String,
    },
    /// A line for the log.
    Log(String),
    /// A tool that was allowed has answered.
    ToolEnded(ToolEnded),
    /// A process was started and waits for this to be journalled before it
    /// runs anything, so that it can be found after a crash.
    Process(Process),
}

/// A call of a tool that a model wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The model's name for this call, unique within the dispatch.
    pub id: String,
    /// The tool: `server.tool`.
    pub tool: String,
    /// What it is to be called with.
    pub input: Value,
}

/// Whether a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolVerdict {
    /// It may, this once.
    Allowed,
    /// It may not, and why. The model is told so.
    Denied(String),
}

/// What came of a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEnded {
    /// The call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Whether it said that it failed, or did not answer.
    pub failed: bool,
    /// How long its answer was.
    pub bytes: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// A process group on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id, which is that of its leader.
    pub group: u32,
    /// When its leader was started, in the machine's own count: tells it from
    /// a later process of the same number. Empty where the system does not say.
    pub started: String,
}

/// Everything an adapter is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The run.
    pub run: RunId,
    /// The step's id; `step[3]` for an instance.
    pub step: String,
    /// The workflow.
    pub workflow: String,
    /// Where it is sent.
    pub gateway: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Which dispatch of the step, from 1.
    pub dispatch_no: u32,
    /// The same when a crash makes us send again, new for a retry.
    pub idempotency_key: String,
    /// An earlier conversation to go on with.
    pub session: Option<String>,
    /// Who is to do it.
    pub agent: String,
    /// Standing instructions.
    pub system_prompt: Option<String>,
    /// The instruction. For a shell: the script.
    pub message: String,
    /// What is piped in.
    pub stdin: Option<String>,
    /// Environment variables, for a shell.
    pub env: Vec<(String, String)>,
    /// Working directory inside the run's workspace, for a shell.
    pub cwd: Option<String>,
    /// The model to use.
    pub model: Option<String>,
    /// Tools it may use.
    pub tools: Vec<String>,
    /// What the structured part of its answer must be: a JSON Schema.
    pub output_schema: Option<Value>,
    /// What sort of answer is wanted.
    pub output_strategy: OutputStrategy,
    /// Longest answer.
    pub max_output_tokens: Option<u64>,
    /// What a million tokens cost, as it was when money was reserved.
    pub price: Option<Price>,
    /// What was reserved for all of it: the work must not cost more.
    pub ceiling: Option<Money>,
    /// How long it may take.
    pub timeout_ms: u64,
    /// What governance says it must keep to.
    pub constraints: Constraints,
    /// SHA-256 of what was allowed: this, and nothing else.
    pub action_digest: String,
    /// The call's place in the run's trace, for whoever it is passed on to.
    pub trace: Option<TraceParent>,
}

choices! {
    /// What sort of answer is wanted.
    pub enum OutputStrategy, "an output strategy" {
        /// Text.
        Text = "text",
        /// An object, of any shape.
        Json = "json",
        /// An object that fits the schema.
        Structured = "structured",
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Execution {
    /// It is over.
    Done(Box<Answer>),
    /// It goes on elsewhere; the result comes by callback.
    Accepted,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Why it failed; none if it did not.
    pub error: Option<CallError>,
    /// The answer's text, as it came.
    pub text: Option<String>,
    /// The structured part.
    pub outputs: Option<Map<String, Value>>,
    /// What sort of output this is, for lens envelopes.
    pub kind: Option<String>,
    /// What sort of artifact it is, for lens envelopes.
    pub artifact_kind: Option<String>,
    /// Pictures, sound and other files, for lens envelopes.
    pub media: Option<Value>,
    /// What else is to be known of it, for lens envelopes.
    pub metadata: Option<Map<String, Value>>,
    /// What it cost.
    pub usage: Usage,
    /// The conversation, to go on with later.
    pub session: Option<String>,
    /// What was said, oldest first, for whoever looks at the step: messages as
    /// [`Message::value`] writes them. Bounded by the adapter.
    pub conversation: Vec<Value>,
    /// Files that came of it, as [`Artefact::value`] writes them. Bounded too.
    pub artefacts: Vec<Value>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// Who says it: `system`, `user`, `assistant`, `tool`.
    pub role: &'a str,
    /// What is said.
    pub text: &'a str,
    /// The tool that is called, or that answers: its name and the call.
    pub tool: Option<(&'a str, &'a str)>,
}

impl Message<'_> {
    /// As it is kept.
    pub fn value(&self) -> Value {
        match self.tool {
            None => json!({"role": self.role, "text": self.text}),
            Some((tool, call)) => {
                json!({"role": self.role, "text": self.text, "tool": tool, "call": call})
            }
        }
    }
}

/// A file that came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Artefact<'a> {
    /// What it is.
    pub mime: &'a str,
    /// How many bytes it has.
    pub bytes: u64,
    /// Where it is, or what it is in base64; none if it was too large to keep.
    pub content: Option<Content<'a>>,
}

/// What an artefact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// It is somewhere else.
    Url(&'a str),
    /// It is this, in base64.
    Base64(&'a str),
}

impl Artefact<'_> {
    /// As it is kept.
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
    /// An answer that is only an error.
    pub fn failed(code: CallErrorCode, message: impl Into<String>) -> Answer {
        let error = CallError { code, message: message.into(), retry_after_ms: None };
        Answer { error: Some(error), ..Answer::default() }
    }

    /// What was answered, as the journal keeps it of an attempt that failed; none if
    /// nothing was. A text over [`ANSWER_BYTES_MAX`] is cut, and `text_bytes` says
    /// how long it was.
    pub fn into_record(self) -> Option<Arc<Value>> {
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
    /// The kind.
    pub code: CallErrorCode,
    /// For people: lower case, no full stop.
    pub message: String,
    /// How long the provider asks us to wait.
    pub retry_after_ms: Option<u64>,
}

choices! {
    /// The kinds of failure of a call.
    pub enum CallErrorCode, "an error code" {
        /// It took too long.
        Timeout = "timeout",
        /// The provider failed.
        ProviderError = "provider_error",
        /// The provider asked to slow down.
        RateLimit = "rate_limit",
        /// The provider did not accept who we are.
        Auth = "auth",
        /// The provider did not accept what we asked.
        InvalidRequest = "invalid_request",
        /// The provider would not answer that.
        ContentFilter = "content_filter",
        /// The adapter broke, or its process was killed.
        AdapterCrash = "adapter_crash",
        /// It was stopped because we asked.
        Cancelled = "cancelled",
    }
}

/// What a call cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens thought, beside those written.
    pub thinking_tokens: u64,
    /// Tokens read that the provider had kept: part of those read.
    pub cached_tokens: u64,
    /// Money.
    pub cost: Money,
    /// Whether the money is still to be worked out, from the tokens and the
    /// price that was pinned.
    pub unpriced: bool,
    /// Whether nobody knows yet what it cost: it was given up before it answered.
    pub unknown: bool,
}

impl Usage {
    /// Of a call that was given up before it answered.
    pub fn unknown() -> Usage {
        Usage { unknown: true, ..Usage::default() }
    }
}
