//! Messages: encoded commands for a run that another node owns.

use super::command::{Command, Decision, Resolve};
use crate::choice::find as word;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::{ChildPace, Provenance, StepAt};
use crate::money::Money;
use crate::origin::{FieldLabels, PassedLabels, WrittenFields, WrittenLabels};
use crate::port::adapter::{Answer, CallError, CallErrorCode, Emission, ToolEnded, ToolUse, Usage};
use crate::status::RunStatus;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

/// A command for another run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMessage {
    /// The receiving run.
    pub run: RunId,
    /// Deduplication key: a second message with this key is dropped.
    pub key: String,
    /// What the receiving run shall do.
    pub command: Command,
}

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be read: {0}")]
pub struct Unreadable(String);

fn invalid(field: &str) -> Unreadable {
    Unreadable(format!("`{field}` is missing or not valid"))
}

/// Encodes a command; `None` for commands that never leave their process.
pub fn encode(command: &Command) -> Option<Vec<u8>> {
    let value = match command {
        Command::Cancel { by, reason } => {
            json!({"v": 1, "do": "cancel", "by": by, "reason": reason})
        }
        Command::Pause { by } => json!({"v": 1, "do": "pause", "by": by}),
        Command::Unpause { by } => json!({"v": 1, "do": "unpause", "by": by}),
        Command::Retry { by } => json!({"v": 1, "do": "retry", "by": by}),
        Command::Assign { by, step, whom } => {
            json!({"v": 1, "do": "assign", "by": by, "step": step, "whom": whom})
        }
        Command::Rewind { by, keep } => json!({"v": 1, "do": "rewind", "by": by, "keep": keep}),
        Command::Resolve(resolve) => json!({
            "v": 1, "do": "resolve", "approval": resolve.approval.to_string(),
            "decision": resolve.decision.as_str(), "by": resolve.by,
            "comment": resolve.comment, "values": resolve.values,
            "roles": resolve.roles, "constraints": resolve.constraints,
        }),
        Command::ChildEnded { child, status, outputs, error, origins, labels } => {
            let mut value = json!({
                "v": 1, "do": "child_ended", "child": child.to_string(), "status": status,
                "outputs": outputs, "error": error,
                "origins": origins.iter().map(encode_origin).collect::<Vec<_>>(),
            });
            if let Some(labels) = labels {
                value["labels"] = encode_labels(labels);
            }
            value
        }
        Command::ChildPaced { child, pace, at_ms } => json!({
            "v": 1, "do": "child_paced", "child": child.to_string(), "pace": pace.as_str(),
            "at_ms": at_ms,
        }),
        Command::Complete { at, dispatch_no, answer } => json!({
            "v": 1, "do": "complete", "step": at.step, "item": at.item,
            "dispatch_no": dispatch_no, "answer": encode_answer(answer),
        }),
        Command::UseTool { at, dispatch_no, wanted } => json!({
            "v": 1, "do": "use_tool", "step": at.step, "item": at.item,
            "dispatch_no": dispatch_no,
            "id": wanted.id, "tool": wanted.tool, "input": wanted.input,
        }),
        Command::TakeOver
        | Command::Parts { .. }
        | Command::Accepted { .. }
        | Command::ToolEnded { .. }
        | Command::Moderated { .. }
        | Command::Checked { .. }
        | Command::Stream { .. }
        | Command::Log { .. }
        | Command::Process { .. } => return None,
    };
    Some(value.to_string().into_bytes())
}

/// Encodes a result that arrived by callback. The receiver of the callback knows only the name
/// of the step; `decode` finds the step in the run.
pub fn callback(step: &str, dispatch_no: u32, answer: &Answer) -> Vec<u8> {
    let answer = encode_answer(answer);
    let value = json!({
        "v": 1, "do": "callback", "step": step, "dispatch_no": dispatch_no, "answer": answer,
    });
    value.to_string().into_bytes()
}

/// Encodes parts of an answer that a bridge delivers.
pub fn parts(step: &str, dispatch_no: u32, parts: &[Emission]) -> Vec<u8> {
    let part = |part: &Emission| match part {
        Emission::Text(text) => Some(json!({"text": text})),
        Emission::Media { url, mime } => Some(json!({"url": url, "mime": mime})),
        Emission::Log(text) => Some(json!({"log": text})),
        Emission::ToolEnded(ended) => Some(json!({
            "id": ended.id, "tool": ended.tool, "failed": ended.failed, "bytes": ended.bytes,
            "duration_ms": ended.duration_ms, "content": ended.content,
        })),
        Emission::Process(_) => None,
    };
    let parts: Vec<Value> = parts.iter().filter_map(part).collect();
    let value = json!({
        "v": 1, "do": "parts", "step": step, "dispatch_no": dispatch_no, "parts": parts,
    });
    value.to_string().into_bytes()
}

fn decode_part(part: &Value) -> Option<Emission> {
    let text = |key: &str| part[key].as_str().map(str::to_owned);
    if let Some(piece) = text("text") {
        return Some(Emission::Text(piece));
    }
    if let Some(line) = text("log") {
        return Some(Emission::Log(line));
    }
    if let Some(url) = text("url") {
        return Some(Emission::Media { url, mime: text("mime")? });
    }
    Some(Emission::ToolEnded(ToolEnded {
        id: text("id")?,
        tool: text("tool")?,
        failed: part["failed"].as_bool()?,
        bytes: part["bytes"].as_u64()?,
        duration_ms: part["duration_ms"].as_u64()?,
        // Messages of old versions have no content.
        content: match &part["content"] {
            Value::Null => None,
            content => Some(serde_json::from_value(content.clone()).ok()?),
        },
    }))
}

/// Decodes a command. `find` finds a step of the receiving run by name.
pub fn decode(body: &[u8], find: impl Fn(&str) -> Option<StepAt>) -> Result<Command, Unreadable> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| Unreadable(error.to_string()))?;
    if value["v"] != 1 {
        return Err(Unreadable("unknown version".to_owned()));
    }
    let text = |key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| invalid(key));
    Ok(match value["do"].as_str().unwrap_or_default() {
        "parts" => {
            let (at, dispatch_no) = decode_named_step(&value, find)?;
            let parts = value["parts"].as_array().ok_or_else(|| invalid("parts"))?;
            let parts = parts.iter().map(|one| decode_part(one).ok_or_else(|| invalid("parts")));
            Command::Parts { at, dispatch_no, parts: parts.collect::<Result<_, _>>()? }
        }
        "callback" => {
            let (at, dispatch_no) = decode_named_step(&value, find)?;
            let answer = decode_answer(&value["answer"]).ok_or_else(|| invalid("answer"))?;
            Command::Complete { at, dispatch_no, answer: Box::new(answer) }
        }
        "cancel" => Command::Cancel { by: text("by")?, reason: text("reason")? },
        "pause" => Command::Pause { by: text("by")? },
        "unpause" => Command::Unpause { by: text("by")? },
        "retry" => Command::Retry { by: text("by")? },
        "assign" => {
            let step = value["step"].as_u64().and_then(|step| u32::try_from(step).ok());
            let step = step.ok_or_else(|| invalid("step"))?;
            Command::Assign { by: text("by")?, step, whom: text("whom")? }
        }
        "rewind" => {
            let keep = value["keep"].as_array().ok_or_else(|| invalid("keep"))?;
            let step = |one: &Value| one.as_u64().and_then(|step| u32::try_from(step).ok());
            let keep = keep.iter().map(|one| step(one).ok_or_else(|| invalid("keep")));
            Command::Rewind { by: text("by")?, keep: keep.collect::<Result<_, _>>()? }
        }
        "resolve" => Command::Resolve(Box::new(decode_resolve(&value)?)),
        "child_ended" => decode_child_ended(&value)?,
        "child_paced" => Command::ChildPaced {
            child: RunId::parse(&text("child")?).ok_or_else(|| invalid("child"))?,
            pace: word::<ChildPace>(&text("pace")?).ok_or_else(|| invalid("pace"))?,
            at_ms: value["at_ms"].as_u64().ok_or_else(|| invalid("at_ms"))?,
        },
        "complete" => {
            let (at, dispatch_no) = decode_step(&value)?;
            let answer = decode_answer(&value["answer"]).ok_or_else(|| invalid("answer"))?;
            Command::Complete { at, dispatch_no, answer: Box::new(answer) }
        }
        "use_tool" => {
            let (at, dispatch_no) = decode_step(&value)?;
            let (id, tool, input) = (text("id")?, text("tool")?, value["input"].clone());
            Command::UseTool { at, dispatch_no, wanted: ToolUse { id, tool, input } }
        }
        other => return Err(Unreadable(format!("unknown command `{other}`"))),
    })
}

fn decode_child_ended(value: &Value) -> Result<Command, Unreadable> {
    let text = |key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| invalid(key));
    Ok(Command::ChildEnded {
        child: RunId::parse(&text("child")?).ok_or_else(|| invalid("child"))?,
        status: word::<RunStatus>(&text("status")?).ok_or_else(|| invalid("status"))?,
        outputs: Some(value["outputs"].clone()).filter(|outputs| !outputs.is_null()),
        error: serde_json::from_value(value["error"].clone()).map_err(|_| invalid("error"))?,
        // Messages of old versions have no origins.
        origins: match value["origins"].as_array() {
            None => Vec::new(),
            Some(all) => {
                let all =
                    all.iter().map(|one| decode_origin(one).ok_or_else(|| invalid("origins")));
                all.collect::<Result<_, _>>()?
            }
        },
        labels: match &value["labels"] {
            Value::Null => None,
            labels => Some(decode_labels(labels).ok_or_else(|| invalid("labels"))?),
        },
    })
}

/// The step, by its name, and the number of the dispatch.
fn decode_named_step(
    value: &Value,
    find: impl Fn(&str) -> Option<StepAt>,
) -> Result<(StepAt, u32), Unreadable> {
    let at = value["step"].as_str().and_then(find).ok_or_else(|| invalid("step"))?;
    let number = value["dispatch_no"].as_u64().and_then(|no| u32::try_from(no).ok());
    Ok((at, number.ok_or_else(|| invalid("dispatch_no"))?))
}

/// The step, by its position, and the number of the dispatch.
fn decode_step(value: &Value) -> Result<(StepAt, u32), Unreadable> {
    let number = |key: &str| value[key].as_u64().and_then(|one| u32::try_from(one).ok());
    let step = number("step").ok_or_else(|| invalid("step"))?;
    let at = StepAt { step, item: number("item") };
    Ok((at, number("dispatch_no").ok_or_else(|| invalid("dispatch_no"))?))
}

fn decode_resolve(value: &Value) -> Result<Resolve, Unreadable> {
    let text = |key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| invalid(key));
    Ok(Resolve {
        approval: ApprovalId::parse(&text("approval")?).ok_or_else(|| invalid("approval"))?,
        decision: Decision::parse(&text("decision")?).ok_or_else(|| invalid("decision"))?,
        by: text("by")?,
        comment: value["comment"].as_str().map(str::to_owned),
        values: value["values"].as_object().cloned().unwrap_or_default(),
        roles: match value.get("roles") {
            None => Vec::new(),
            Some(roles) => serde_json::from_value(roles.clone()).map_err(|_| invalid("roles"))?,
        },
        constraints: match value.get("constraints") {
            None => None,
            Some(written) => {
                serde_json::from_value(written.clone()).map_err(|_| invalid("constraints"))?
            }
        },
    })
}

fn encode_origin(one: &Provenance) -> Value {
    json!({
        "run": one.source_run.map(|run| run.to_string()), "node": one.source_node,
        "path": one.source_output_path, "to": one.target_input_path, "how": one.transform,
    })
}

fn decode_origin(value: &Value) -> Option<Provenance> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some(Provenance {
        source_run: match text("run") {
            None => None,
            Some(run) => Some(RunId::parse(&run)?),
        },
        source_node: text("node")?,
        source_output_path: text("path")?,
        target_input_path: text("to")?,
        transform: text("how"),
    })
}

fn encode_labels(passed: &PassedLabels) -> Value {
    json!({"all": WrittenLabels::from(&passed.labels), "fields": passed.field_labels.written()})
}

fn decode_labels(value: &Value) -> Option<PassedLabels> {
    let labels = WrittenLabels::deserialize(&value["all"]).ok()?.read()?;
    let fields = WrittenFields::deserialize(&value["fields"]).ok()?;
    Some(PassedLabels { labels, field_labels: FieldLabels::read(&fields) })
}

fn encode_answer(answer: &Answer) -> Value {
    let error = answer.error.as_ref().map(|error| {
        json!({"code": error.code, "message": error.message, "retry_after_ms": error.retry_after_ms})
    });
    json!({
        "error": error, "text": answer.text, "outputs": answer.outputs, "kind": answer.kind,
        "artifact_kind": answer.artifact_kind, "media": answer.media, "metadata": answer.metadata,
        "session": answer.session,
        "model": answer.usage.model, "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "thinking_tokens": answer.usage.thinking_tokens,
        "cached_tokens": answer.usage.cached_tokens, "unpriced": answer.usage.unpriced,
        "conversation": answer.conversation, "artefacts": answer.artefacts,
        "cost": answer.usage.cost.micro_cents(), "unknown": answer.usage.unknown,
    })
}

fn decode_answer(value: &Value) -> Option<Answer> {
    let fields: &Map<String, Value> = value.as_object()?;
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| fields.get(key).and_then(Value::as_u64).unwrap_or(0);
    let flag = |key: &str| fields.get(key).and_then(Value::as_bool).unwrap_or(false);
    let list = |key: &str| fields.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let given = |key: &str| fields.get(key).filter(|value| !value.is_null());
    let error = match given("error") {
        None => None,
        Some(error) => Some(CallError {
            code: word::<CallErrorCode>(error["code"].as_str()?)?,
            message: error["message"].as_str()?.to_owned(),
            retry_after_ms: error["retry_after_ms"].as_u64(),
        }),
    };
    Some(Answer {
        error,
        text: text("text"),
        outputs: given("outputs").and_then(Value::as_object).cloned(),
        kind: text("kind"),
        artifact_kind: text("artifact_kind"),
        media: given("media").cloned(),
        metadata: given("metadata").and_then(Value::as_object).cloned(),
        usage: Usage {
            model: text("model"),
            input_tokens: number("input_tokens"),
            output_tokens: number("output_tokens"),
            thinking_tokens: number("thinking_tokens"),
            cached_tokens: number("cached_tokens"),
            unpriced: flag("unpriced"),
            cost: Money::from_micro_cents(number("cost")),
            unknown: flag("unknown"),
        },
        session: text("session"),
        conversation: list("conversation"),
        artefacts: list("artefacts"),
    })
}

#[cfg(test)]
mod tests;
