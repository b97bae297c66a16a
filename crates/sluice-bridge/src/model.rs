//! Adapter for language models: one adapter for all providers, with a dialect for each.
//!
//! `dialect` is the interface of a provider's API, implemented by `openai`, `anthropic` and
//! `google`; `schema` adapts JSON Schemas to their restrictions. `sse` parses event streams,
//! `turn` makes one request, `converse` repeats turns until the model has answered, `offer`
//! selects its tools. `draft` is the partial answer of a turn, `progress` the state of the
//! dispatch, `capture` the stored conversation, `failure` the classification of errors.
//!
//! The adapter does not retry: the run decides about retries and their cost.
//!
//! INVARIANT: a cancelled or timed-out call is dropped at once, with its connection. No error
//! contains the key.

mod anthropic;
mod capture;
mod converse;
mod dialect;
mod draft;
mod failure;
mod google;
mod offer;
mod openai;
mod progress;
mod schema;
pub(crate) mod sse;
#[cfg(test)]
mod tests;
mod turn;

use crate::directory::{AdapterContext, Connection};
use crate::limits::{COMPLAINT_READ_BYTES_MAX, DISPATCH_MS_MAX, HEALTH_MS};
use crate::media;
use crate::normalise::{object_in, object_of};
use crate::outbound::error::OutboundError;
use crate::outbound::{Redirects, Request as Outgoing};
use crate::secret::Secret;
use crate::secret::keyring::NamedSecret;
use crate::secret::scrub::Scrub;
use crate::wire::{RequestIndex, Wire};
use dialect::{AnswerFormat, Dialect};
use failure::error;
use offer::Toolbox;
use progress::Progress;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallError, CallErrorCode, Capabilities, Execution, Health,
    OutputStrategy, Request,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Adapter for the models of one gateway.
#[derive(Debug)]
pub struct ModelAdapter {
    dialect: Box<dyn Dialect>,
    base_url: Option<String>,
    key: Option<NamedSecret>,
    wire: Arc<dyn Wire>,
    toolbox: Toolbox,
}

/// A dispatch in progress.
struct ModelCall<'a> {
    request: &'a Request,
    call: &'a dyn Call,
    key: Option<&'a Secret>,
    format: AnswerFormat<'a>,
    until: Instant,
}

impl ModelAdapter {
    /// Adapter for a model provider; `None` if the provider is unknown.
    pub(crate) fn for_connection(
        kit: &AdapterContext,
        connection: &Connection,
    ) -> Option<ModelAdapter> {
        let base = connection.base_url.as_deref();
        let dialect: Box<dyn Dialect> = match connection.provider.as_str() {
            "openai" => Box::new(openai::OpenAi::at(base)),
            "anthropic" => Box::new(anthropic::Anthropic),
            "google" => Box::new(google::Google),
            _ => return None,
        };
        let server = |name: &String| (name.clone(), kit.tool_servers.get(name).cloned());
        Some(ModelAdapter {
            dialect,
            base_url: base.map(|base| base.trim_end_matches('/').to_owned()),
            key: connection.key.clone(),
            wire: Arc::clone(&kit.wire),
            toolbox: connection.tool_servers.iter().map(server).collect(),
        })
    }

    /// Default base URL of a model provider.
    pub fn home(provider: &str) -> Option<&'static str> {
        match provider {
            "openai" => Some(openai::HOME),
            "anthropic" => Some(anthropic::HOME),
            "google" => Some(google::HOME),
            _ => None,
        }
    }

    fn base(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.dialect.home())
    }

    /// Reads the key anew each time, because it may change while the process runs.
    fn key(&self) -> Result<Option<Secret>, CallError> {
        let key = self.key.as_ref().map(|key| key.read_for(self.base())).transpose();
        key.map_err(|why| error(CallErrorCode::Auth, format!("the provider's key: {why}")))
    }

    async fn perform(&self, request: &Request, call: &dyn Call) -> Answer {
        let patience = Duration::from_millis(request.timeout_ms.min(DISPATCH_MS_MAX));
        let until = Instant::now() + patience;
        let key = match self.key() {
            Ok(key) => key,
            Err(trouble) => return Answer { error: Some(trouble), ..Answer::default() },
        };
        let format = answer_format(request);
        let job = ModelCall { request, call, key: key.as_ref(), format, until };
        let mut progress = Progress::new();
        let ended = tokio::select! {
            biased;
            () = call.cancelled() => Err(error(CallErrorCode::Cancelled, "the call was cancelled")),
            ended = timeout_at(until, self.converse(&job, &mut progress)) => ended.unwrap_or_else(|_| {
                let most = request.timeout_ms;
                Err(error(CallErrorCode::Timeout, format!("no answer after {most} ms")))
            }),
        };
        self.answer(&job, progress, ended)
    }

    fn answer(
        &self,
        job: &ModelCall<'_>,
        mut progress: Progress,
        ended: Result<(), CallError>,
    ) -> Answer {
        progress.capture_turn();
        let mut usage = progress.usage();
        if usage.model.is_none() {
            usage.model.clone_from(&job.request.model);
        }
        let mut answer = Answer { usage, ..Answer::default() };
        match ended {
            Ok(()) => {
                answer.outputs = self.outputs(&progress.draft.text, job.format);
                answer.media = media::media_value(&progress.capture.media);
                // An image or audio alone is an answer without text.
                let silent = progress.draft.text.is_empty() && answer.media.is_some();
                answer.text = (!silent).then_some(progress.draft.text);
            }
            Err(mut trouble) => {
                trouble.message = redacted(job.key, &trouble.message);
                // The journal records the text that the last turn produced
                // before it failed, but nothing of a cancelled call.
                let kept = trouble.code != CallErrorCode::Cancelled;
                answer.text = Some(progress.draft.text).filter(|text| kept && !text.is_empty());
                answer.error = Some(trouble);
            }
        }
        answer.conversation = progress.capture.conversation;
        answer.artefacts = progress.capture.artefacts;
        answer
    }

    /// Parses the requested object, or finds the most likely one in the text.
    fn outputs(&self, text: &str, format: AnswerFormat<'_>) -> Option<Map<String, Value>> {
        if matches!(format, AnswerFormat::Text) {
            return None;
        }
        let mut object = Value::Object(object_of(text).or_else(|| object_in(text))?);
        self.dialect.unpack(&mut object, format);
        match object {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    async fn check_health(&self) -> Health {
        let Ok(key) = self.key() else { return Health::Degraded };
        let mut headers = HeaderMap::new();
        headers.extend(self.dialect.headers());
        if let Some(key) = &key {
            let Ok((name, value)) = self.dialect.key_header(key) else { return Health::Degraded };
            headers.insert(name, value);
        }
        let request = Outgoing {
            method: Method::GET,
            url: format!("{}{}", self.base(), self.dialect.models_path(self.base())),
            headers,
            body: Vec::new(),
            patience: Duration::from_millis(HEALTH_MS),
            answer_bytes_max: COMPLAINT_READ_BYTES_MAX,
            redirects: Redirects::Keep,
        };
        match self.wire.open(RequestIndex::OUTSIDE_DISPATCH, &request).await {
            Ok(incoming) => match incoming.status() {
                401 | 403 | 500.. => Health::Degraded,
                _ => Health::Healthy,
            },
            // A destination that the outbound guard refuses is a configuration
            // error; the error of a dispatch says how to allow it.
            Err(OutboundError::Refused(_)) => Health::Degraded,
            Err(_) => Health::Offline,
        }
    }
}

impl Adapter for ModelAdapter {
    fn provider(&self) -> &'static str {
        self.dialect.provider()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, tools: true, structured_output: true, cancel: true }
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(self.check_health())
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move { Execution::Done(Box::new(self.perform(request, call).await)) })
    }
}

fn answer_format(request: &Request) -> AnswerFormat<'_> {
    match (request.output_strategy, &request.output_schema) {
        (OutputStrategy::Text, _) => AnswerFormat::Text,
        (OutputStrategy::Structured, Some(schema)) => AnswerFormat::Schema(schema),
        (OutputStrategy::Structured | OutputStrategy::Json, _) => AnswerFormat::Object,
    }
}

/// Redacts the key, which a provider may repeat.
fn redacted(key: Option<&Secret>, message: &str) -> String {
    match Scrub::new(key) {
        Ok(scrub) => scrub.text(message).into_owned(),
        Err(_) => "the provider failed, and its message cannot be shown".to_owned(),
    }
}
