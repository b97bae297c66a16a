use super::*;
use crate::tools::{Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use sluice_core::port::Later;
use std::sync::Arc;

fn hear(events: &[Value]) -> (GoogleDecoder, TurnDraft) {
    let (mut listener, mut draft) = (GoogleDecoder::default(), TurnDraft::default());
    for event in events {
        let event = SseEvent { name: String::new(), data: event.to_string() };
        listener.event(&event, &mut draft).expect("it is no error");
    }
    (listener, draft)
}

fn parts(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
}

#[test]
fn parts_are_returned_signed_without_reasoning() {
    let call =
        json!({"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "s2"});
    let named = json!({"functionCall": {"name": "look", "id": "own"}});
    let (mut listener, draft) = hear(&[
        parts(&json!([{"text": "hm", "thought": true}, {"text": "I "}])),
        parts(&json!([{"text": "look"}, {"text": ""}, {"text": ".", "thoughtSignature": "s1"}])),
        parts(&json!([call, named])),
    ]);
    assert_eq!(draft.text, "I look.");
    assert_eq!(
        listener.echo(&draft),
        json!({"role": "model", "parts": [
            {"text": "I look"}, {"text": ".", "thoughtSignature": "s1"}, call, named,
        ]})
    );
    let ids: Vec<&str> = draft.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["gemini_call_0", "own"]);
    assert_eq!(draft.calls[1].input(), Some(json!({})));
    // Only ids that Gemini sent are returned to it.
    let function = draft.calls.into_iter().map(|call| {
        result(&ToolResult { call, text: "x".to_owned(), failed: false })["functionResponse"]
            .clone()
    });
    let function: Vec<Value> = function.collect();
    assert_eq!(function[0], json!({"name": "look", "response": {"result": "x"}}));
    assert_eq!(function[1], json!({"name": "look", "response": {"result": "x"}, "id": "own"}));
}

#[derive(Debug)]
struct NoTools;

impl ToolServer for NoTools {
    fn name(&self) -> &str {
        "none"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        Box::pin(std::future::ready(Err(ToolServerError(String::new()))))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        _: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, crate::tools::Structured), ToolServerError>> {
        Box::pin(std::future::ready(Err(ToolServerError(String::new()))))
    }
}

#[test]
fn a_tool_schema_is_reduced_for_gemini_or_sent_unchanged() {
    let function = |input_schema: Value| {
        let tool = Tool {
            name: "a.b".to_owned(),
            description: String::new(),
            input_schema,
            read_only: true,
        };
        super::tool(&OfferedTool { alias: "a_b".to_owned(), tool, server: Arc::new(NoTools) })
    };
    let plain = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    assert_eq!(function(plain.clone())["parameters"], plain);
    assert_eq!(function(json!({"type": "object"})), json!({"name": "a_b", "description": ""}));
    let free = json!({"type": "object", "properties": {"x": {"type": "object"}}});
    assert_eq!(function(free.clone())["parametersJsonSchema"], free);
}

#[test]
fn an_unsupported_schema_is_sent_to_gemini_unchanged() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "object"}}});
    let ask = ModelRequest {
        model: "m",
        system: None,
        conversation: &[],
        tools: &[],
        max_output_tokens: None,
        format: AnswerFormat::Schema(&schema),
    };
    let body = Google.body(&ask);
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
}
