//! Behaviour of the scripted adapter at one dispatch.

use crate::normalise::object_in;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Answer, Call, CallErrorCode, Closed, Emission, Request};
use std::future::pending;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct Behaviour {
    /// Delay before anything happens.
    pub(super) delay_ms: u64,
    pub(super) mode: ResponseMode,
    /// The answer, prepared when the script was parsed, so that most requests only clone
    /// it.
    pub(super) answer: Answer,
    /// Whether an object in the text becomes the outputs, because the script has none.
    pub(super) reads_outputs: bool,
}

/// How it arrives at its answer.
#[derive(Debug, Clone)]
pub(super) enum ResponseMode {
    Plain,
    Echo { prefix: String, suffix: String },
    Chunks { chunks: Vec<MockChunk>, delay_ms: u64, hang_after: Option<usize> },
    Hang,
}

/// A part of an answer.
#[derive(Debug, Clone)]
pub(super) enum MockChunk {
    Text(String),
    Media { url: String, mime: String },
}

impl MockChunk {
    fn emission(&self) -> Emission {
        match self.clone() {
            MockChunk::Text(text) => Emission::Text(text),
            MockChunk::Media { url, mime } => Emission::Media { url, mime },
        }
    }
}

impl Behaviour {
    pub(super) fn cost(&self) -> Money {
        self.answer.usage.cost
    }

    /// The answer, if it takes no time.
    pub(super) fn at_once(&self, request: &Request) -> Option<Answer> {
        let quick = self.delay_ms == 0
            && matches!(self.mode, ResponseMode::Plain | ResponseMode::Echo { .. });
        quick.then(|| self.answer(request))
    }

    /// Waits as scripted, then answers. A cancelled call answers at once.
    pub(super) async fn play(&self, request: &Request, call: &dyn Call) -> Answer {
        let played = tokio::select! {
            biased;
            () = call.cancelled() => Err(Closed),
            played = self.pass_time(call) => played,
        };
        match played {
            Ok(()) => self.answer(request),
            Err(Closed) => Answer::failed(CallErrorCode::Cancelled, "cancelled"),
        }
    }

    async fn pass_time(&self, call: &dyn Call) -> Result<(), Closed> {
        pause(self.delay_ms).await;
        match &self.mode {
            ResponseMode::Plain | ResponseMode::Echo { .. } => Ok(()),
            ResponseMode::Hang => pending().await,
            ResponseMode::Chunks { chunks, delay_ms, hang_after } => {
                let spoken = hang_after.unwrap_or(chunks.len());
                for chunk in chunks.iter().take(spoken) {
                    pause(*delay_ms).await;
                    call.emit(chunk.emission()).await?;
                }
                if hang_after.is_some() { pending().await } else { Ok(()) }
            }
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        let ResponseMode::Echo { prefix, suffix } = &self.mode else {
            return self.answer.clone();
        };
        let (newline, stdin) = match &request.stdin {
            Some(stdin) => ("\n", stdin.as_str()),
            None => ("", ""),
        };
        let text = [prefix, &request.message, newline, stdin, suffix].concat();
        let mut answer = self.answer.clone();
        if self.reads_outputs {
            answer.outputs = object_in(&text);
        }
        answer.text = Some(text);
        answer
    }
}

async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
