//! Dialect of Gemini's `streamGenerateContent`.
//!
//! Its tool calls may have no ids, so the adapter generates them; parts of its message carry
//! signatures that must be returned unchanged. A schema cannot be enforced while tools are
//! offered.

use super::dialect::{
    AnswerFormat, ConversationMessage, Dialect, ModelRequest, ResponseDecoder, ToolResult, below,
    sensitive,
};
use super::draft::{StopReason, TurnDraft, count, parse, word};
use super::failure::in_stream;
use super::offer::OfferedTool;
use super::schema;
use super::sse::SseEvent;
use crate::media::{File, FileContent};
use crate::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::{Map, Value, json};
use sluice_core::port::adapter::CallError;

pub(super) const HOME: &str = "https://generativelanguage.googleapis.com";

#[derive(Debug)]
pub(super) struct Google;

impl Dialect for Google {
    fn provider(&self) -> &'static str {
        "google"
    }

    fn home(&self) -> &'static str {
        HOME
    }

    fn turn_path(&self, base: &str, model: &str) -> String {
        let model = escaped(model.strip_prefix("models/").unwrap_or(model));
        format!("{}/models/{model}:streamGenerateContent?alt=sse", version(base))
    }

    fn models_path(&self, base: &str) -> String {
        format!("{}/models", version(base))
    }

    fn key_header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        Ok((HeaderName::from_static("x-goog-api-key"), sensitive(key.expose())?))
    }

    fn enforces(&self, format: AnswerFormat<'_>, tools: &[OfferedTool]) -> bool {
        !matches!(format, AnswerFormat::Text) && tools.is_empty()
    }

    fn body(&self, request: &ModelRequest<'_>) -> Value {
        let contents: Vec<Value> = request
            .conversation
            .iter()
            .map(|message| match message {
                ConversationMessage::User(text) => {
                    json!({"role": "user", "parts": [{"text": text}]})
                }
                ConversationMessage::Model(echo) => echo.clone(),
                ConversationMessage::Results(results) => {
                    json!({"role": "user", "parts": results.iter().map(result).collect::<Value>()})
                }
            })
            .collect();
        let mut body = json!({"contents": contents});
        if let Some(text) = request.system {
            body["systemInstruction"] = json!({"parts": [{"text": text}]});
        }
        if !request.tools.is_empty() {
            let tools: Value = request.tools.iter().map(tool).collect();
            body["tools"] = json!([{"functionDeclarations": tools}]);
        }
        let mut settings = Map::new();
        if let Some(most) = request.max_output_tokens {
            settings.insert("maxOutputTokens".to_owned(), most.into());
        }
        if self.enforces(request.format, request.tools) {
            settings.insert("responseMimeType".to_owned(), "application/json".into());
            if let AnswerFormat::Schema(wanted) = request.format {
                let (name, schema) = match schema::gemini(wanted) {
                    Some(schema) => ("responseSchema", schema),
                    None => ("responseJsonSchema", wanted.clone()),
                };
                settings.insert(name.to_owned(), schema);
            }
        }
        if !settings.is_empty() {
            body["generationConfig"] = Value::Object(settings);
        }
        body
    }

    fn decoder(&self, _: &ModelRequest<'_>) -> Box<dyn ResponseDecoder> {
        Box::new(GoogleDecoder::default())
    }
}

fn version(base: &str) -> &'static str {
    if base.ends_with("/v1") { "" } else { below(base, "/v1beta") }
}

/// Percent-encodes a model's name for a path.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn tool(offered: &OfferedTool) -> Value {
    let mut out = json!({"name": offered.alias, "description": offered.tool.description});
    let wanted = &offered.tool.input_schema;
    let takes_some =
        wanted.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    match schema::gemini(wanted) {
        Some(schema) => out["parameters"] = schema,
        None if takes_some => out["parametersJsonSchema"] = wanted.clone(),
        // A tool without parameters declares none: an object without properties is
        // rejected.
        None => {}
    }
    out
}

fn result(outcome: &ToolResult) -> Value {
    let name = if outcome.failed { "error" } else { "result" };
    let mut response = json!({"name": outcome.call.name, "response": {name: outcome.text}});
    if !is_made_up(&outcome.call.id) {
        response["id"] = outcome.call.id.as_str().into();
    }
    json!({"functionResponse": response})
}

/// Prefix of generated call ids.
const MADE_UP: &str = "gemini_call_";

fn is_made_up(id: &str) -> bool {
    id.starts_with(MADE_UP)
}

#[derive(Debug, Default)]
struct GoogleDecoder {
    /// Parts of the message that are returned in the next turn.
    parts: Vec<Value>,
}

impl ResponseDecoder for GoogleDecoder {
    fn event(&mut self, event: &SseEvent, draft: &mut TurnDraft) -> Result<(), CallError> {
        let data = parse(&event.data)?;
        if let Some(trouble) = in_stream(&data) {
            return Err(trouble);
        }
        if draft.model.is_none() {
            draft.model = word(&data, "/modelVersion").map(str::to_owned);
        }
        if let Some(reason) = word(&data, "/promptFeedback/blockReason") {
            draft.stop = Some(StopReason::Filtered(format!("the prompt was blocked: {reason}")));
        }
        let parts = data.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, draft)?;
        }
        if let Some(reason) = word(&data, "/candidates/0/finishReason") {
            draft.stop = Some(stop(reason));
        }
        usage(&data, draft);
        Ok(())
    }

    fn echo(&mut self, _: &TurnDraft) -> Value {
        json!({"role": "model", "parts": std::mem::take(&mut self.parts)})
    }
}

impl GoogleDecoder {
    fn part(&mut self, part: &Value, draft: &mut TurnDraft) -> Result<(), CallError> {
        if part.get("thought") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        if let Some(call) = part.get("functionCall") {
            let id = word(call, "/id")
                .map_or_else(|| format!("{MADE_UP}{}", draft.calls.len()), str::to_owned);
            let at = draft.begin_call(&id, word(call, "/name").unwrap_or_default())?;
            if let Some(arguments) = call.get("args").filter(|args| !args.is_null()) {
                draft.append_arguments(at, &arguments.to_string())?;
            }
            draft.count_echo(word(part, "/thoughtSignature").map_or(0, str::len))?;
            self.parts.push(part.clone());
        } else if let Some(text) = word(part, "/text") {
            draft.append_text(text)?;
            self.text(part, text, draft)?;
        } else if let Some(file) = part.get("inlineData") {
            draft.count_piece()?;
            let field = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
            draft.add_file(File {
                mime: field("mimeType").to_owned(),
                content: FileContent::Base64(field("data").to_owned()),
            });
        }
        Ok(())
    }

    /// Joins successive texts, unless they are signed.
    fn text(&mut self, part: &Value, text: &str, draft: &mut TurnDraft) -> Result<(), CallError> {
        if let Some(signature) = word(part, "/thoughtSignature") {
            draft.count_piece()?;
            draft.count_echo(signature.len())?;
            self.parts.push(json!({"text": text, "thoughtSignature": signature}));
            return Ok(());
        }
        let open = self.parts.last_mut().and_then(Value::as_object_mut);
        let open = open.filter(|last| last.len() == 1).and_then(|last| last.get_mut("text"));
        if let Some(Value::String(before)) = open {
            before.push_str(text);
        } else if !text.is_empty() {
            draft.count_piece()?;
            self.parts.push(json!({"text": text}));
        }
        Ok(())
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "STOP" | "FUNCTION_CALL" => StopReason::Done,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Filtered(format!("the model stopped: {reason}")),
        _ => StopReason::Broken(format!("the model stopped: {reason}")),
    }
}

/// Token counts of the turn so far.
fn usage(data: &Value, draft: &mut TurnDraft) {
    let Some(usage) = data.get("usageMetadata").filter(|usage| usage.is_object()) else { return };
    let figure = |pointer| count(usage, pointer).unwrap_or(0);
    let counted = &mut draft.counted;
    counted.input = figure("/promptTokenCount").saturating_add(figure("/toolUsePromptTokenCount"));
    counted.cached = figure("/cachedContentTokenCount");
    counted.output = figure("/candidatesTokenCount");
    counted.thinking = figure("/thoughtsTokenCount");
    counted.whole = draft.stop.is_some();
}

#[cfg(test)]
mod tests;
