//! Format of a spool file: the record of one dispatch.

use crate::protocol::DispatchHash;
use crate::protocol::callback::CallbackBody;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::parts::PartsBody;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sluice_core::id::RunId;

/// Start of a file, followed by the hash of the rest.
const HEAD: &str = "sluice-spool 1 ";

/// State of a recorded dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpoolState {
    Accepted,
    /// There is a result that the engine does not have.
    Finished,
    Delivered,
    /// The engine rejected the result, or it expired.
    GivenUp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpoolRecord {
    pub(crate) state: SpoolState,
    /// Time of the last state change, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) run: String,
    pub(crate) step: String,
    pub(crate) dispatch_no: u32,
    pub(crate) begun_ms: u64,
    pub(crate) callback_url: Option<String>,
    /// Token that authorises the callback.
    pub(crate) dispatch_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parts_url: Option<String>,
    /// Parts of the answer that the engine must receive before the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<PartsBody>,
    /// Body of the dispatch, until it has a result.
    pub(crate) dispatch: Option<DispatchBody>,
    pub(crate) result: Option<CallbackBody>,
}

impl SpoolRecord {
    /// Record of a dispatch that was just accepted.
    pub(crate) fn accepted(body: &DispatchBody, now_ms: u64) -> SpoolRecord {
        SpoolRecord {
            state: SpoolState::Accepted,
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

    /// Adds a result and the parts that precede it; drops the dispatch body.
    pub(crate) fn finished(
        self,
        result: CallbackBody,
        parts: Vec<PartsBody>,
        now_ms: u64,
    ) -> SpoolRecord {
        let (state, at_ms) = (SpoolState::Finished, now_ms);
        SpoolRecord { state, at_ms, parts, dispatch: None, result: Some(result), ..self }
    }

    /// Changes the state; drops the token and the parts, which are no longer needed.
    pub(crate) fn with_state(self, state: SpoolState, now_ms: u64) -> SpoolRecord {
        SpoolRecord { state, at_ms: now_ms, dispatch_token: None, parts: Vec::new(), ..self }
    }

    /// The record as it is record in memory.
    pub(crate) fn without_result(self) -> SpoolRecord {
        SpoolRecord { dispatch: None, result: None, parts: Vec::new(), ..self }
    }

    pub(crate) fn key(&self) -> DispatchHash {
        DispatchHash::new(self.run(), &self.step, self.dispatch_no)
    }

    pub(crate) fn run(&self) -> RunId {
        RunId::parse(&self.run).expect("a run's id is checked when it is read")
    }

    /// Encodes the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("a dispatch can be written as it was read");
        let mut bytes = header(&body).into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Decodes a file; `None` if the format is unknown or the file is incomplete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<SpoolRecord> {
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let (found, body) = bytes.split_at(line + 1);
        if found != header(body).as_bytes() {
            return None;
        }
        let record: SpoolRecord = serde_json::from_slice(body).ok()?;
        let right = match record.state {
            SpoolState::Accepted => record.dispatch.is_some(),
            SpoolState::Finished | SpoolState::Delivered | SpoolState::GivenUp => {
                record.result.is_some()
            }
        };
        (right && RunId::parse(&record.run).is_some()).then_some(record)
    }
}

fn header(body: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut head = HEAD.to_owned();
    for byte in Sha256::digest(body) {
        write!(head, "{byte:02x}").expect("a text takes what is written to it");
    }
    head.push('\n');
    head
}
