//! Writes the traffic with providers to a recording file.
//!
//! A line is written when its exchange has ended, successfully or not. A write error does not
//! fail the call; `finish` reports it.

use crate::limits::RECORDING_BYTES_MAX;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::recording::{
    self, Asked, Chunk, End, Exchange, Failure, Header, KeptAnswer, KeptFile, KeptTool, Outcome,
    VERSION,
};
use crate::secret::known;
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolTrouble};
use crate::wire::{Incoming, Place, Wire};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use sluice_core::port::Later;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The recording is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: BufWriter<File>,
    bytes: usize,
    exchanges: usize,
    trouble: Option<NotKept>,
}

impl Recorder {
    /// Creates the recording and truncates an existing file. The file is readable only by
    /// its owner, because it contains prompts and answers.
    pub fn create(path: &Path) -> Result<Arc<Recorder>, NotKept> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = file.map_err(|error| NotKept::Unwritable(error.kind()))?;
        let state = State { file: BufWriter::new(file), bytes: 0, exchanges: 0, trouble: None };
        let recorder = Recorder { state: Mutex::new(state) };
        let mut state = recorder.state();
        state.line(&Header { sluice_recording: VERSION });
        match state.trouble.take() {
            Some(trouble) => Err(trouble),
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
    pub fn finish(&self) -> Result<usize, NotKept> {
        let mut state = self.state();
        if let Err(error) = state.file.flush() {
            state.trouble.get_or_insert(NotKept::Unwritable(error.kind()));
        }
        match &state.trouble {
            Some(trouble) => Err(trouble.clone()),
            None => Ok(state.exchanges),
        }
    }

    fn keep(&self, place: Place<'_>, asked: Asked, outcome: Outcome) {
        let step = place.step.to_owned();
        let (dispatch_no, number) = (place.dispatch_no, place.number);
        let mut state = self.state();
        state.line(&Exchange { step, dispatch_no, number, asked, outcome });
        state.exchanges += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, line: &impl Serialize) {
        if self.trouble.is_some() {
            return;
        }
        let mut text = serde_json::to_vec(line).expect("what is kept can be written as JSON");
        text.push(b'\n');
        self.bytes += text.len();
        if self.bytes > RECORDING_BYTES_MAX {
            self.trouble = Some(NotKept::TooLong);
            return;
        }
        // Flushed at once, so that a crash loses nothing.
        let written = self.file.write_all(&text).and_then(|()| self.file.flush());
        if let Err(error) = written {
            self.trouble = Some(NotKept::Unwritable(error.kind()));
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
        place: Place<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        Box::pin(async move {
            let opened = self.wire.open(place, request).await;
            if place.is_aside() {
                return opened;
            }
            // After the call: only then all of its secrets are known.
            let asked = Asked::request(request);
            match opened {
                Ok(incoming) => Ok(Box::new(Recorded {
                    recorder: Arc::clone(&self.recorder),
                    place: (place.step.to_owned(), place.dispatch_no, place.number),
                    asked: Some(asked),
                    incoming,
                    parts: Vec::new(),
                }) as Box<dyn Incoming>),
                Err(error) => {
                    self.recorder.keep(place, asked, Outcome::Failed(failure(&error)));
                    Err(error)
                }
            }
        })
    }
}

/// A response that is recorded while it is read.
struct Recorded {
    recorder: Arc<Recorder>,
    place: (String, u32, u32),
    /// `None` once it is recorded.
    asked: Option<Asked>,
    incoming: Box<dyn Incoming>,
    parts: Vec<Vec<u8>>,
}

impl Recorded {
    fn keep(&mut self, end: End) {
        let Some(asked) = self.asked.take() else { return };
        let outcome = Outcome::Answered {
            status: self.incoming.status(),
            headers: recording::answered_headers(self.incoming.headers()),
            chunks: recording::chunks(std::mem::take(&mut self.parts)),
            end,
        };
        let (step, dispatch_no, number) = &self.place;
        let place = Place { step, dispatch_no: *dispatch_no, number: *number };
        self.recorder.keep(place, asked, outcome);
    }
}

impl Incoming for Recorded {
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
                Ok(None) => self.keep(End::Whole),
                Err(error) => self.keep(End::Failed(failure(error))),
            }
            chunk
        })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.keep(End::Left);
    }
}

/// Redacts an error message.
fn clean(why: &str) -> String {
    known::process().scrub().text(why).into_owned()
}

fn failure(error: &OutboundError) -> Failure {
    match error {
        OutboundError::Unreachable(why) => Failure::Unreached(clean(why)),
        OutboundError::Late => Failure::Late,
        OutboundError::Broken => Failure::Broken,
        OutboundError::TooLong(most) => Failure::TooLong(*most),
        OutboundError::Refused(refusal) => Failure::Refused(clean(&refusal.to_string())),
    }
}

#[derive(Debug)]
struct RecordedTools {
    recorder: Arc<Recorder>,
    server: Arc<dyn ToolServer>,
}

impl RecordedTools {
    fn keep(&self, place: Place<'_>, asked: Asked, answer: Result<Vec<u8>, &ToolTrouble>) {
        let outcome = match answer {
            Ok(text) => Outcome::Answered {
                status: 200,
                headers: BTreeMap::new(),
                chunks: vec![Chunk::of(text)],
                end: End::Whole,
            },
            Err(trouble) => Outcome::Failed(Failure::Refused(clean(&trouble.0))),
        };
        self.recorder.keep(place, asked, outcome);
    }
}

impl ToolServer for RecordedTools {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn reads_only(&self, tool: &str) -> bool {
        self.server.reads_only(tool)
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
        Box::pin(async move {
            let listed = self.server.tools().await;
            let kept = listed.as_ref().map(|tools| {
                let kept = tools.iter().cloned().map(|tool| KeptTool {
                    name: tool.name,
                    description: tool.description,
                    input_schema: tool.input_schema,
                    read_only: tool.read_only,
                });
                written(&kept.collect::<Vec<KeptTool>>())
            });
            self.keep(Place::ASIDE, Asked::tools(self.name()), kept);
            listed
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        Box::pin(async move { Ok(self.call_whole(tool, input, place).await?.0) })
    }

    fn call_whole<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: Place<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolTrouble>> {
        Box::pin(async move {
            let answered = self.server.call_whole(tool, input, place).await;
            let kept = answered.as_ref().map(|(answer, structured)| {
                let (text, structured) = (answer.text.clone(), structured.clone());
                let files = answer.files.iter().map(KeptFile::from).collect();
                written(&KeptAnswer { text, failed: answer.failed, structured, files })
            });
            self.keep(place, Asked::tool(tool, input), kept);
            answered
        })
    }
}

fn written(kept: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_vec(kept).expect("what is kept can be written as JSON");
    let clean = known::process().scrub().bytes(&text);
    clean.unwrap_or(text)
}
