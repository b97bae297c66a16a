//! Writes the traffic with providers to a recording file.
//!
//! A line is written when its exchange has ended, successfully or not. A write error does not
//! fail the call; `finish` reports it.

use crate::limits::RECORDING_BYTES_MAX;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::recording::{
    self, RecordedAnswer, RecordedChunk, RecordedExchange, RecordedFailure, RecordedFile,
    RecordedOutcome, RecordedRequest, RecordedTool, RecordingHeader, ResponseEnd, VERSION,
    redacted,
};
use crate::secret::known;
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::{Incoming, RequestIndex, Wire};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use sluice_core::port::Later;
use sluice_govern::catalog::ToolState;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The recording is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be written.
    #[error("the recording cannot be written: {0}")]
    Unwritable(io::ErrorKind),
    /// The recording exceeds its limit.
    #[error("the recording would be over {RECORDING_BYTES_MAX} bytes")]
    TooLong,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    state: Mutex<RecorderState>,
}

#[derive(Debug)]
struct RecorderState {
    file: BufWriter<File>,
    bytes: usize,
    exchanges: usize,
    error: Option<RecordingError>,
}

impl Recorder {
    /// Creates the recording and truncates an existing file. The file is readable only by
    /// its owner, because it contains prompts and answers.
    pub fn create(path: &Path) -> Result<Arc<Recorder>, RecordingError> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = file.map_err(|error| RecordingError::Unwritable(error.kind()))?;
        let state =
            RecorderState { file: BufWriter::new(file), bytes: 0, exchanges: 0, error: None };
        let recorder = Recorder { state: Mutex::new(state) };
        let mut state = recorder.state();
        state.line(&RecordingHeader { sluice_recording: VERSION });
        match state.error.take() {
            Some(error) => Err(error),
            None => {
                drop(state);
                Ok(Arc::new(recorder))
            }
        }
    }

    /// Records the requests over a wire.
    pub fn wire(self: &Arc<Recorder>, wire: Arc<dyn Wire>) -> Arc<dyn Wire> {
        Arc::new(RecordedWire { recorder: Arc::clone(self), wire })
    }

    /// Records the calls of a tool server.
    pub fn tools(self: &Arc<Recorder>, server: Arc<dyn ToolServer>) -> Arc<dyn ToolServer> {
        Arc::new(RecordedTools { recorder: Arc::clone(self), server })
    }

    /// Returns the number of recorded exchanges, or why the recording is incomplete.
    pub fn finish(&self) -> Result<usize, RecordingError> {
        let mut state = self.state();
        if let Err(error) = state.file.flush() {
            state.error.get_or_insert(RecordingError::Unwritable(error.kind()));
        }
        match &state.error {
            Some(error) => Err(error.clone()),
            None => Ok(state.exchanges),
        }
    }

    fn record(&self, index: RequestIndex<'_>, asked: RecordedRequest, outcome: RecordedOutcome) {
        let step = redacted(index.step);
        let (dispatch_no, number) = (index.dispatch_no, index.number);
        let mut state = self.state();
        state.line(&RecordedExchange { step, dispatch_no, number, request: asked, outcome });
        state.exchanges += 1;
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    fn line(&mut self, line: &impl Serialize) {
        if self.error.is_some() {
            return;
        }
        let mut text = serde_json::to_vec(line).expect("what is kept can be written as JSON");
        text.push(b'\n');
        self.bytes += text.len();
        if self.bytes > RECORDING_BYTES_MAX {
            self.error = Some(RecordingError::TooLong);
            return;
        }
        // Flushed at once, so that a crash loses nothing.
        let encode = self.file.write_all(&text).and_then(|()| self.file.flush());
        if let Err(error) = encode {
            self.error = Some(RecordingError::Unwritable(error.kind()));
        }
    }
}

#[derive(Debug)]
struct RecordedWire {
    recorder: Arc<Recorder>,
    wire: Arc<dyn Wire>,
}

impl Wire for RecordedWire {
    fn is_live(&self) -> bool {
        self.wire.is_live()
    }

    fn reach<'a>(
        &'a self,
        url: &'a str,
        patience: Duration,
    ) -> Later<'a, Result<(), OutboundError>> {
        self.wire.reach(url, patience)
    }

    fn open<'a>(
        &'a self,
        index: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        Box::pin(async move {
            let opened = self.wire.open(index, request).await;
            if index.is_outside_dispatch() {
                return opened;
            }
            // After the call: only then all of its secrets are known.
            let asked = RecordedRequest::request(request);
            match opened {
                Ok(incoming) => Ok(Box::new(RecordedResponse {
                    recorder: Arc::clone(&self.recorder),
                    index: (index.step.to_owned(), index.dispatch_no, index.number),
                    request: Some(asked),
                    incoming,
                    parts: Vec::new(),
                }) as Box<dyn Incoming>),
                Err(error) => {
                    self.recorder.record(index, asked, RecordedOutcome::Failed(failure(&error)));
                    Err(error)
                }
            }
        })
    }
}

/// A response that is recorded while it is read.
struct RecordedResponse {
    recorder: Arc<Recorder>,
    index: (String, u32, u32),
    /// `None` once it is recorded.
    request: Option<RecordedRequest>,
    incoming: Box<dyn Incoming>,
    parts: Vec<Vec<u8>>,
}

impl RecordedResponse {
    fn record(&mut self, end: ResponseEnd) {
        let Some(asked) = self.request.take() else { return };
        let outcome = RecordedOutcome::Answered {
            status: self.incoming.status(),
            headers: recording::answered_headers(self.incoming.headers()),
            chunks: recording::chunks(std::mem::take(&mut self.parts)),
            end,
        };
        let (step, dispatch_no, number) = &self.index;
        let index = RequestIndex { step, dispatch_no: *dispatch_no, number: *number };
        self.recorder.record(index, asked, outcome);
    }
}

impl Incoming for RecordedResponse {
    fn status(&self) -> u16 {
        self.incoming.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.incoming.headers()
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        Box::pin(async move {
            let chunk = self.incoming.chunk().await;
            match &chunk {
                Ok(Some(part)) => self.parts.push(part.clone()),
                Ok(None) => self.record(ResponseEnd::Whole),
                Err(error) => self.record(ResponseEnd::Failed(failure(error))),
            }
            chunk
        })
    }
}

impl Drop for RecordedResponse {
    fn drop(&mut self) {
        self.record(ResponseEnd::Left);
    }
}

fn failure(error: &OutboundError) -> RecordedFailure {
    match error {
        OutboundError::Unreachable(why) => RecordedFailure::Unreached(redacted(why)),
        OutboundError::Late => RecordedFailure::Late,
        OutboundError::Broken => RecordedFailure::Broken,
        OutboundError::TooLong(most) => RecordedFailure::TooLong(*most),
        OutboundError::Refused(refusal) => RecordedFailure::Refused(redacted(&refusal.to_string())),
    }
}

#[derive(Debug)]
struct RecordedTools {
    recorder: Arc<Recorder>,
    server: Arc<dyn ToolServer>,
}

impl RecordedTools {
    fn record(
        &self,
        index: RequestIndex<'_>,
        asked: RecordedRequest,
        answer: Result<Vec<u8>, &ToolServerError>,
    ) {
        let outcome = match answer {
            Ok(text) => RecordedOutcome::Answered {
                status: 200,
                headers: BTreeMap::new(),
                chunks: vec![RecordedChunk::from_bytes(text)],
                end: ResponseEnd::Whole,
            },
            Err(error) => RecordedOutcome::Failed(RecordedFailure::Refused(redacted(&error.0))),
        };
        self.recorder.record(index, asked, outcome);
    }
}

impl ToolServer for RecordedTools {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn reads_only(&self, tool: &str) -> bool {
        self.server.reads_only(tool)
    }

    fn state<'a>(&'a self, tool: &'a str) -> Later<'a, Result<ToolState, ToolServerError>> {
        self.server.state(tool)
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        Box::pin(async move {
            let listed = self.server.tools().await;
            let kept = listed.as_ref().map(|tools| {
                let kept = tools.iter().cloned().map(|tool| RecordedTool {
                    name: tool.name,
                    description: tool.description,
                    input_schema: tool.input_schema,
                    read_only: tool.read_only,
                });
                encode(&kept.collect::<Vec<RecordedTool>>())
            });
            self.record(RequestIndex::OUTSIDE_DISPATCH, RecordedRequest::tools(self.name()), kept);
            listed
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        index: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        Box::pin(async move {
            let answered = self.server.call(tool, input, index).await;
            let kept = answered.as_ref().map(|(answer, structured)| {
                let (text, structured) = (answer.text.clone(), structured.clone());
                let files = answer.files.iter().map(RecordedFile::from).collect();
                encode(&RecordedAnswer { text, failed: answer.failed, structured, files })
            });
            self.record(index, RecordedRequest::tool(tool, input), kept);
            answered
        })
    }
}

fn encode(kept: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_vec(kept).expect("what is kept can be written as JSON");
    let redacted = known::process().scrub().bytes(&text);
    redacted.unwrap_or(text)
}
