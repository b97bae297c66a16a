//! Dialect of Anthropic's Messages API.
//!
//! An object that must match a schema is requested as the input of a single tool that the model
//! must call. That is impossible while real tools are offered; then the system prompt asks for
//! it.
//!
//! Reasoning tokens are counted as output, because the provider does not report them
//! separately. Reasoning blocks are returned with the tool calls they led to, with their
//! signature.

use super::dialect::{
    AnswerFormat, ConversationMessage, Dialect, ModelRequest, ResponseDecoder, ToolResult, below,
    sensitive,
};
use super::draft::{StopReason, TurnDraft, count, parse, word};
use super::failure::in_stream;
use super::offer::OfferedTool;
use super::sse::SseEvent;
use crate::limits::OUTPUT_TOKENS_DEFAULT;
use crate::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::{Value, json};
use sluice_core::port::adapter::CallError;

pub(super) const HOME: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
/// Name of the tool that carries the answer as its input.
const ANSWER: &str = "answer";

#[derive(Debug)]
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn home(&self) -> &'static str {
        HOME
    }

    fn turn_path(&self, base: &str, _: &str) -> String {
        format!("{}/messages", below(base, "/v1"))
    }

    fn models_path(&self, base: &str) -> String {
        format!("{}/models", below(base, "/v1"))
    }

    fn key_header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        Ok((HeaderName::from_static("x-api-key"), sensitive(key.expose())?))
    }

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_static("anthropic-version");
        vec![(name, HeaderValue::from_static(VERSION))]
    }

    fn enforces(&self, format: AnswerFormat<'_>, tools: &[OfferedTool]) -> bool {
        matches!(format, AnswerFormat::Schema(_)) && tools.is_empty()
    }

    fn body(&self, request: &ModelRequest<'_>) -> Value {
        let messages: Vec<Value> = request
            .conversation
            .iter()
            .map(|message| match message {
                ConversationMessage::User(text) => json!({"role": "user", "content": text}),
                ConversationMessage::Model(echo) => echo.clone(),
                ConversationMessage::Results(results) => {
                    json!({"role": "user", "content": results.iter().map(result).collect::<Value>()})
                }
            })
            .collect();
        let mut body = json!({
            "model": request.model, "messages": messages, "stream": true,
            "max_tokens": request.max_output_tokens.unwrap_or(OUTPUT_TOKENS_DEFAULT),
        });
        if let Some(text) = request.system {
            body["system"] = text.into();
        }
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        } else if let AnswerFormat::Schema(schema) = request.format {
            let about = "Gives the answer. Call it once, with the whole answer.";
            body["tools"] = json!([{"name": ANSWER, "description": about, "input_schema": schema}]);
            body["tool_choice"] =
                json!({"type": "tool", "name": ANSWER, "disable_parallel_tool_use": true});
        }
        body
    }

    fn decoder(&self, request: &ModelRequest<'_>) -> Box<dyn ResponseDecoder> {
        let answers_by_tool = self.enforces(request.format, request.tools);
        Box::new(AnthropicDecoder { answers_by_tool, blocks: Vec::new() })
    }
}

fn tool(offered: &OfferedTool) -> Value {
    json!({
        "name": offered.alias, "description": offered.tool.description,
        "input_schema": offered.tool.input_schema,
    })
}

fn result(outcome: &ToolResult) -> Value {
    json!({
        "type": "tool_result", "tool_use_id": outcome.call.id,
        "content": outcome.text, "is_error": outcome.failed,
    })
}

/// A content block of the model's message.
#[derive(Debug)]
enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call(usize),
    /// The tool call that carries the answer as its input.
    Answer,
    /// A block that is not returned to the provider.
    Other,
}

#[derive(Debug)]
struct AnthropicDecoder {
    answers_by_tool: bool,
    blocks: Vec<Block>,
}

impl ResponseDecoder for AnthropicDecoder {
    fn event(&mut self, event: &SseEvent, draft: &mut TurnDraft) -> Result<(), CallError> {
        let data = parse(&event.data)?;
        if let Some(trouble) = in_stream(&data) {
            return Err(trouble);
        }
        match word(&data, "/type").unwrap_or(&event.name) {
            "message_start" => {
                draft.model = word(&data, "/message/model").map(str::to_owned);
                usage(data.pointer("/message/usage"), draft);
            }
            "content_block_start" => {
                draft.count_piece()?;
                let block = self.begin(&data["content_block"], draft)?;
                self.blocks.push(block);
            }
            "content_block_delta" => self.grow(&data, draft)?,
            "message_delta" => {
                usage(data.get("usage"), draft);
                if let Some(reason) = word(&data, "/delta/stop_reason") {
                    draft.counted.whole = data.get("usage").is_some();
                    draft.stop = Some(match reason {
                        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
                        "refusal" => StopReason::Filtered("the model refused".to_owned()),
                        _ => StopReason::Done,
                    });
                }
            }
            "message_stop" => draft.ended = draft.stop.is_some(),
            // Pings, ends of blocks, and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn echo(&mut self, draft: &TurnDraft) -> Value {
        let blocks = std::mem::take(&mut self.blocks).into_iter().filter_map(|block| match block {
            // The provider rejects an empty text.
            Block::Text(text) => (!text.is_empty()).then(|| json!({"type": "text", "text": text})),
            Block::Thinking { text, signature } => {
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            Block::Redacted(data) => Some(json!({"type": "redacted_thinking", "data": data})),
            Block::Call(at) => {
                let call = &draft.calls[at];
                let input = call.echo();
                Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
            }
            Block::Answer | Block::Other => None,
        });
        json!({"role": "assistant", "content": blocks.collect::<Value>()})
    }
}

impl AnthropicDecoder {
    fn begin(&mut self, data: &Value, draft: &mut TurnDraft) -> Result<Block, CallError> {
        let part = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
        Ok(match part("type") {
            "text" => {
                draft.append_text(part("text"))?;
                Block::Text(part("text").to_owned())
            }
            "thinking" => {
                let (text, signature) = (part("thinking").to_owned(), part("signature").to_owned());
                draft.count_echo(text.len() + signature.len())?;
                Block::Thinking { text, signature }
            }
            "redacted_thinking" => {
                draft.count_echo(part("data").len())?;
                Block::Redacted(part("data").to_owned())
            }
            "tool_use" if self.answers_by_tool && part("name") == ANSWER => Block::Answer,
            "tool_use" => Block::Call(draft.begin_call(part("id"), part("name"))?),
            _ => Block::Other,
        })
    }

    fn grow(&mut self, data: &Value, draft: &mut TurnDraft) -> Result<(), CallError> {
        let at = count(data, "/index").and_then(|index| usize::try_from(index).ok());
        let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) else { return Ok(()) };
        let part = |name: &str| {
            data.get("delta").and_then(|delta| delta.get(name)?.as_str()).unwrap_or_default()
        };
        match block {
            Block::Text(text) => {
                draft.append_text(part("text"))?;
                text.push_str(part("text"));
            }
            Block::Thinking { text, signature } => {
                draft.count_echo(part("thinking").len() + part("signature").len())?;
                text.push_str(part("thinking"));
                signature.push_str(part("signature"));
            }
            Block::Call(at) => draft.append_arguments(*at, part("partial_json"))?,
            Block::Answer => draft.append_text(part("partial_json"))?,
            Block::Redacted(_) | Block::Other => {}
        }
        Ok(())
    }
}

/// Token counts of an event; they are totals of the turn so far.
fn usage(data: Option<&Value>, draft: &mut TurnDraft) {
    let Some(data) = data else { return };
    let counted = &mut draft.counted;
    if let Some(fresh) = count(data, "/input_tokens") {
        let kept = count(data, "/cache_read_input_tokens").unwrap_or(0);
        let written = count(data, "/cache_creation_input_tokens").unwrap_or(0);
        counted.input = fresh.saturating_add(kept).saturating_add(written);
        counted.cached = kept;
    }
    if let Some(output) = count(data, "/output_tokens") {
        counted.output = output;
    }
}

#[cfg(test)]
mod tests;
