//! Dialect of OpenAI's Chat Completions API, which many providers implement: Ollama, vLLM,
//! llama.cpp, LM Studio, OpenRouter.
//!
//! Implementations deviate, so the decoder tolerates what is unambiguous: a stream that ends
//! without `[DONE]` after its finish reason, calls without ids, a missing index.

use super::dialect::{
    AnswerFormat, ConversationMessage, Dialect, ModelRequest, ResponseDecoder, ToolResult,
    sensitive,
};
use super::draft::{StopReason, TurnDraft, count, parse, word};
use super::failure::in_stream;
use super::offer::OfferedTool;
use super::schema;
use super::sse::SseEvent;
use crate::media::{File, FileContent};
use crate::secret::Secret;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::{Map, Value, json};
use sluice_core::port::adapter::CallError;

pub(super) const HOME: &str = "https://api.openai.com/v1";

/// Name of the output limit in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputLimitField {
    /// OpenAI itself: its newer models accept no other name.
    MaxCompletionTokens,
    /// All other implementations.
    MaxTokens,
}

#[derive(Debug)]
pub(super) struct OpenAi {
    limit_field: OutputLimitField,
}

impl OpenAi {
    /// The dialect for a base URL.
    pub(super) fn at(base: Option<&str>) -> OpenAi {
        let home = base.is_none_or(|base| base.starts_with("https://api.openai.com/"));
        OpenAi {
            limit_field: if home {
                OutputLimitField::MaxCompletionTokens
            } else {
                OutputLimitField::MaxTokens
            },
        }
    }
}

impl Dialect for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn home(&self) -> &'static str {
        HOME
    }

    fn turn_path(&self, _: &str, _: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn models_path(&self, _: &str) -> String {
        "/models".to_owned()
    }

    fn key_header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        Ok((AUTHORIZATION, sensitive(&format!("Bearer {}", key.expose()))?))
    }

    fn enforces(&self, _: AnswerFormat<'_>, _: &[OfferedTool]) -> bool {
        true
    }

    fn body(&self, request: &ModelRequest<'_>) -> Value {
        let mut messages: Vec<Value> = Vec::new();
        messages.extend(request.system.map(|text| json!({"role": "system", "content": text})));
        for message in request.conversation {
            match message {
                ConversationMessage::User(text) => {
                    messages.push(json!({"role": "user", "content": text}));
                }
                ConversationMessage::Model(echo) => messages.push(echo.clone()),
                ConversationMessage::Results(results) => {
                    messages.extend(results.iter().map(result));
                }
            }
        }
        let mut body = json!({
            "model": request.model, "messages": messages,
            "stream": true, "stream_options": {"include_usage": true},
        });
        if let Some(most) = request.max_output_tokens {
            let name = match self.limit_field {
                OutputLimitField::MaxCompletionTokens => "max_completion_tokens",
                OutputLimitField::MaxTokens => "max_tokens",
            };
            body[name] = most.into();
        }
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        match request.format {
            AnswerFormat::Text => {}
            AnswerFormat::Object => body["response_format"] = json!({"type": "json_object"}),
            AnswerFormat::Schema(wanted) => {
                let form = match schema::strict(wanted) {
                    Some(strict) => json!({"name": "answer", "schema": strict, "strict": true}),
                    None => json!({"name": "answer", "schema": wanted}),
                };
                body["response_format"] = json!({"type": "json_schema", "json_schema": form});
            }
        }
        body
    }

    fn decoder(&self, _: &ModelRequest<'_>) -> Box<dyn ResponseDecoder> {
        Box::new(OpenAiDecoder::default())
    }

    fn unpack(&self, object: &mut Value, format: AnswerFormat<'_>) {
        if let AnswerFormat::Schema(wanted) = format {
            schema::without_nulls(object, wanted);
        }
    }
}

fn tool(offered: &OfferedTool) -> Value {
    json!({"type": "function", "function": {
        "name": offered.alias, "description": offered.tool.description,
        "parameters": offered.tool.input_schema,
    }})
}

fn result(outcome: &ToolResult) -> Value {
    json!({"role": "tool", "tool_call_id": outcome.call.id, "content": outcome.text})
}

#[derive(Debug, Default)]
struct OpenAiDecoder {
    /// The provider's index of each call, if it sent one.
    numbers: Vec<Option<u64>>,
    refusal: String,
}

impl ResponseDecoder for OpenAiDecoder {
    fn event(&mut self, event: &SseEvent, draft: &mut TurnDraft) -> Result<(), CallError> {
        if event.data.trim() == "[DONE]" {
            draft.ended = draft.stop.is_some();
            return Ok(());
        }
        let data = parse(&event.data)?;
        if let Some(trouble) = in_stream(&data) {
            return Err(trouble);
        }
        if draft.model.is_none() {
            draft.model = word(&data, "/model").filter(|name| !name.is_empty()).map(str::to_owned);
        }
        if let Some(choice) = data.pointer("/choices/0") {
            self.choice(choice, draft)?;
        }
        usage(&data, draft);
        Ok(())
    }

    fn echo(&mut self, draft: &TurnDraft) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let text = if draft.text.is_empty() { Value::Null } else { draft.text.as_str().into() };
        message.insert("content".to_owned(), text);
        let calls = draft.calls.iter().map(|call| {
            let arguments = call.echo().to_string();
            let function = json!({"name": call.name, "arguments": arguments});
            json!({"id": call.id, "type": "function", "function": function})
        });
        message.insert("tool_calls".to_owned(), calls.collect());
        Value::Object(message)
    }
}

impl OpenAiDecoder {
    fn choice(&mut self, choice: &Value, draft: &mut TurnDraft) -> Result<(), CallError> {
        if let Some(text) = word(choice, "/delta/content") {
            draft.append_text(text)?;
        }
        if let Some(text) = word(choice, "/delta/refusal") {
            draft.count_echo(text.len())?;
            self.refusal.push_str(text);
        }
        for call in list(choice, "/delta/tool_calls") {
            self.call(call, draft)?;
        }
        for image in list(choice, "/delta/images") {
            draft.count_piece()?;
            if let Some(made) = picture(image) {
                draft.add_file(made);
            }
        }
        if let Some(reason) = word(choice, "/finish_reason") {
            draft.stop = Some(match reason {
                _ if !self.refusal.is_empty() => StopReason::Filtered(self.refusal.clone()),
                "length" => StopReason::Length,
                "content_filter" => {
                    StopReason::Filtered("the content filter stopped it".to_owned())
                }
                _ => StopReason::Done,
            });
        }
        Ok(())
    }

    fn call(&mut self, data: &Value, draft: &mut TurnDraft) -> Result<(), CallError> {
        let number = count(data, "/index");
        let id = word(data, "/id").unwrap_or_default();
        let name = word(data, "/function/name").unwrap_or_default();
        let known = self.numbers.iter().rposition(|one| *one == number);
        // Some implementations send index 0 for every call and distinguish them by id.
        let same = |at: &usize| id.is_empty() || draft.calls[*at].id == id;
        let at = match known.filter(same) {
            Some(at) => at,
            None => {
                let begun = draft.calls.len();
                let made = format!("call_{begun}");
                self.numbers.push(number);
                draft.begin_call(if id.is_empty() { &made } else { id }, name)?
            }
        };
        if draft.calls[at].name.is_empty() {
            name.clone_into(&mut draft.calls[at].name);
        }
        draft.append_arguments(at, word(data, "/function/arguments").unwrap_or_default())
    }
}

fn usage(data: &Value, draft: &mut TurnDraft) {
    let Some(usage) = data.get("usage").filter(|usage| usage.is_object()) else { return };
    let figure = |pointer| count(usage, pointer).unwrap_or(0);
    let thinking = figure("/completion_tokens_details/reasoning_tokens");
    let written = figure("/completion_tokens");
    draft.counted.input = figure("/prompt_tokens");
    draft.counted.cached = figure("/prompt_tokens_details/cached_tokens");
    draft.counted.thinking = thinking.min(written);
    draft.counted.output = written.saturating_sub(thinking);
    // Some implementations send it with every event: it is final once the model has
    // stopped.
    draft.counted.whole = draft.stop.is_some();
}

fn picture(image: &Value) -> Option<File> {
    let url = word(image, "/image_url/url")?;
    let Some(inline) = url.strip_prefix("data:") else {
        let content = FileContent::Url(url.to_owned());
        return Some(File { mime: "image/*".to_owned(), content });
    };
    let (mime, base64) = inline.split_once(";base64,")?;
    Some(File { mime: mime.to_owned(), content: FileContent::Base64(base64.to_owned()) })
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests;
