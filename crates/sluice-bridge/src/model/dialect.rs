//! How one provider is spoken to: a conversation becomes a request, the events of
//! its answer become a draft.
//!
//! A dialect knows words and shapes. What tools may be called, what it may cost and
//! when to stop is the same for all of them, and is decided elsewhere.

use super::draft::Draft;
use super::offer::Offered;
use super::sse::Event;
use crate::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::Value;
use sluice_core::port::adapter::CallError;
use std::fmt::Debug;

/// What a model is asked, in no provider's words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    /// The model.
    pub(super) model: &'a str,
    /// Standing instructions.
    pub(super) system: Option<&'a str>,
    /// The conversation, oldest first.
    pub(super) said: &'a [Said],
    /// Tools it may ask for.
    pub(super) tools: &'a [Offered],
    /// Longest answer.
    pub(super) max_output_tokens: Option<u64>,
    /// What its answer must be.
    pub(super) shape: Shape<'a>,
}

/// What an answer must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// Text.
    Text,
    /// An object, of any shape.
    Object,
    /// An object that fits a schema.
    Fits(&'a Value),
}

/// Something that was said.
#[derive(Debug, Clone)]
pub(super) enum Said {
    /// By whoever asks.
    User(String),
    /// By the model: its message, as its provider wants it back.
    Model(Value),
    /// By the tools that it asked for, in its order.
    Results(Vec<Outcome>),
}

/// A call that a model wants made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// The model's name for it.
    pub(super) id: String,
    /// The tool, by the name it was offered under.
    pub(super) name: String,
    /// What it is to be called with: JSON, if the model can write it.
    pub(super) arguments: String,
}

impl Wanted {
    /// The arguments; none if they are no object. No text at all is an empty one:
    /// so models call tools that take nothing.
    pub(super) fn input(&self) -> Option<Value> {
        if self.arguments.trim().is_empty() {
            return Some(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.arguments).ok().filter(Value::is_object)
    }

    /// The arguments as they may be sent back: providers refuse what is no object.
    pub(super) fn echo(&self) -> Value {
        self.input().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The call.
    pub(super) call: Wanted,
    /// What the model is told.
    pub(super) text: String,
    /// Whether it came to nothing.
    pub(super) failed: bool,
}

/// How one provider is spoken to.
pub(super) trait Dialect: Send + Sync + Debug {
    /// The provider.
    fn provider(&self) -> &'static str;

    /// Where its API is known to be.
    fn home(&self) -> &'static str;

    /// Where a model is asked, below the base URL.
    fn turn_path(&self, base: &str, model: &str) -> String;

    /// Where the list of models is, below the base URL.
    fn models_path(&self, base: &str) -> String;

    /// The header that shows a key.
    fn key_header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue>;

    /// What is said with every request.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// Whether the provider itself can hold a model to a shape while it is
    /// offered these tools. Where it cannot, the model is told in words.
    fn holds(&self, shape: Shape<'_>, tools: &[Offered]) -> bool;

    /// The body of a request.
    fn body(&self, ask: &Ask<'_>) -> Value;

    /// Reads the answer to a request.
    fn listen(&self, ask: &Ask<'_>) -> Box<dyn Listen>;

    /// An object as the model gave it, without what only its provider wanted.
    fn unpack(&self, object: &mut Value, shape: Shape<'_>) {
        let _ = (object, shape);
    }
}

/// Reads one answer.
pub(super) trait Listen: Send {
    /// Takes an event of its stream.
    fn event(&mut self, event: &Event, draft: &mut Draft) -> Result<(), CallError>;

    /// The model's message, as its provider wants it back in the next turn.
    fn echo(&mut self, draft: &Draft) -> Value;
}

/// A part of the path that providers put before all others, unless the base URL
/// ends with it already.
pub(super) fn below<'v>(base: &str, version: &'v str) -> &'v str {
    if base.ends_with(version) { "" } else { version }
}

/// A header that is not to be shown.
pub(super) fn sensitive(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}
