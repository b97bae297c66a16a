//! Body of a dispatch.

use super::{BadBody, DispatchHash, bounded, check_step, figure, run_id};
use crate::limits::{
    ENV_MAX, NAME_BYTES_MAX, SESSION_BYTES_MAX, STEP_BYTES_MAX, TIMEOUT_MS_MAX, TOKEN_BYTES_MAX,
    TOOLS_MAX, URL_BYTES_MAX,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_core::id::RunId;
use sluice_core::money::Money;
use sluice_core::port::adapter::{OutputStrategy, Recall, Request};
use sluice_core::trace::TraceParent;
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Price;

/// What a bridge receives to execute one dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatchBody {
    /// Run of the step.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// Step id; `step[3]` for an instance.
    pub step_id: String,
    /// Number of the step's dispatch, from 1.
    pub dispatch_no: u32,
    /// Number of the attempt, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// The same when the dispatch is sent again, new for a retry.
    #[serde(default)]
    pub idempotency_key: String,
    /// The name that the workflow's document declares.
    #[serde(default)]
    pub workflow_name: String,
    /// Name of the bridge's adapter.
    pub provider: String,
    /// Agent that does the work.
    #[serde(default)]
    pub agent: String,
    /// The instructions for the model besides the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Instruction. For a shell: the script.
    #[serde(default)]
    pub command: String,
    /// Standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Model to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that the agent may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// JSON Schema of the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Requested kind of answer.
    #[serde(default = "text")]
    pub output_strategy: OutputStrategy,
    /// Output limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Time limit.
    pub timeout_ms: u64,
    /// Constraints of the policies. An unknown constraint rejects the dispatch, because the
    /// bridge could not enforce it.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub governance_constraints: Constraints,
    /// Earlier session to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// URL for the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Token that authorises the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_token: Option<String>,
    /// URL for tool requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_url: Option<String>,
    /// URL for parts of the answer during the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_url: Option<String>,
    /// Environment variables, for a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Working directory inside the run's workspace, for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Price per million tokens at the time of the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Limit of the cost, in dollars.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "figure::usd",
        deserialize_with = "figure::exact_usd"
    )]
    pub ceiling: Option<Money>,
    /// SHA-256 of the action that was allowed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub action_digest: String,
}

/// Trace context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// W3C `traceparent`.
    pub traceparent: String,
}

/// Where and with which token results come back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReturnAddress {
    /// URL for the result.
    pub callback_url: Option<String>,
    /// Token that authorises the result.
    pub dispatch_token: Option<String>,
    /// URL for tool requests.
    pub tool_url: Option<String>,
    /// URL for parts of the answer.
    pub parts_url: Option<String>,
}

fn first() -> u32 {
    1
}

fn text() -> OutputStrategy {
    OutputStrategy::Text
}

impl DispatchBody {
    /// Encodes a request for one of the bridge's adapters.
    pub fn new(request: &Request, provider: &str, back: ReturnAddress) -> DispatchBody {
        let request = request.clone();
        DispatchBody {
            run_id: request.run,
            step_id: request.step,
            dispatch_no: request.dispatch_no,
            attempt: request.attempt,
            idempotency_key: request.idempotency_key,
            workflow_name: request.workflow,
            provider: provider.to_owned(),
            agent: request.agent,
            system_prompt: request.system_prompt,
            command: request.message,
            stdin: request.stdin,
            model: request.model,
            tools: request.tools,
            output_schema: request.output_schema,
            output_strategy: request.output_strategy,
            max_output_tokens: request.max_output_tokens,
            timeout_ms: request.timeout_ms,
            governance_constraints: request.constraints,
            session_id: request.session,
            trace: request.trace.map(|trace| Trace { traceparent: trace.to_string() }),
            callback_url: back.callback_url,
            dispatch_token: back.dispatch_token,
            tool_url: back.tool_url,
            parts_url: back.parts_url,
            env: request.env,
            cwd: request.cwd,
            price: request.price,
            ceiling: request.ceiling,
            action_digest: request.action_digest,
        }
    }

    /// Parses a body and checks every length and number.
    pub fn read(bytes: &[u8]) -> Result<DispatchBody, BadBody> {
        let body: DispatchBody =
            serde_json::from_slice(bytes).map_err(|error| BadBody::from_json_error(&error))?;
        body.check()?;
        Ok(body)
    }

    fn check(&self) -> Result<(), BadBody> {
        check_step(&self.step_id)?;
        let texts = [
            ("workflow_name", Some(&self.workflow_name), STEP_BYTES_MAX),
            ("idempotency_key", Some(&self.idempotency_key), STEP_BYTES_MAX),
            ("provider", Some(&self.provider), NAME_BYTES_MAX),
            ("agent", Some(&self.agent), STEP_BYTES_MAX),
            ("model", self.model.as_ref(), NAME_BYTES_MAX),
            ("session_id", self.session_id.as_ref(), SESSION_BYTES_MAX),
            ("callback_url", self.callback_url.as_ref(), URL_BYTES_MAX),
            ("tool_url", self.tool_url.as_ref(), URL_BYTES_MAX),
            ("parts_url", self.parts_url.as_ref(), URL_BYTES_MAX),
            ("dispatch_token", self.dispatch_token.as_ref(), TOKEN_BYTES_MAX),
            ("action_digest", Some(&self.action_digest), NAME_BYTES_MAX),
        ];
        for (name, text, most) in texts {
            bounded(name, text.map_or("", String::as_str), most)?;
        }
        self.tools.iter().try_for_each(|tool| bounded("tools", tool, STEP_BYTES_MAX))?;
        let wrong = |message: &str| Err(BadBody(message.to_owned()));
        if self.dispatch_no == 0 || self.attempt == 0 {
            return wrong("`dispatch_no` and `attempt` must be at least 1");
        }
        if !(1..=TIMEOUT_MS_MAX).contains(&self.timeout_ms) {
            return Err(BadBody(format!("`timeout_ms` must be between 1 and {TIMEOUT_MS_MAX}")));
        }
        if self.tools.len() > TOOLS_MAX || self.env.len() > ENV_MAX {
            return wrong("`tools` or `env` has too many entries");
        }
        let sendable = |text: &String| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if !self.dispatch_token.as_ref().is_none_or(sendable) {
            return wrong("`dispatch_token` has characters that are not valid in a header");
        }
        Ok(())
    }

    /// Identifies the dispatch.
    pub fn key(&self) -> DispatchHash {
        DispatchHash::new(self.run_id, &self.step_id, self.dispatch_no)
    }

    /// Converts the body into an adapter's request.
    pub fn request(&self, gateway: &str) -> Request {
        let body = self.clone();
        Request {
            run: body.run_id,
            step: body.step_id,
            workflow: body.workflow_name,
            gateway: gateway.to_owned(),
            attempt: body.attempt,
            dispatch_no: body.dispatch_no,
            idempotency_key: body.idempotency_key,
            session: body.session_id,
            agent: body.agent,
            system_prompt: body.system_prompt,
            message: body.command,
            stdin: body.stdin,
            env: body.env,
            cwd: body.cwd,
            model: body.model,
            tools: body.tools,
            output_schema: body.output_schema,
            output_strategy: body.output_strategy,
            max_output_tokens: body.max_output_tokens,
            price: body.price,
            ceiling: body.ceiling,
            timeout_ms: body.timeout_ms,
            constraints: body.governance_constraints,
            action_digest: body.action_digest,
            trace: body.trace.and_then(|trace| TraceParent::parse(&trace.traceparent)),
        }
    }
}

impl From<&Recall> for super::CancelBody {
    fn from(recall: &Recall) -> Self {
        let step_id = recall.step.clone();
        super::CancelBody { run_id: recall.run, step_id, dispatch_no: recall.dispatch_no }
    }
}

/// Response of a bridge to an accepted dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchAccepted {
    /// Always `dispatched`.
    pub status: String,
    /// Run of the step.
    pub run_id: String,
    /// The step that was dispatched; `step[3]` for an instance.
    pub step_id: String,
    /// Time of acceptance.
    pub dispatched_at: String,
}
