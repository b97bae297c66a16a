//! A scripted wire, and a fake tool server.

use crate::directory::{AdapterContext, Connection};
use crate::model::ModelAdapter;
use crate::outbound::Request;
use crate::outbound::error::OutboundError;
use crate::secret::keyring::Keyring;
use crate::tools::{Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::{Incoming, RequestIndex, Wire};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use sluice_core::port::Later;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub(super) struct ScriptedResponse {
    opens: Result<u16, OutboundError>,
    headers: HeaderMap,
    parts: VecDeque<Result<Vec<u8>, OutboundError>>,
    /// Whether the response hangs after its parts.
    hangs: bool,
}

impl ScriptedResponse {
    pub(super) fn stream(body: &str) -> ScriptedResponse {
        ScriptedResponse::status(200, body)
            .header("content-type", "text/event-stream; charset=utf-8")
    }

    pub(super) fn status(status: u16, body: &str) -> ScriptedResponse {
        let parts = VecDeque::from([Ok(body.as_bytes().to_vec())]);
        ScriptedResponse { opens: Ok(status), headers: HeaderMap::new(), parts, hangs: false }
    }

    pub(super) fn fails(trouble: OutboundError) -> ScriptedResponse {
        ScriptedResponse { opens: Err(trouble), ..ScriptedResponse::status(0, "") }
    }

    pub(super) fn unreachable() -> ScriptedResponse {
        ScriptedResponse::fails(OutboundError::Unreachable("gone".to_owned()))
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> ScriptedResponse {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    pub(super) fn byte_by_byte(mut self) -> ScriptedResponse {
        let whole: Vec<u8> = self.parts.drain(..).flat_map(Result::unwrap).collect();
        self.parts = whole.into_iter().map(|byte| Ok(vec![byte])).collect();
        self
    }

    /// Breaks off after `bytes`.
    pub(super) fn breaks_after(mut self, bytes: usize) -> ScriptedResponse {
        let mut whole: Vec<u8> = self.parts.drain(..).flat_map(Result::unwrap).collect();
        whole.truncate(bytes);
        self.parts = VecDeque::from([Ok(whole), Err(OutboundError::Broken)]);
        self
    }

    /// Ends normally after `bytes`.
    pub(super) fn ends_after(self, bytes: usize) -> ScriptedResponse {
        let mut cut = self.breaks_after(bytes);
        cut.parts.pop_back();
        cut
    }

    /// Ends with the event that contains a text.
    pub(super) fn ends_with(self, text: &str) -> ScriptedResponse {
        let whole: Vec<u8> = self.parts.iter().flatten().flatten().copied().collect();
        let whole = String::from_utf8(whole).unwrap();
        let at = whole.find(text).unwrap();
        let end = at + whole[at..].find("\n\n").unwrap() + 2;
        self.ends_after(end)
    }

    /// Appends bytes to the last part.
    pub(super) fn then(mut self, more: &str) -> ScriptedResponse {
        if let Some(Ok(last)) = self.parts.back_mut() {
            last.extend_from_slice(more.as_bytes());
        }
        self
    }

    pub(super) fn then_hangs(mut self) -> ScriptedResponse {
        self.hangs = true;
        self
    }

    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.as_ref().map_or(0, Vec::len)).sum()
    }
}

impl Incoming for ScriptedResponse {
    fn status(&self) -> u16 {
        self.opens.clone().unwrap()
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn chunk(&mut self) -> Later<'_, Result<Option<Vec<u8>>, OutboundError>> {
        match self.parts.pop_front() {
            None if self.hangs => Box::pin(std::future::pending()),
            part => Box::pin(std::future::ready(part.transpose())),
        }
    }
}

/// A request that was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    pub(super) number: u32,
}

/// A wire that answers from a script, and records the requests.
#[derive(Debug, Default)]
pub(super) struct ScriptedWire {
    scenes: Mutex<VecDeque<ScriptedResponse>>,
    sent: Mutex<Vec<Sent>>,
    tools: Mutex<Option<Arc<FakeTools>>>,
}

impl ScriptedWire {
    pub(super) fn new(scenes: impl IntoIterator<Item = ScriptedResponse>) -> Arc<ScriptedWire> {
        let scenes = Mutex::new(scenes.into_iter().collect());
        Arc::new(ScriptedWire { scenes, ..ScriptedWire::default() })
    }

    /// Adds a tool server named `box`.
    pub(super) fn with(
        scenes: impl IntoIterator<Item = ScriptedResponse>,
        drawer: &Arc<FakeTools>,
    ) -> Arc<ScriptedWire> {
        let wire = ScriptedWire::new(scenes);
        *wire.tools.lock().unwrap() = Some(Arc::clone(drawer));
        wire
    }

    pub(super) fn kit(self: &Arc<ScriptedWire>) -> AdapterContext {
        let drawer = self.tools.lock().unwrap().clone();
        let server = drawer.map(|drawer| ("box".to_owned(), drawer as Arc<dyn ToolServer>));
        let (wire, tool_servers): (_, BTreeMap<_, _>) =
            (Arc::clone(self), server.into_iter().collect());
        AdapterContext { wire, tool_servers, secrets: Keyring::default(), callbacks: None }
    }

    pub(super) fn adapter(self: &Arc<ScriptedWire>, provider: &str) -> ModelAdapter {
        self.adapter_with(provider, |_| {})
    }

    pub(super) fn adapter_with(
        self: &Arc<ScriptedWire>,
        provider: &str,
        change: impl FnOnce(&mut Connection),
    ) -> ModelAdapter {
        let mut connection = Connection {
            provider: provider.to_owned(),
            base_url: Some("http://models.test".to_owned()),
            key: None,
            tool_servers: vec!["box".to_owned()],
        };
        change(&mut connection);
        ModelAdapter::for_connection(&self.kit(), &connection).expect("it is a provider of models")
    }

    pub(super) fn sent(&self, at: usize) -> Sent {
        self.sent.lock().unwrap()[at].clone()
    }

    pub(super) fn times(&self) -> usize {
        self.sent.lock().unwrap().len()
    }
}

impl Wire for ScriptedWire {
    fn open<'a>(
        &'a self,
        place: RequestIndex<'a>,
        request: &'a Request,
    ) -> Later<'a, Result<Box<dyn Incoming>, OutboundError>> {
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let (url, headers) = (request.url.clone(), request.headers.clone());
        self.sent.lock().unwrap().push(Sent { url, headers, body, number: place.number });
        let response = self.scenes.lock().unwrap().pop_front().expect("the script goes on");
        Box::pin(async move {
            response.opens.clone()?;
            if response.parts.is_empty()
                && response.hangs
                && response.headers.get(CONTENT_TYPE).is_none()
            {
                std::future::pending::<()>().await;
            }
            Ok(Box::new(response) as Box<dyn Incoming>)
        })
    }
}

/// A fake tool server: `box.read` reads, `box.write` writes, `box.odd name!` has an unusual
/// name.
#[derive(Debug, Default)]
pub(super) struct FakeTools {
    /// Its answer; `None` if it never answers.
    pub(super) answer: Option<Result<ToolAnswer, ToolServerError>>,
    pub(super) called: Mutex<Vec<(String, Value, u32)>>,
}

impl FakeTools {
    pub(super) fn saying(text: &str) -> Arc<FakeTools> {
        let answer =
            Some(Ok(ToolAnswer { text: text.to_owned(), failed: false, ..ToolAnswer::default() }));
        Arc::new(FakeTools { answer, ..FakeTools::default() })
    }

    pub(super) fn called(&self) -> Vec<(String, Value, u32)> {
        self.called.lock().unwrap().clone()
    }
}

impl ToolServer for FakeTools {
    fn name(&self) -> &str {
        "box"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let tool = |name: &str, read_only| Tool {
            name: name.to_owned(),
            description: format!("does {name}"),
            input_schema: json!({"type": "object", "properties": {"key": {"type": "string"}}}),
            read_only,
        };
        let tools = [tool("box.read", true), tool("box.write", false), tool("box.odd name!", true)];
        Box::pin(std::future::ready(Ok(tools.into())))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        place: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, crate::tools::Structured), ToolServerError>> {
        self.called.lock().unwrap().push((tool.to_owned(), input.clone(), place.number));
        match self.answer.clone() {
            Some(answer) => Box::pin(std::future::ready(answer.map(|answer| (answer, None)))),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// A stream of unnamed events.
pub(super) fn sse(events: &[String]) -> ScriptedResponse {
    let body: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    ScriptedResponse::stream(&body)
}

/// A stream in a dialect.
pub(super) type Plays =
    (&'static str, fn(&[&str]) -> ScriptedResponse, fn(&str, &str, &str) -> ScriptedResponse);

/// How each provider encodes a text and a tool call.
pub(super) const ALL: [Plays; 3] = [
    ("openai", openai::text, openai::call),
    ("anthropic", anthropic::text, anthropic::call),
    ("google", google::text, google::call),
];

pub(super) mod openai {
    use super::*;

    const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":25,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":5}}}"#;

    pub(in super::super) fn text(parts: &[&str]) -> ScriptedResponse {
        let delta = |delta: Value, why: Value| {
            json!({"model": "model-1-of-today", "choices": [{"index": 0, "delta": delta, "finish_reason": why}], "usage": null}).to_string()
        };
        let mut events = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
        events.extend(parts.iter().map(|part| delta(json!({"content": part}), Value::Null)));
        events.push(delta(json!({}), json!("stop")));
        events.extend([USAGE.to_owned(), "[DONE]".to_owned()]);
        sse(&events)
    }

    pub(in super::super) fn call(id: &str, name: &str, arguments: &str) -> ScriptedResponse {
        let (first, second) =
            arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        let calls =
            |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string();
        sse(&[
            calls(
                json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}),
            ),
            calls(json!({"index": 0, "function": {"arguments": first}})),
            calls(json!({"index": 0, "function": {"arguments": second}})),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
            USAGE.to_owned(),
            "[DONE]".to_owned(),
        ])
    }
}

pub(super) mod anthropic {
    use super::*;

    fn message(blocks: &[(Value, Vec<Value>)], reason: &str) -> ScriptedResponse {
        let mut events = vec![
            json!({"type": "message_start", "message": {
                "model": "model-1-of-today",
                "usage": {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10, "output_tokens": 1},
            }}),
            json!({"type": "ping"}),
        ];
        for (index, (block, deltas)) in blocks.iter().enumerate() {
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": block}),
            );
            let delta =
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.iter().map(delta));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}));
        events.push(json!({"type": "message_stop"}));
        let named = |event: &Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
        };
        ScriptedResponse::stream(&events.iter().map(named).collect::<String>())
    }

    pub(in super::super) fn text(parts: &[&str]) -> ScriptedResponse {
        let thinking = (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "hm"}),
                json!({"type": "signature_delta", "signature": "s1"}),
            ],
        );
        let deltas = parts.iter().map(|part| json!({"type": "text_delta", "text": part}));
        message(&[thinking, (json!({"type": "text", "text": ""}), deltas.collect())], "end_turn")
    }

    pub(in super::super) fn call(id: &str, name: &str, arguments: &str) -> ScriptedResponse {
        let (first, second) =
            arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        let thinking = (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "hm"}),
                json!({"type": "signature_delta", "signature": "s1"}),
            ],
        );
        let part = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        message(&[thinking, (block, vec![part(first), part(second)])], "tool_use")
    }
}

pub(super) mod google {
    use super::*;

    fn event(parts: &Value, reason: &Value) -> String {
        json!({
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}],
            "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20, "thoughtsTokenCount": 5},
            "modelVersion": "model-1-of-today",
        })
        .to_string()
    }

    pub(in super::super) fn text(parts: &[&str]) -> ScriptedResponse {
        let mut events = vec![event(&json!([{"text": "hm", "thought": true}]), &Value::Null)];
        events.extend(parts.iter().map(|part| event(&json!([{"text": part}]), &Value::Null)));
        events.push(event(&json!([{"text": ""}]), &json!("STOP")));
        sse(&events)
    }

    pub(in super::super) fn call(_: &str, name: &str, arguments: &str) -> ScriptedResponse {
        // Gemini cannot encode arguments that are not JSON.
        let arguments: Value =
            serde_json::from_str(arguments).unwrap_or_else(|_| json!("malformed"));
        let call =
            json!([{"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "s1"}]);
        sse(&[event(&call, &json!("STOP"))])
    }
}
