//! A wire that answers requests with parts of the input, in chunks of any size.

use crate::split_line;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use sluice_bridge::outbound::Request;
use sluice_bridge::outbound::error::OutboundError;
use sluice_bridge::wire::{Incoming, RequestIndex, Wire};
use sluice_core::port::Later;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Ends a response: the next request gets what follows.
const BETWEEN: &[u8] = b"\n====\n";

/// How responses are split into chunks.
#[derive(Debug, Clone, Copy)]
pub enum Pieces {
    /// A single chunk.
    Whole,
    /// Chunks of one to sixteen bytes, derived from this seed.
    Cut(u64),
}

/// Answers from the input.
#[derive(Debug)]
pub struct Scripted {
    answers: Mutex<VecDeque<Vec<u8>>>,
    pieces: Pieces,
}

impl Scripted {
    /// Parses the responses of an input. Each begins with a line of status and media type,
    /// such as `200 text/event-stream`.
    pub fn new(input: &[u8], pieces: Pieces) -> Scripted {
        let mut answers = VecDeque::new();
        let mut rest = input;
        while let Some(at) = rest.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN) {
            answers.push_back(rest[..at].to_vec());
            rest = &rest[at + BETWEEN.len()..];
        }
        answers.push_back(rest.to_vec());
        Scripted { answers: Mutex::new(answers), pieces }
    }
}

impl Wire for Scripted {
    fn open<'a>(
        &'a self,
        _: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let answer = if is_answered(&request.body) {
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
        } else {
            Some(b"202 text/plain\n".to_vec())
        };
        let opened = answer.ok_or_else(|| OutboundError::Unreachable("no answer left".to_owned()));
        let opened = opened.map(|answer| {
            Box::new(ScriptedResponse::new(&answer, self.pieces)) as Box<dyn Incoming>
        });
        Box::pin(std::future::ready(opened))
    }
}

/// Whether a request expects a response: JSON-RPC notifications and replies do not.
fn is_answered(body: &[u8]) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(body) else { return true };
    message.get("jsonrpc").is_none()
        || (message.get("id").is_some() && message.get("method").is_some())
}

struct ScriptedResponse {
    status: u16,
    headers: HeaderMap,
    rest: VecDeque<Vec<u8>>,
}

impl ScriptedResponse {
    fn new(answer: &[u8], pieces: Pieces) -> ScriptedResponse {
        let (head, body) = split_line(answer);
        let (status, kind) = head.split_once(' ').unwrap_or((head, ""));
        let status = status.parse().ok().filter(|status| (200..600).contains(status));
        let kind = HeaderValue::from_str(kind).unwrap_or(HeaderValue::from_static("text/plain"));
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        ScriptedResponse { status: status.unwrap_or(200), headers, rest: cut(body, pieces) }
    }
}

fn cut(body: &[u8], pieces: Pieces) -> VecDeque<Vec<u8>> {
    let Pieces::Cut(mut state) = pieces else { return VecDeque::from([body.to_vec()]) };
    let (mut all, mut rest) = (VecDeque::new(), body);
    while !rest.is_empty() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = ((state >> 60) as usize + 1).min(rest.len());
        all.push_back(rest[..length].to_vec());
        rest = &rest[length..];
    }
    all
}

impl Incoming for ScriptedResponse {
    fn status(&self) -> u16 {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        Box::pin(std::future::ready(Ok(self.rest.pop_front())))
    }
}
