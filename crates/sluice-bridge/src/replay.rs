//! Answers requests from a recording, and reports where a request differs from it.
//!
//! A request is compared with the recorded one of the same step, dispatch and number: method,
//! URL and body. Values that change in every run (run ids, dispatch keys, traces) and headers
//! are ignored.
//!
//! INVARIANT: no server is called. A request that is not in the recording fails.

mod compare;
mod tools;

#[cfg(test)]
mod tests;

use crate::limits::{DIFFERENCES_MAX, RECORDING_BYTES_MAX};
use crate::outbound::Request;
use crate::outbound::error::{OutboundError, OutboundRefusal};
use crate::recording::{
    self, RecordedChunk, RecordedExchange, RecordedFailure, RecordedOutcome, RecordedRequest,
    RecordingHeader, ResponseEnd, VERSION,
};
use crate::tools::{ToolServer, ToolServerError};
use crate::wire::{Incoming, RequestIndex, Wire};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sluice_core::port::Later;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRecording {
    /// The file cannot be read.
    #[error("the recording cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// The file exceeds the limit.
    #[error("the recording is over {RECORDING_BYTES_MAX} bytes")]
    TooLong,
    /// The file is not a recording.
    #[error("the file is not a recording made by `--record`")]
    NotOne,
    /// The format version is not supported.
    #[error("the recording has format version {0}, but only version {VERSION} is supported")]
    Version(u32),
    /// A line is malformed.
    #[error("line {0} of the recording is not a valid exchange")]
    BadLine(usize),
}

/// A recording that is being replayed.
#[derive(Debug)]
pub struct Replay {
    state: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    exchanges: Vec<(RecordedExchange, ExchangeUse)>,
    diverged: Vec<String>,
    /// Number of divergences beyond the limit.
    more: usize,
}

/// Whether an exchange was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeUse {
    Unused,
    Used,
}

impl Replay {
    /// Loads a recording.
    pub fn open(path: &Path) -> Result<Arc<Replay>, NoRecording> {
        let unreadable = |error: io::Error| NoRecording::Unreadable(error.kind());
        let file = File::open(path).map_err(unreadable)?;
        let most = u64::try_from(RECORDING_BYTES_MAX + 1).expect("the bound is small");
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > RECORDING_BYTES_MAX {
            return Err(NoRecording::TooLong);
        }
        Replay::read(&bytes)
    }

    /// Parses a recording.
    pub fn read(bytes: &[u8]) -> Result<Arc<Replay>, NoRecording> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let header = lines.next().and_then(|line| serde_json::from_slice(line).ok());
        let Some(RecordingHeader { sluice_recording }) = header else {
            return Err(NoRecording::NotOne);
        };
        if sluice_recording != VERSION {
            return Err(NoRecording::Version(sluice_recording));
        }
        let mut state = ReplayState::default();
        for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let bad = NoRecording::BadLine(at + 2);
            let exchange: RecordedExchange =
                serde_json::from_slice(line).map_err(|_| bad.clone())?;
            if let RecordedOutcome::Answered { chunks, .. } = &exchange.outcome
                && chunks.iter().any(|chunk| chunk.bytes().is_none())
            {
                return Err(bad);
            }
            state.exchanges.push((exchange, ExchangeUse::Unused));
        }
        Ok(Arc::new(Replay { state: Mutex::new(state) }))
    }

    /// A wire that answers from the recording.
    pub fn wire(self: &Arc<Replay>) -> Arc<dyn Wire> {
        Arc::new(ReplayedWire(Arc::clone(self)))
    }

    /// A tool server that answers from the recording.
    pub fn tools(self: &Arc<Replay>, server: &str) -> Arc<dyn ToolServer> {
        tools::server(Arc::clone(self), server)
    }

    /// Requests that differ from the recording, in order.
    pub fn diverged(&self) -> Vec<String> {
        let state = self.state();
        let mut all = state.diverged.clone();
        if state.more > 0 {
            all.push(format!("and {} more", state.more));
        }
        all
    }

    /// Recorded exchanges that were not requested, except tool lists.
    pub fn unused(&self) -> Vec<String> {
        let state = self.state();
        let open = state.exchanges.iter().filter(|(exchange, used)| {
            *used == ExchangeUse::Unused && exchange.request.method != "TOOLS"
        });
        open.map(|(exchange, _)| exchange.name()).collect()
    }

    /// The recorded outcome of a request, if the same request was recorded. Otherwise the
    /// divergence is recorded and returned.
    fn find(
        &self,
        index: RequestIndex<'_>,
        request: &RecordedRequest,
    ) -> Result<RecordedOutcome, String> {
        let mut state = self.state();
        let mut first: Option<(usize, Vec<String>)> = None;
        for (at, (exchange, used)) in state.exchanges.iter().enumerate() {
            // Requests and tool calls are numbered separately.
            let alike = (exchange.request.method == "TOOL") == (request.method == "TOOL");
            if *used == ExchangeUse::Used || !alike || !exchange.matches(index) {
                continue;
            }
            let differences = compare::differences(&exchange.request, request);
            let same = differences.is_empty();
            if same || first.is_none() {
                first = Some((at, differences));
            }
            if same {
                break;
            }
        }
        let Some((at, differences)) = first else {
            return Err(state.record_divergence(index, request, "it is not in the recording"));
        };
        state.exchanges[at].1 = ExchangeUse::Used;
        if differences.is_empty() {
            return Ok(state.exchanges[at].0.outcome.clone());
        }
        Err(state.record_divergence(index, request, &differences.join("; ")))
    }

    /// The last recorded tool list of a server.
    fn list(&self, request: &RecordedRequest) -> Result<RecordedOutcome, String> {
        let mut state = self.state();
        let of = |(exchange, _): &&(RecordedExchange, ExchangeUse)| {
            exchange.request.method == request.method && exchange.request.url == request.url
        };
        if let Some((exchange, _)) = state.exchanges.iter().rev().find(of) {
            return Ok(exchange.outcome.clone());
        }
        Err(state.record_divergence(
            RequestIndex::OUTSIDE_DISPATCH,
            request,
            "it is not in the recording",
        ))
    }

    fn state(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplayState {
    fn record_divergence(
        &mut self,
        index: RequestIndex<'_>,
        request: &RecordedRequest,
        what: &str,
    ) -> String {
        let described = format!("{}: {what}", recording::request_name(index, request));
        if self.diverged.len() < DIFFERENCES_MAX {
            self.diverged.push(described.clone());
        } else {
            self.more += 1;
        }
        format!("{} at {described}", ToolServerError::DIVERGED)
    }
}

#[derive(Debug)]
struct ReplayedWire(Arc<Replay>);

impl Wire for ReplayedWire {
    fn is_live(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        index: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let found = if index.is_outside_dispatch() {
            let (headers, chunks) = (BTreeMap::new(), Vec::new());
            Ok(RecordedOutcome::Answered { status: 200, headers, chunks, end: ResponseEnd::Whole })
        } else {
            self.0.find(index, &RecordedRequest::request(request))
        };
        let opened = match found {
            Err(why) => Err(OutboundRefusal::Diverged(why).into()),
            Ok(RecordedOutcome::Failed(failure)) => Err(error(failure)),
            Ok(RecordedOutcome::Answered { status, headers, chunks, end }) => {
                let (headers, chunks) = (header_map(headers), chunks.into());
                Ok(Box::new(ReplayedResponse { status, headers, chunks, end }) as Box<dyn Incoming>)
            }
        };
        Box::pin(std::future::ready(opened))
    }
}

/// A recorded response.
struct ReplayedResponse {
    status: u16,
    headers: HeaderMap,
    chunks: VecDeque<RecordedChunk>,
    end: ResponseEnd,
}

impl Incoming for ReplayedResponse {
    fn status(&self) -> u16 {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        let next = match self.chunks.pop_front() {
            Some(chunk) => Ok(chunk.bytes()),
            None => match &self.end {
                ResponseEnd::Whole => Ok(None),
                // The recorded caller stopped here, so the rest is unknown.
                ResponseEnd::Left => Err(OutboundError::Broken),
                ResponseEnd::Failed(failure) => Err(error(failure.clone())),
            },
        };
        Box::pin(std::future::ready(next))
    }
}

fn error(failure: RecordedFailure) -> OutboundError {
    match failure {
        RecordedFailure::Unreachable => {
            OutboundError::Unreachable("the recording has no reason".to_owned())
        }
        RecordedFailure::Unreached(why) => OutboundError::Unreachable(why),
        RecordedFailure::Late => OutboundError::Late,
        RecordedFailure::Broken => OutboundError::Broken,
        RecordedFailure::TooLong(most) => OutboundError::TooLong(most),
        RecordedFailure::Refused(why) => OutboundRefusal::Recorded(why).into(),
    }
}

fn header_map(headers: BTreeMap<String, String>) -> HeaderMap {
    let read = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.into_iter().filter_map(read).collect()
}
