//! What is remembered of one dispatch, and how it is written.

use crate::protocol::Key;
use crate::protocol::callback::CallbackBody;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::parts::PartsBody;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sluice_core::run::id::RunId;

/// What a file begins with, before the hash of the rest.
const HEAD: &str = "sluice-spool 1 ";

/// How far a dispatch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It is worked on.
    Accepted,
    /// There is a result that nobody has yet.
    Finished,
    /// Somebody has the result.
    Delivered,
    /// Nobody takes the result.
    GivenUp,
}

/// What is remembered of one dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// How far it has come.
    pub(crate) state: State,
    /// Since when, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The run.
    pub(crate) run: String,
    /// The step.
    pub(crate) step: String,
    /// Which dispatch of it.
    pub(crate) dispatch_no: u32,
    /// When it was begun.
    pub(crate) begun_ms: u64,
    /// Where its result goes.
    pub(crate) callback_url: Option<String>,
    /// What the result must show.
    pub(crate) dispatch_token: Option<String>,
    /// Where parts of the answer go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parts_url: Option<String>,
    /// Parts of the answer that the engine must have before the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<PartsBody>,
    /// What was asked; while it is worked on.
    pub(crate) dispatch: Option<DispatchBody>,
    /// What came of it; from then on.
    pub(crate) result: Option<CallbackBody>,
}

impl Kept {
    /// Of a dispatch that has just come.
    pub(crate) fn accepted(body: &DispatchBody, now_ms: u64) -> Kept {
        Kept {
            state: State::Accepted,
            at_ms: now_ms,
            run: body.run_id.to_string(),
            step: body.step_id.clone(),
            dispatch_no: body.dispatch_no,
            begun_ms: now_ms,
            callback_url: body.callback_url.clone(),
            dispatch_token: body.dispatch_token.clone(),
            parts_url: body.parts_url.clone(),
            parts: Vec::new(),
            dispatch: Some(body.clone()),
            result: None,
        }
    }

    /// The same with a result, and the parts that go before it. What was asked is
    /// forgotten.
    pub(crate) fn finished(self, result: CallbackBody, parts: Vec<PartsBody>, now_ms: u64) -> Kept {
        let (state, at_ms) = (State::Finished, now_ms);
        Kept { state, at_ms, parts, dispatch: None, result: Some(result), ..self }
    }

    /// The same, further on. A token that is of no more use is forgotten.
    pub(crate) fn now(self, state: State, now_ms: u64) -> Kept {
        Kept { state, at_ms: now_ms, dispatch_token: None, parts: Vec::new(), ..self }
    }

    /// The same, as short as it is kept in memory.
    pub(crate) fn without_result(self) -> Kept {
        Kept { dispatch: None, result: None, parts: Vec::new(), ..self }
    }

    /// The dispatch.
    pub(crate) fn key(&self) -> Key {
        Key::of(self.run(), &self.step, self.dispatch_no)
    }

    /// The run.
    pub(crate) fn run(&self) -> RunId {
        RunId::parse(&self.run).expect("a run's id is checked when it is read")
    }

    /// As a file holds it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("a dispatch can be written as it was read");
        let mut bytes = head(&body).into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads a file; none if it is not one of ours, or not whole.
    pub(crate) fn read(bytes: &[u8]) -> Option<Kept> {
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let (found, body) = bytes.split_at(line + 1);
        if found != head(body).as_bytes() {
            return None;
        }
        let kept: Kept = serde_json::from_slice(body).ok()?;
        let right = match kept.state {
            State::Accepted => kept.dispatch.is_some(),
            State::Finished | State::Delivered | State::GivenUp => kept.result.is_some(),
        };
        (right && RunId::parse(&kept.run).is_some()).then_some(kept)
    }
}

fn head(body: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut head = HEAD.to_owned();
    for byte in Sha256::digest(body) {
        write!(head, "{byte:02x}").expect("a text takes what is written to it");
    }
    head.push('\n');
    head
}
