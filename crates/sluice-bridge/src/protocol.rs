//! Protocol between engines and bridges: the bodies of dispatches, cancellations and results.
//!
//! Both sides use these types, so that each can read what the other writes. Unknown fields are
//! ignored, because the other side may be newer.
//!
//! INVARIANT: everything that is read is bounded, every length and every number.
//! INVARIANT: implausible figures do not reject a result: it is accepted, and the core rejects
//! the figures.

pub mod callback;
pub mod dispatch;
mod figure;
mod non_finite;
pub mod parts;
#[cfg(test)]
mod tests;

use crate::limits::STEP_BYTES_MAX;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sluice_core::id::RunId;
use std::fmt;

pub(crate) const DISPATCH_PATH: &str = "/api/v2/dispatch";
/// Former path for dispatches.
pub(crate) const DISPATCH_PATH_OLD: &str = "/api/workflow/dispatch";
/// Path for synchronous dispatches.
pub(crate) const SYNC_PATH: &str = "/api/v2/dispatch/sync";
/// Path for cancellations.
pub(crate) const CANCEL_PATH: &str = "/api/v2/cancel";
/// Path for health checks.
pub(crate) const HEALTH_PATH: &str = "/api/v2/health";
/// Path of the event stream.
pub(crate) const EVENTS_PATH: &str = "/api/v2/events";
/// Header with the gateway's token.
pub const GATEWAY_TOKEN: &str = "x-gateway-token";
/// Header with the dispatch's token.
pub const DISPATCH_TOKEN: &str = "x-dispatch-token";

/// A malformed body. The message is lower case, without full stop, and does not repeat the
/// body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadBody(pub String);

impl BadBody {
    fn from_json_error(error: &serde_json::Error) -> BadBody {
        // The parser's message names fields and positions; of the body it contains at
        // most an invalid token.
        let message: String = error.to_string().chars().take(200).collect();
        BadBody(format!("the body is not valid: {message}"))
    }
}

/// Body of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelBody {
    /// Run of the step.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// Step id; `step[3]` for an instance.
    pub step_id: String,
    /// Number of the step's dispatch.
    pub dispatch_no: u32,
}

impl CancelBody {
    /// Parses a body.
    pub fn read(bytes: &[u8]) -> Result<CancelBody, BadBody> {
        let body: CancelBody =
            serde_json::from_slice(bytes).map_err(|error| BadBody::from_json_error(&error))?;
        check_step(&body.step_id)?;
        Ok(body)
    }

    /// Identifies the dispatch.
    pub fn key(&self) -> DispatchHash {
        DispatchHash::new(self.run_id, &self.step_id, self.dispatch_no)
    }
}

/// Identifies a dispatch: SHA-256 of run, step and dispatch number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DispatchHash([u8; 32]);

impl DispatchHash {
    /// Identifies the given dispatch.
    pub fn new(run: RunId, step: &str, dispatch_no: u32) -> DispatchHash {
        // Unambiguous, because run ids have a fixed length and numbers contain no line
        // break.
        DispatchHash(Sha256::digest(format!("{run}\n{dispatch_no}\n{step}")).into())
    }

    /// Parses the `Display` form.
    pub fn parse(text: &str) -> Option<DispatchHash> {
        let mut key = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(DispatchHash(key))
    }
}

impl fmt::Display for DispatchHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DispatchHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks the length of a text.
fn bounded(name: &str, text: &str, bytes_max: usize) -> Result<(), BadBody> {
    if text.len() > bytes_max {
        return Err(BadBody(format!("`{name}` has more than {bytes_max} bytes")));
    }
    Ok(())
}

fn check_step(step: &str) -> Result<(), BadBody> {
    if step.is_empty() || step.contains(char::is_control) {
        return Err(BadBody("`step_id` is not a valid step id".to_owned()));
    }
    bounded("step_id", step, STEP_BYTES_MAX)
}

/// Serialises a run id.
mod run_id {
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;
    use sluice_core::id::RunId;

    pub(super) fn serialize<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(run)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(from)?;
        RunId::parse(&text).ok_or_else(|| D::Error::custom("`run_id` is not a valid run id"))
    }
}
