//! One turn of a model, as far as it has come.
//!
//! INVARIANT: a draft grows no further than its bounds, whatever a provider sends.

use super::dialect::Wanted;
use super::failure::provider;
use crate::limits::{
    ARGUMENTS_BYTES_MAX, ARTEFACTS_MAX, ECHO_BYTES_MAX, TURN_PIECES_MAX, TURN_TEXT_BYTES_MAX,
};
use crate::media::File;
use serde_json::Value;
use sluice_core::port::adapter::CallError;

/// What a turn has come to.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Its text.
    pub(super) text: String,
    /// The calls that are wanted.
    pub(super) calls: Vec<Wanted>,
    /// What it took.
    pub(super) counted: Counted,
    /// The model, as its provider calls it.
    pub(super) model: Option<String>,
    /// Why it stopped; none while it has not.
    pub(super) stop: Option<Stop>,
    /// Whether its provider said that nothing more comes.
    pub(super) ended: bool,
    /// Files that came of it.
    pub(super) made: Vec<File>,
    arguments_bytes: usize,
    echo_bytes: usize,
    pieces: usize,
}

/// Tokens of a turn, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    /// Read, kept ones included.
    pub(super) input: u64,
    /// Of those, what the provider had kept.
    pub(super) cached: u64,
    /// Written.
    pub(super) output: u64,
    /// Thought, beside those written.
    pub(super) thinking: u64,
    /// Whether the provider has said all of it.
    pub(super) whole: bool,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was done, or waits for its tools.
    Done,
    /// Its answer became too long.
    Length,
    /// It would not answer that, and why.
    Filtered(String),
    /// It broke, and how.
    Broken(String),
}

impl Draft {
    /// Adds to the text.
    pub(super) fn say(&mut self, text: &str) -> Result<(), CallError> {
        if self.text.len() + text.len() > TURN_TEXT_BYTES_MAX {
            let most = TURN_TEXT_BYTES_MAX;
            return Err(provider(format!("the provider answers with over {most} bytes of text")));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Begins a call, and answers where it stands.
    pub(super) fn want(&mut self, id: &str, name: &str) -> Result<usize, CallError> {
        self.piece()?;
        self.room_for_arguments(id.len() + name.len())?;
        let (id, name) = (id.to_owned(), name.to_owned());
        self.calls.push(Wanted { id, name, arguments: String::new() });
        Ok(self.calls.len() - 1)
    }

    /// Adds to the arguments of a call.
    pub(super) fn argue(&mut self, call: usize, part: &str) -> Result<(), CallError> {
        self.room_for_arguments(part.len())?;
        if let Some(call) = self.calls.get_mut(call) {
            call.arguments.push_str(part);
        }
        Ok(())
    }

    /// Makes room for what is only kept to be sent back.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), CallError> {
        self.echo_bytes += bytes;
        if self.echo_bytes > ECHO_BYTES_MAX {
            return Err(provider(format!("the provider thinks in over {ECHO_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// Counts one more part of the turn.
    pub(super) fn piece(&mut self) -> Result<(), CallError> {
        self.pieces += 1;
        if self.pieces > TURN_PIECES_MAX {
            return Err(provider(format!("the provider answers in over {TURN_PIECES_MAX} parts")));
        }
        Ok(())
    }

    /// Takes a file. Past the bound they are forgotten: the text is what counts.
    pub(super) fn make(&mut self, made: File) {
        if self.made.len() < ARTEFACTS_MAX {
            self.made.push(made);
        }
    }

    fn room_for_arguments(&mut self, bytes: usize) -> Result<(), CallError> {
        self.arguments_bytes += bytes;
        if self.arguments_bytes > ARGUMENTS_BYTES_MAX {
            let most = ARGUMENTS_BYTES_MAX;
            return Err(provider(format!("the model calls tools with over {most} bytes")));
        }
        Ok(())
    }
}

/// A number in an event; none if it is no count.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// A text in an event.
pub(super) fn word<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// What an event says; an error if it is no JSON.
pub(super) fn parse(data: &str) -> Result<Value, CallError> {
    serde_json::from_str(data)
        .map_err(|_| provider("the provider's stream holds an event that is no JSON".to_owned()))
}
