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
use crate::outbound::error::{OutboundError, Refusal};
use crate::recording::{self, Asked, Chunk, End, Exchange, Failure, Header, Outcome, VERSION};
use crate::tools::{ToolServer, ToolTrouble};
use crate::wire::{Incoming, Place, Wire};
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    exchanges: Vec<(Exchange, Use)>,
    diverged: Vec<String>,
    /// Number of divergences beyond the limit.
    more: usize,
}

/// Whether an exchange was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Open,
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
        let Some(Header { sluice_recording }) = header else { return Err(NoRecording::NotOne) };
        if sluice_recording != VERSION {
            return Err(NoRecording::Version(sluice_recording));
        }
        let mut state = State::default();
        for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let bad = NoRecording::BadLine(at + 2);
            let exchange: Exchange = serde_json::from_slice(line).map_err(|_| bad.clone())?;
            if let Outcome::Answered { chunks, .. } = &exchange.outcome
                && chunks.iter().any(|chunk| chunk.bytes().is_none())
            {
                return Err(bad);
            }
            state.exchanges.push((exchange, Use::Open));
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
        let open = state
            .exchanges
            .iter()
            .filter(|(exchange, used)| *used == Use::Open && exchange.asked.method != "TOOLS");
        open.map(|(exchange, _)| exchange.name()).collect()
    }

    /// The recorded outcome of a request, if the same request was recorded. Otherwise the
    /// divergence is recorded and returned.
    fn find(&self, place: Place<'_>, asked: &Asked) -> Result<Outcome, String> {
        let mut state = self.state();
        let mut first: Option<(usize, Vec<String>)> = None;
        for (at, (exchange, used)) in state.exchanges.iter().enumerate() {
            // Requests and tool calls are numbered separately.
            let alike = (exchange.asked.method == "TOOL") == (asked.method == "TOOL");
            if *used == Use::Used || !alike || !exchange.is_at(place) {
                continue;
            }
            let differences = compare::differences(&exchange.asked, asked);
            let same = differences.is_empty();
            if same || first.is_none() {
                first = Some((at, differences));
            }
            if same {
                break;
            }
        }
        let Some((at, differences)) = first else {
            return Err(state.note(place, asked, "it is not in the recording"));
        };
        state.exchanges[at].1 = Use::Used;
        if differences.is_empty() {
            return Ok(state.exchanges[at].0.outcome.clone());
        }
        Err(state.note(place, asked, &differences.join("; ")))
    }

    /// The last recorded tool list of a server.
    fn list(&self, asked: &Asked) -> Result<Outcome, String> {
        let mut state = self.state();
        let of = |(exchange, _): &&(Exchange, Use)| {
            exchange.asked.method == asked.method && exchange.asked.url == asked.url
        };
        if let Some((exchange, _)) = state.exchanges.iter().rev().find(of) {
            return Ok(exchange.outcome.clone());
        }
        Err(state.note(Place::ASIDE, asked, "it is not in the recording"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, place: Place<'_>, asked: &Asked, what: &str) -> String {
        let told = format!("{}: {what}", recording::named(place, asked));
        if self.diverged.len() < DIFFERENCES_MAX {
            self.diverged.push(told.clone());
        } else {
            self.more += 1;
        }
        format!("{} at {told}", ToolTrouble::DIVERGED)
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
        place: Place<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let found = if place.is_aside() {
            let (headers, chunks) = (BTreeMap::new(), Vec::new());
            Ok(Outcome::Answered { status: 200, headers, chunks, end: End::Whole })
        } else {
            self.0.find(place, &Asked::request(request))
        };
        let opened = match found {
            Err(why) => Err(Refusal::Diverged(why).into()),
            Ok(Outcome::Failed(failure)) => Err(error(failure)),
            Ok(Outcome::Answered { status, headers, chunks, end }) => {
                let (headers, chunks) = (header_map(headers), chunks.into());
                Ok(Box::new(Replayed { status, headers, chunks, end }) as Box<dyn Incoming>)
            }
        };
        Box::pin(std::future::ready(opened))
    }
}

/// A recorded response.
struct Replayed {
    status: u16,
    headers: HeaderMap,
    chunks: VecDeque<Chunk>,
    end: End,
}

impl Incoming for Replayed {
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
                End::Whole => Ok(None),
                // The recorded caller stopped here, so the rest is unknown.
                End::Left => Err(OutboundError::Broken),
                End::Failed(failure) => Err(error(failure.clone())),
            },
        };
        Box::pin(std::future::ready(next))
    }
}

fn error(failure: Failure) -> OutboundError {
    match failure {
        Failure::Unreachable => {
            OutboundError::Unreachable("the recording has no reason".to_owned())
        }
        Failure::Unreached(why) => OutboundError::Unreachable(why),
        Failure::Late => OutboundError::Late,
        Failure::Broken => OutboundError::Broken,
        Failure::TooLong(most) => OutboundError::TooLong(most),
        Failure::Refused(why) => Refusal::Recorded(why).into(),
    }
}

fn header_map(headers: BTreeMap<String, String>) -> HeaderMap {
    let read = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.into_iter().filter_map(read).collect()
}
