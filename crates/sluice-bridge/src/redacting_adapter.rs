//! An adapter that wraps another one and redacts secrets in everything it returns.
//!
//! A provider may repeat the key that it received: in an answer, in an error, or split over
//! several pieces of a stream. Everything that leaves the wrapped adapter passes through this
//! one.
//!
//! INVARIANT: of a text that arrives in pieces, only as much is held back as could still become
//! a secret, and the joined pieces equal the redacted whole.

#[cfg(test)]
mod tests;

use crate::secret::known::KnownSecrets;
use crate::secret::scrub::{Scrub, ScrubStream};
use serde_json::{Map, Value};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, Capabilities, Closed, Emission, Execution, Health, Process, Quote,
    Recall, Request, ToolUse, ToolVerdict,
};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// An adapter that redacts the secrets of the wrapped one.
pub struct RedactingAdapter {
    inner: Arc<dyn Adapter>,
    known: &'static KnownSecrets,
}

impl RedactingAdapter {
    /// Redacts the known secrets in everything that `inner` returns.
    pub fn new(inner: Arc<dyn Adapter>, known: &'static KnownSecrets) -> RedactingAdapter {
        RedactingAdapter { inner, known }
    }
}

impl Adapter for RedactingAdapter {
    fn provider(&self) -> &'static str {
        self.inner.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> Later<'_, Health> {
        self.inner.health()
    }

    fn quote(&self, step: &str) -> Quote {
        self.inner.quote(step)
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            let clean = RedactingCall { call, known: self.known, flow: Mutex::default() };
            let execution = self.inner.execute(request, &clean).await;
            clean.end().await;
            match execution {
                Execution::Accepted => Execution::Accepted,
                Execution::Done(mut answer) => {
                    scrub_answer(&self.known.scrub(), &mut answer);
                    Execution::Done(answer)
                }
            }
        })
    }

    fn recall<'a>(&'a self, dispatch: &'a Recall) -> Later<'a, ()> {
        self.inner.recall(dispatch)
    }

    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        self.inner.stop_survivor(process)
    }
}

/// The engine's `Call`, with redaction.
struct RedactingCall<'a> {
    call: &'a dyn Call,
    known: &'static KnownSecrets,
    flow: Mutex<ScrubStream>,
}

impl RedactingCall<'_> {
    /// Emits what was held back, at the end of the answer.
    async fn end(&self) {
        let rest =
            self.flow.lock().unwrap_or_else(PoisonError::into_inner).end(&self.known.scrub());
        if !rest.is_empty() {
            // A closed call needs no more text.
            let _ = self.call.emit(Emission::Text(rest)).await;
        }
    }
}

impl Call for RedactingCall<'_> {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        let scrub = self.known.scrub();
        let emission = match emission {
            Emission::Text(piece) => {
                let mut flow = self.flow.lock().unwrap_or_else(PoisonError::into_inner);
                let text = flow.push(&scrub, &piece);
                if text.is_empty() && !piece.is_empty() {
                    return Box::pin(std::future::ready(Ok(())));
                }
                Emission::Text(text)
            }
            whole => scrub_emission(&scrub, whole),
        };
        self.call.emit(emission)
    }

    fn tool(&self, mut wanted: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        scrub_tool_use(&self.known.scrub(), &mut wanted);
        self.call.tool(wanted)
    }

    fn cancelled(&self) -> Later<'_, ()> {
        self.call.cancelled()
    }
}

/// Redacts what an adapter emits.
fn scrub_emission(scrub: &Scrub, emission: Emission) -> Emission {
    let clean = |text: String| match scrub.text(&text) {
        Cow::Owned(clean) => clean,
        Cow::Borrowed(_) => text,
    };
    match emission {
        Emission::Text(text) => Emission::Text(clean(text)),
        Emission::Media { url, mime } => Emission::Media { url: clean(url), mime: clean(mime) },
        Emission::Log(line) => Emission::Log(clean(line)),
        Emission::ToolEnded(mut ended) => {
            ended.id = clean(ended.id);
            ended.tool = clean(ended.tool);
            if let Some(content) = &mut ended.content {
                content.text = content.text.take().map(clean);
                if let Some(structured) = &mut content.structured {
                    scrub.value(structured);
                }
            }
            Emission::ToolEnded(ended)
        }
        Emission::Process(process) => Emission::Process(process),
    }
}

/// Redacts a batch of parts, also where a secret spans several texts. The number of parts stays
/// the same, because parts are numbered.
pub fn scrub_parts(scrub: &Scrub, parts: Vec<Emission>) -> Vec<Emission> {
    let mut flow = ScrubStream::default();
    let mut clean: Vec<Emission> = Vec::with_capacity(parts.len());
    for part in parts {
        clean.push(match part {
            Emission::Text(text) => Emission::Text(flow.push(scrub, &text)),
            whole => scrub_emission(scrub, whole),
        });
    }
    let rest = flow.end(scrub);
    let last = clean.iter_mut().rev().find_map(|part| match part {
        Emission::Text(text) => Some(text),
        _ => None,
    });
    if let Some(last) = last {
        last.push_str(&rest);
    }
    clean
}

/// Redacts a tool call that a model requests.
pub fn scrub_tool_use(scrub: &Scrub, wanted: &mut ToolUse) {
    wanted.id = scrub.text(&wanted.id).into_owned();
    wanted.tool = scrub.text(&wanted.tool).into_owned();
    scrub.value(&mut wanted.input);
}

/// Redacts all texts and values of an answer.
pub fn scrub_answer(scrub: &Scrub, answer: &mut Answer) {
    let Answer {
        error,
        text,
        outputs,
        kind,
        artifact_kind,
        media,
        metadata,
        usage,
        session,
        conversation,
        artefacts,
    } = answer;
    if let Some(error) = error {
        error.message = scrub.text(&error.message).into_owned();
    }
    for text in [text, kind, artifact_kind, session, &mut usage.model].into_iter().flatten() {
        *text = scrub.text(text).into_owned();
    }
    for object in [outputs, metadata].into_iter().flatten() {
        scrub_object(scrub, object);
    }
    for value in media.iter_mut().chain(conversation).chain(artefacts) {
        scrub.value(value);
    }
}

fn scrub_object(scrub: &Scrub, object: &mut Map<String, Value>) {
    let mut value = Value::Object(std::mem::take(object));
    scrub.value(&mut value);
    if let Value::Object(clean) = value {
        *object = clean;
    }
}
