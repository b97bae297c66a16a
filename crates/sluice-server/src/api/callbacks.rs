//! Endpoints of remote gateways: results, parts of answers, and tool decisions.
//!
//! INVARIANT: the gateway token identifies the sender; the dispatch token proves that it
//! received the dispatch. Nothing in the body is trusted before both are verified.

use super::problem::Rejection;
use super::reply::Reply;
use super::request::bad;
use super::route::{GatewayCaller, Incoming, Need, ResponseKind, Route, body};
use crate::refused::ServiceResult;
use crate::service::callback::{self, Received, Sender};
use axum::http::Method;
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_bridge::limits::{CALLBACK_BYTES_MAX, PARTS_BODY_BYTES_MAX};
use sluice_bridge::protocol::DISPATCH_TOKEN;
use sluice_bridge::protocol::callback::CallbackBody;
use sluice_bridge::protocol::parts::PartsBody;
use sluice_core::id::RunId;
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::ToolUse;

/// Path for results.
pub const STEP_COMPLETE: &str = "/api/workflow/step-complete";
/// Path for decisions about tool calls.
pub const TOOL_USE: &str = "/api/workflow/tool-use";
/// Path for parts of answers.
pub const STEP_PARTS: &str = "/api/workflow/step-parts";
/// Maximum length of a call id or tool name, in bytes.
const NAME_BYTES_MAX: usize = 512;

pub(super) fn routes() -> Vec<Route> {
    let mut complete = Route::open(
        (Method::POST, STEP_COMPLETE),
        Need::Gateway,
        "Send the result of a dispatch, with the gateway token and the dispatch token",
        ResponseKind::Json(received_schema),
        step_complete,
    );
    complete.body = Some(|_| {
        json_schema!({
            "type": "object", "required": ["run_id", "step_id", "status"],
            "properties": {
                "run_id": {"type": "string"}, "step_id": {"type": "string"},
                "dispatch_no": {"type": "integer", "minimum": 0},
                "status": {"enum": ["completed", "failed", "timed_out"]},
                "outputs": {"type": "object"}, "stdout": {"type": "string"},
                "error": {"type": "string"}, "error_code": {"type": "string"},
                "started_at": {"type": ["string", "number"]},
                "completed_at": {"type": ["string", "number"]},
                "model": {"type": "string"}, "input_tokens": {"type": "integer"},
                "output_tokens": {"type": "integer"}, "thinking_tokens": {"type": "integer"},
                "total_tokens": {"type": "integer"}, "cost": {"type": "number"},
                "session_id": {"type": "string"}, "conversation": {"type": "array"},
            },
        })
    });
    complete.body_bytes = Some(CALLBACK_BYTES_MAX);
    let mut parts = Route::open(
        (Method::POST, STEP_PARTS),
        Need::Gateway,
        "Send parts of an answer while the step runs, with both tokens",
        ResponseKind::Json(received_schema),
        step_parts,
    );
    parts.body = Some(|_| parts_schema());
    parts.body_bytes = Some(PARTS_BODY_BYTES_MAX);
    let mut tool = Route::open(
        (Method::POST, TOOL_USE),
        Need::Gateway,
        "Request a decision about a tool call, with both tokens",
        ResponseKind::Data(SchemaGenerator::subschema_for::<ToolDecision>),
        tool_use,
    );
    tool.body = Some(SchemaGenerator::subschema_for::<ToolBody>);
    vec![complete, parts, tool]
}

fn received_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "required": ["received"],
        "properties": {
            "received": {"type": "boolean"}, "deduplicated": {"type": "boolean"},
        },
    })
}

fn parts_schema() -> Schema {
    json_schema!({
        "type": "object", "required": ["run_id", "step_id", "dispatch_no", "first", "parts"],
        "properties": {
            "run_id": {"type": "string"}, "step_id": {"type": "string"},
            "dispatch_no": {"type": "integer", "minimum": 0},
            "first": {"type": "integer", "minimum": 0},
            "parts": {"type": "array", "items": {
                "type": "object", "required": ["kind"],
                "properties": {
                    "kind": {"enum": ["text", "media", "log", "tool_ended"]},
                    "text": {"type": "string"}, "url": {"type": "string"},
                    "mime": {"type": "string"}, "call_id": {"type": "string"},
                    "tool": {"type": "string"}, "failed": {"type": "boolean"},
                    "bytes": {"type": "integer"}, "duration_ms": {"type": "integer"},
                    "content": {"type": "object", "properties": {
                        "text": {"type": "string"}, "structured": {}, "cut": {"type": "boolean"},
                    }},
                },
            }},
        },
    })
}

async fn step_complete(incoming: Incoming) -> Response {
    let answer = received(&incoming).await;
    receipt(&incoming, answer)
}

async fn step_parts(incoming: Incoming) -> Response {
    let answer = parts_received(&incoming).await;
    receipt(&incoming, answer)
}

fn receipt(incoming: &Incoming, answer: Result<Received, Rejection>) -> Response {
    use axum::response::IntoResponse as _;
    match answer {
        Ok(Received::New) => axum::Json(json!({"received": true})).into_response(),
        Ok(Received::Again) => {
            axum::Json(json!({"received": true, "deduplicated": true})).into_response()
        }
        Err(rejection) => rejection.into_response(&incoming.request_id),
    }
}

async fn received(incoming: &Incoming) -> Result<Received, Rejection> {
    let gateway = gateway(incoming)?;
    let read = CallbackBody::read(&incoming.body);
    let body = read.map_err(|why| bad(format!("the body: {why}")))?;
    let sender = Sender { name: &gateway.name, row: &gateway.row, token: token(incoming) };
    Ok(callback::complete(&gateway.organisation, sender, body).await?)
}

async fn parts_received(incoming: &Incoming) -> Result<Received, Rejection> {
    let gateway = gateway(incoming)?;
    let read = PartsBody::read(&incoming.body);
    let body = read.map_err(|why| bad(format!("the body: {why}")))?;
    let sender = Sender { name: &gateway.name, row: &gateway.row, token: token(incoming) };
    Ok(callback::parts(&gateway.organisation, sender, body).await?)
}

fn gateway(incoming: &Incoming) -> Result<&GatewayCaller, Rejection> {
    incoming.gateway.as_ref().ok_or_else(Rejection::internal)
}

fn token(incoming: &Incoming) -> Option<&str> {
    incoming.headers.get(DISPATCH_TOKEN).and_then(|value| value.to_str().ok())
}

/// A tool call that a dispatch wants to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolBody {
    /// Id of the run.
    run_id: String,
    /// Id of the step.
    step_id: String,
    /// Number of the dispatch.
    dispatch_no: u32,
    /// Id of the call, unique within the dispatch. The same id always gets the same decision.
    call_id: String,
    /// Name of the tool.
    tool: String,
    /// Input of the call.
    #[serde(default)]
    input: Value,
}

/// The decision about a tool call.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolDecision {
    /// `allowed`, `denied`, or `pending`: repeat the request later.
    verdict: &'static str,
    /// Reason of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

async fn tool_use(incoming: Incoming) -> Response {
    let request_id = incoming.request_id.clone();
    match decided(&incoming).await {
        Ok(reply) => reply.into_response(&request_id),
        Err(rejection) => rejection.into_response(&request_id),
    }
}

async fn decided(incoming: &Incoming) -> Result<Reply<ToolDecision>, Rejection> {
    let gateway = gateway(incoming)?;
    let sent: ToolBody = body(&incoming.headers, &incoming.body)?;
    let run = RunId::parse(&sent.run_id).ok_or_else(|| bad("`run_id` is not a run id"))?;
    for (field, text) in
        [("step_id", &sent.step_id), ("call_id", &sent.call_id), ("tool", &sent.tool)]
    {
        let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if !fits || text.contains(char::is_control) {
            return Err(bad(format!("`{field}` has 1 to {NAME_BYTES_MAX} bytes")).into());
        }
    }
    let sender = Sender { name: &gateway.name, row: &gateway.row, token: token(incoming) };
    let wanted = ToolUse { id: sent.call_id, tool: sent.tool, input: sent.input };
    let dispatch = (run, sent.step_id.as_str(), sent.dispatch_no);
    let ruling: ServiceResult<Option<Ruling>> =
        callback::use_tool(&gateway.organisation, sender, dispatch, wanted).await;
    let (verdict, reason) = match ruling? {
        Some(Ruling::Allowed(_)) => ("allowed", None),
        Some(Ruling::Denied(why)) => ("denied", Some(why)),
        Some(Ruling::Held(_)) | None => ("pending", None),
    };
    Ok(Reply::ok(ToolDecision { verdict, reason }))
}
