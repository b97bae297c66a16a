//! What engines and bridges say to each other: the bodies of a dispatch, of a
//! cancel and of a result, as they go over the wire.
//!
//! Both ends use these types, so both read what either writes. A field that is not
//! known here is passed over: the other end may be newer.
//!
//! INVARIANT: what is read is bounded, every length and every number.
//! INVARIANT: figures that nobody can believe do not refuse a result: it is kept,
//! and the core refuses the figures.

pub mod callback;
pub mod dispatch;
mod figure;
pub mod parts;
mod plain;
#[cfg(test)]
mod tests;

use crate::limits::STEP_BYTES_MAX;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sluice_core::run::id::RunId;
use std::fmt;

/// Where dispatches are taken.
pub const DISPATCH_PATH: &str = "/api/v2/dispatch";
/// The same, as it was called first.
pub const DISPATCH_PATH_OLD: &str = "/api/workflow/dispatch";
/// Where dispatches are taken whose result is waited for.
pub const SYNC_PATH: &str = "/api/v2/dispatch/sync";
/// Where dispatches are called off.
pub const CANCEL_PATH: &str = "/api/v2/cancel";
/// Where a bridge says how it is.
pub const HEALTH_PATH: &str = "/api/v2/health";
/// Where a bridge tells what goes on.
pub const EVENTS_PATH: &str = "/api/v2/events";
/// The header in which a gateway shows its token.
pub const GATEWAY_TOKEN: &str = "x-gateway-token";
/// The header in which a dispatch's token is shown.
pub const DISPATCH_TOKEN: &str = "x-dispatch-token";

/// A body that is not taken: lower case, no full stop, and nothing of the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadBody(pub String);

impl BadBody {
    fn of(error: &serde_json::Error) -> BadBody {
        // The message of the reader names fields and places; a text that was
        // sent stands in it only as far as a word that is none.
        let message: String = error.to_string().chars().take(200).collect();
        BadBody(format!("the body cannot be read: {message}"))
    }
}

/// Asks for a dispatch to be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelBody {
    /// The run.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// The step; `step[3]` for an instance.
    pub step_id: String,
    /// Which dispatch of it.
    pub dispatch_no: u32,
}

impl CancelBody {
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<CancelBody, BadBody> {
        let body: CancelBody =
            serde_json::from_slice(bytes).map_err(|error| BadBody::of(&error))?;
        check_step(&body.step_id)?;
        Ok(body)
    }

    /// The dispatch that is meant.
    pub fn key(&self) -> Key {
        Key::of(self.run_id, &self.step_id, self.dispatch_no)
    }
}

/// A dispatch, as short as it can be named: SHA-256 over run, step and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// Of a dispatch.
    pub fn of(run: RunId, step: &str, dispatch_no: u32) -> Key {
        // A run has always as many bytes, and a number holds no line's end.
        Key(Sha256::digest(format!("{run}\n{dispatch_no}\n{step}")).into())
    }

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Key> {
        let mut key = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Key(key))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a text has a length that it may have.
fn bounded(name: &str, text: &str, bytes_max: usize) -> Result<(), BadBody> {
    if text.len() > bytes_max {
        return Err(BadBody(format!("`{name}` has more than {bytes_max} bytes")));
    }
    Ok(())
}

fn check_step(step: &str) -> Result<(), BadBody> {
    if step.is_empty() || step.contains(char::is_control) {
        return Err(BadBody("`step_id` is no id of a step".to_owned()));
    }
    bounded("step_id", step, STEP_BYTES_MAX)
}

/// How a run's id is written.
mod run_id {
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;
    use sluice_core::run::id::RunId;

    pub(super) fn serialize<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(run)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(from)?;
        RunId::parse(&text).ok_or_else(|| D::Error::custom("`run_id` is no id of a run"))
    }
}
