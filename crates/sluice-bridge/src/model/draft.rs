//! The partial answer of one turn.
//!
//! INVARIANT: a draft never exceeds its limits, whatever a provider sends.

use super::dialect::RequestedCall;
use super::failure::provider;
use crate::limits::{
    ARGUMENTS_BYTES_MAX, ARTEFACTS_MAX, ECHO_BYTES_MAX, TURN_PIECES_MAX, TURN_TEXT_BYTES_MAX,
};
use crate::media::File;
use serde_json::Value;
use sluice_core::port::adapter::CallError;

#[derive(Debug, Default)]
pub(super) struct TurnDraft {
    pub(super) text: String,
    pub(super) calls: Vec<RequestedCall>,
    pub(super) counted: TokenCounts,
    /// Model name, as the provider reports it.
    pub(super) model: Option<String>,
    /// Why the model stopped; `None` while it has not.
    pub(super) stop: Option<StopReason>,
    /// Whether the provider has signalled the end of the response.
    pub(super) ended: bool,
    pub(super) made: Vec<File>,
    arguments_bytes: usize,
    echo_bytes: usize,
    pieces: usize,
}

/// Token counts of one or several turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TokenCounts {
    /// Including cached ones.
    pub(super) input: u64,
    /// Input tokens from the provider's cache.
    pub(super) cached: u64,
    pub(super) output: u64,
    /// Reasoning tokens, in addition to `output`.
    pub(super) thinking: u64,
    /// Whether the counts are final.
    pub(super) whole: bool,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StopReason {
    /// Finished, or waits for tool results.
    Done,
    /// Output limit reached.
    Length,
    /// Refused or filtered: why.
    Filtered(String),
    /// Failed: why.
    Broken(String),
}

impl TurnDraft {
    pub(super) fn append_text(&mut self, text: &str) -> Result<(), CallError> {
        if self.text.len() + text.len() > TURN_TEXT_BYTES_MAX {
            let most = TURN_TEXT_BYTES_MAX;
            return Err(provider(format!("the provider's answer exceeds {most} bytes of text")));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a tool call and returns its index.
    pub(super) fn begin_call(&mut self, id: &str, name: &str) -> Result<usize, CallError> {
        self.count_piece()?;
        self.room_for_arguments(id.len() + name.len())?;
        let (id, name) = (id.to_owned(), name.to_owned());
        self.calls.push(RequestedCall { id, name, arguments: String::new() });
        Ok(self.calls.len() - 1)
    }

    pub(super) fn append_arguments(&mut self, call: usize, part: &str) -> Result<(), CallError> {
        self.room_for_arguments(part.len())?;
        if let Some(call) = self.calls.get_mut(call) {
            call.arguments.push_str(part);
        }
        Ok(())
    }

    /// Counts bytes that are stored only to be sent back.
    pub(super) fn count_echo(&mut self, bytes: usize) -> Result<(), CallError> {
        self.echo_bytes += bytes;
        if self.echo_bytes > ECHO_BYTES_MAX {
            return Err(provider(format!(
                "the provider's reasoning exceeds {ECHO_BYTES_MAX} bytes"
            )));
        }
        Ok(())
    }

    /// Counts one more piece of the turn.
    pub(super) fn count_piece(&mut self) -> Result<(), CallError> {
        self.pieces += 1;
        if self.pieces > TURN_PIECES_MAX {
            return Err(provider(format!(
                "the provider's answer has more than {TURN_PIECES_MAX} parts"
            )));
        }
        Ok(())
    }

    /// Adds a file. Files beyond the limit are dropped.
    pub(super) fn add_file(&mut self, made: File) {
        if self.made.len() < ARTEFACTS_MAX {
            self.made.push(made);
        }
    }

    fn room_for_arguments(&mut self, bytes: usize) -> Result<(), CallError> {
        self.arguments_bytes += bytes;
        if self.arguments_bytes > ARGUMENTS_BYTES_MAX {
            let most = ARGUMENTS_BYTES_MAX;
            return Err(provider(format!("the model's tool arguments exceed {most} bytes")));
        }
        Ok(())
    }
}

/// A count in an event.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// A text in an event.
pub(super) fn word<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// Parses the data of an event.
pub(super) fn parse(data: &str) -> Result<Value, CallError> {
    serde_json::from_str(data).map_err(|_| {
        provider("the provider's stream has an event that is not valid JSON".to_owned())
    })
}
