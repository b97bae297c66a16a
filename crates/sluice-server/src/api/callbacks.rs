//! Where remote gateways send results and parts of answers, and ask for tools.
//!
//! INVARIANT: who sends one is known by the gateway's token; that it was given the
//! dispatch, by the dispatch's. Nothing in the body is believed before that.

use super::ask::bad;
use super::problem::Rejection;
use super::reply::Reply;
use super::route::{Answers, Asking, Incoming, Need, Route, body};
use crate::refused::Done;
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
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::ToolUse;
use sluice_core::run::id::RunId;

/// Where results are sent.
pub const STEP_COMPLETE: &str = "/api/workflow/step-complete";
/// Where tools are asked for.
pub const TOOL_USE: &str = "/api/workflow/tool-use";
/// Where parts of answers are sent.
pub const STEP_PARTS: &str = "/api/workflow/step-parts";
/// Longest name of a call or a tool, in bytes.
const NAME_BYTES_MAX: usize = 512;

/// The routes of those who do work elsewhere.
pub(super) fn routes() -> Vec<Route> {
    let mut complete = Route::open(
        (Method::POST, STEP_COMPLETE),
        Need::Gateway,
        "A gateway sends the result of a dispatch, by its own and the dispatch's token",
        Answers::Json(received_schema),
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
        "A gateway sends parts of an answer while it works, by both tokens",
        Answers::Json(received_schema),
        step_parts,
    );
    parts.body = Some(|_| parts_schema());
    parts.body_bytes = Some(PARTS_BODY_BYTES_MAX);
    let mut tool = Route::open(
        (Method::POST, TOOL_USE),
        Need::Gateway,
        "A gateway asks whether a dispatch may call a tool, by both tokens",
        Answers::Data(SchemaGenerator::subschema_for::<Verdict>),
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
                },
            }},
        },
    })
}

async fn step_complete(incoming: Incoming) -> Response {
    let answer = received(&incoming).await;
    said(&incoming, answer)
}

async fn step_parts(incoming: Incoming) -> Response {
    let answer = parts_received(&incoming).await;
    said(&incoming, answer)
}

fn said(incoming: &Incoming, answer: Result<Received, Rejection>) -> Response {
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
    let asking = asking(incoming)?;
    let read = CallbackBody::read(&incoming.body);
    let body = read.map_err(|why| bad(format!("the body: {why}")))?;
    let sender = Sender { name: &asking.name, row: &asking.row, token: token(incoming) };
    Ok(callback::complete(&asking.house, sender, body).await?)
}

async fn parts_received(incoming: &Incoming) -> Result<Received, Rejection> {
    let asking = asking(incoming)?;
    let read = PartsBody::read(&incoming.body);
    let body = read.map_err(|why| bad(format!("the body: {why}")))?;
    let sender = Sender { name: &asking.name, row: &asking.row, token: token(incoming) };
    Ok(callback::parts(&asking.house, sender, body).await?)
}

fn asking(incoming: &Incoming) -> Result<&Asking, Rejection> {
    incoming.gateway.as_ref().ok_or_else(Rejection::internal)
}

fn token(incoming: &Incoming) -> Option<&str> {
    incoming.headers.get(DISPATCH_TOKEN).and_then(|value| value.to_str().ok())
}

/// A tool that a dispatch wants to call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolBody {
    /// The run.
    run_id: String,
    /// The step.
    step_id: String,
    /// Which dispatch of it.
    dispatch_no: u32,
    /// The call, unique within the dispatch. Asked again, the answer is the same.
    call_id: String,
    /// The tool.
    tool: String,
    /// What it is to be called with.
    #[serde(default)]
    input: Value,
}

/// Whether a tool may be called.
#[derive(Debug, Serialize, JsonSchema)]
struct Verdict {
    /// `allowed`, `denied`, or `pending`: ask again in a while.
    verdict: &'static str,
    /// Why not.
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

async fn decided(incoming: &Incoming) -> Result<Reply<Verdict>, Rejection> {
    let asking = asking(incoming)?;
    let said: ToolBody = body(&incoming.headers, &incoming.body)?;
    let run = RunId::parse(&said.run_id).ok_or_else(|| bad("`run_id` is no id of a run"))?;
    for (field, text) in
        [("step_id", &said.step_id), ("call_id", &said.call_id), ("tool", &said.tool)]
    {
        let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if !fits || text.contains(char::is_control) {
            return Err(bad(format!("`{field}` has 1 to {NAME_BYTES_MAX} bytes")).into());
        }
    }
    let sender = Sender { name: &asking.name, row: &asking.row, token: token(incoming) };
    let wanted = ToolUse { id: said.call_id, tool: said.tool, input: said.input };
    let dispatch = (run, said.step_id.as_str(), said.dispatch_no);
    let ruling: Done<Option<Ruling>> =
        callback::use_tool(&asking.house, sender, dispatch, wanted).await;
    let (verdict, reason) = match ruling? {
        Some(Ruling::Allowed(_)) => ("allowed", None),
        Some(Ruling::Denied(why)) => ("denied", Some(why)),
        Some(Ruling::Held(_)) | None => ("pending", None),
    };
    Ok(Reply::ok(Verdict { verdict, reason }))
}
