//! Body of a result.

use super::{BadBody, DispatchHash, check_step, figure, non_finite, run_id};
use crate::limits::{
    CALLBACK_BYTES_MAX, CONVERSATION_BYTES_MAX, ERROR_BYTES_MAX, NAME_BYTES_MAX, SESSION_BYTES_MAX,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sluice_core::choice::find;
use sluice_core::id::RunId;
use sluice_core::journal::envelope::timestamp;
use sluice_core::limits::TOKENS_MAX;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Answer, CallError, CallErrorCode, Usage};
use std::collections::BTreeMap;

/// How a dispatch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Successful.
    Completed,
    /// Failed or cancelled; `error_code` has the reason.
    Failed,
    /// Exceeded its timeout.
    TimedOut,
}

/// Body of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallbackBody {
    /// Run of the step.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// Step id; `step[3]` for an instance.
    pub step_id: String,
    /// Number of the step's dispatch. Only old gateways omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_no: Option<u32>,
    /// How it ended.
    pub status: Status,
    /// Structured outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// Text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of a failed dispatch: a code of the protocol, or a provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// How long the provider wants us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub retry_after_ms: Option<u64>,
    /// Start time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "figure::instant"
    )]
    pub started_at: Option<String>,
    /// End time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "figure::instant"
    )]
    pub completed_at: Option<String>,
    /// Model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of the prompt, as the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, as the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub output_tokens: Option<u64>,
    /// Reasoning tokens, in addition to the output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub thinking_tokens: Option<u64>,
    /// Input tokens from the provider's cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub cached_tokens: Option<u64>,
    /// Sum of all tokens, for display. The engine uses the parts.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "figure::tokens")]
    pub total_tokens: Option<u64>,
    /// Cost in dollars. Omitted if only the tokens are known; if the tokens are omitted
    /// too, the cost is unknown.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "figure::usd",
        deserialize_with = "figure::cost"
    )]
    pub cost: Option<Money>,
    /// Session to continue later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Value>,
    /// Artefacts of the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Value>,
    /// Kind of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Kind of artefact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_kind: Option<String>,
    /// Images, audio and other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Value>,
    /// Additional information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The dispatch that a result belongs to, and the time of its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutedDispatch<'a> {
    /// Run of the step.
    pub run: RunId,
    /// Step id.
    pub step: &'a str,
    /// Number of the step's dispatch.
    pub dispatch_no: u32,
    /// Start time, in milliseconds since 1970.
    pub from_ms: u64,
    /// End time, in milliseconds since 1970.
    pub to_ms: u64,
}

impl CallbackBody {
    /// Encodes an answer.
    pub fn new(worked: ExecutedDispatch<'_>, answer: Answer) -> CallbackBody {
        let status = match answer.error.as_ref().map(|error| error.code) {
            None => Status::Completed,
            Some(CallErrorCode::Timeout) => Status::TimedOut,
            Some(_) => Status::Failed,
        };
        let usage = &answer.usage;
        let counted = |count: u64| (!usage.unknown).then_some(count);
        let total = usage.input_tokens.saturating_add(usage.output_tokens);
        CallbackBody {
            run_id: worked.run,
            step_id: worked.step.to_owned(),
            dispatch_no: Some(worked.dispatch_no),
            status,
            outputs: answer.outputs,
            stdout: answer.text,
            error: answer.error.as_ref().map(|error| error.message.clone()),
            error_code: answer.error.as_ref().map(|error| error.code.as_str().to_owned()),
            retry_after_ms: answer.error.as_ref().and_then(|error| error.retry_after_ms),
            started_at: Some(timestamp(worked.from_ms)),
            completed_at: Some(timestamp(worked.to_ms)),
            input_tokens: counted(usage.input_tokens),
            output_tokens: counted(usage.output_tokens),
            thinking_tokens: counted(usage.thinking_tokens),
            cached_tokens: counted(usage.cached_tokens),
            total_tokens: counted(total.saturating_add(usage.thinking_tokens)),
            cost: (!usage.unknown && !usage.unpriced).then_some(usage.cost),
            model: answer.usage.model,
            session_id: answer.session,
            conversation: answer.conversation,
            artefacts: answer.artefacts,
            kind: answer.kind,
            artifact_kind: answer.artifact_kind,
            media: answer.media,
            metadata: answer.metadata,
        }
    }

    /// Parses a result that identifies its dispatch.
    pub fn read(bytes: &[u8]) -> Result<CallbackBody, BadBody> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| BadBody("the body is not valid UTF-8".to_owned()))?;
        let text = non_finite::quote_non_finite(text);
        let body: CallbackBody =
            serde_json::from_str(&text).map_err(|error| BadBody::from_json_error(&error))?;
        check_step(&body.step_id)?;
        Ok(body)
    }

    /// Parses a synchronous result: the ids may be omitted, but must not belong to another
    /// dispatch.
    pub fn read_reply(bytes: &[u8], worked: ExecutedDispatch<'_>) -> Result<CallbackBody, BadBody> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| BadBody("the body is not valid UTF-8".to_owned()))?;
        let text = non_finite::quote_non_finite(text);
        let read = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&text);
        let mut fields = read.map_err(|error| BadBody::from_json_error(&error))?;
        let step =
            serde_json::to_string(worked.step).map_err(|error| BadBody::from_json_error(&error))?;
        let ids = [
            ("run_id", format!("\"{}\"", worked.run)),
            ("step_id", step),
            ("dispatch_no", worked.dispatch_no.to_string()),
        ];
        for (name, id) in ids {
            let raw =
                RawValue::from_string(id).map_err(|error| BadBody::from_json_error(&error))?;
            fields.entry(name.to_owned()).or_insert(raw);
        }
        let whole =
            serde_json::to_vec(&fields).map_err(|error| BadBody::from_json_error(&error))?;
        let body = CallbackBody::read(&whole)?;
        if body.key(worked.dispatch_no)
            != DispatchHash::new(worked.run, worked.step, worked.dispatch_no)
        {
            return Err(BadBody("the result belongs to another dispatch".to_owned()));
        }
        Ok(body)
    }

    /// Identifies the dispatch; `dispatch_no` is used if the body has none.
    pub fn key(&self, dispatch_no: u32) -> DispatchHash {
        DispatchHash::new(self.run_id, &self.step_id, self.dispatch_no.unwrap_or(dispatch_no))
    }

    /// Converts the result for the core. Texts that are too long are dropped or truncated.
    pub fn answer(self) -> Answer {
        let usage = self.usage();
        let error = self.failure();
        let short = |text: &String| text.len() <= NAME_BYTES_MAX;
        let fits = |value: &[Value]| serde_json::to_vec(value).map_or(0, |bytes| bytes.len());
        let talked = fits(&self.conversation) <= CONVERSATION_BYTES_MAX;
        Answer {
            error,
            text: self.stdout,
            outputs: self.outputs,
            kind: self.kind.filter(short),
            artifact_kind: self.artifact_kind.filter(short),
            media: self.media,
            metadata: self.metadata,
            usage,
            session: self.session_id.filter(|session| session.len() <= SESSION_BYTES_MAX),
            conversation: if talked { self.conversation } else { Vec::new() },
            artefacts: self.artefacts,
        }
    }

    fn failure(&self) -> Option<CallError> {
        let said = self.error_code.as_deref().and_then(find::<CallErrorCode>);
        let code = match self.status {
            Status::Completed => return None,
            Status::TimedOut => CallErrorCode::Timeout,
            Status::Failed => said.unwrap_or(CallErrorCode::ProviderError),
        };
        let message = self.error.as_deref().unwrap_or("the gateway gave no reason");
        let message = truncated(message, ERROR_BYTES_MAX).to_owned();
        let retry_after_ms = self.retry_after_ms.filter(|ms| *ms != u64::MAX);
        Some(CallError { code, message, retry_after_ms })
    }

    fn usage(&self) -> Usage {
        let figures =
            [self.input_tokens, self.output_tokens, self.thinking_tokens, self.cached_tokens];
        let absurd = figures.iter().flatten().any(|tokens| *tokens > TOKENS_MAX);
        let reported = figures.iter().any(Option::is_some);
        Usage {
            model: self.model.as_deref().map(|model| truncated(model, NAME_BYTES_MAX).to_owned()),
            // The core checks these fields, whichever figure was absurd.
            input_tokens: if absurd { u64::MAX } else { self.input_tokens.unwrap_or(0) },
            output_tokens: self.output_tokens.unwrap_or(0),
            thinking_tokens: self.thinking_tokens.unwrap_or(0),
            cached_tokens: self.cached_tokens.unwrap_or(0),
            cost: self.cost.unwrap_or_default(),
            unpriced: self.cost.is_none() && reported && !absurd,
            unknown: self.cost.is_none() && !reported,
        }
    }

    /// Encodes the body within the engine's limit: first the conversation and artefacts are
    /// dropped, then the result itself, never its cost.
    pub fn bytes(&self) -> Vec<u8> {
        let write = |body: &CallbackBody| {
            serde_json::to_vec(body).expect("a body of texts and figures can be written")
        };
        let whole = write(self);
        if whole.len() <= CALLBACK_BYTES_MAX {
            return whole;
        }
        let mut short = self.clone();
        (short.conversation, short.artefacts) = (Vec::new(), Vec::new());
        let brief = write(&short);
        if brief.len() <= CALLBACK_BYTES_MAX {
            return brief;
        }
        (short.outputs, short.stdout, short.media, short.metadata) = (None, None, None, None);
        (short.session_id, short.kind, short.artifact_kind) = (None, None, None);
        short.model = short.model.map(|model| truncated(&model, NAME_BYTES_MAX).to_owned());
        short.status = Status::Failed;
        short.error_code = Some(CallErrorCode::ProviderError.as_str().to_owned());
        short.error = Some(format!("the result exceeds {CALLBACK_BYTES_MAX} bytes"));
        write(&short)
    }
}

fn truncated(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
