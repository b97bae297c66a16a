use super::*;
use crate::tools::{Tool, ToolAnswer, ToolServer, ToolTrouble};
use crate::wire::Place;
use sluice_core::port::Later;
use std::sync::Arc;

fn hear(events: &[Value]) -> (Listener, Draft) {
    let (mut listener, mut draft) = (Listener::default(), Draft::default());
    for event in events {
        let event = Event { name: String::new(), data: event.to_string() };
        listener.event(&event, &mut draft).expect("it is no error");
    }
    (listener, draft)
}

fn parts(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
}

#[test]
fn parts_go_back_signed_as_they_came_without_what_was_thought() {
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
    // Only names that Gemini gave are told it again.
    let told = draft.calls.into_iter().map(|call| {
        result(&Outcome { call, text: "x".to_owned(), failed: false })["functionResponse"].clone()
    });
    let told: Vec<Value> = told.collect();
    assert_eq!(told[0], json!({"name": "look", "response": {"result": "x"}}));
    assert_eq!(told[1], json!({"name": "look", "response": {"result": "x"}, "id": "own"}));
}

#[derive(Debug)]
struct Nobody;

impl ToolServer for Nobody {
    fn name(&self) -> &str {
        "nobody"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
        Box::pin(std::future::ready(Err(ToolTrouble(String::new()))))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        _: &'a Value,
        _: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        Box::pin(std::future::ready(Err(ToolTrouble(String::new()))))
    }
}

#[test]
fn a_tool_is_told_in_words_that_gemini_knows_or_as_it_is() {
    let told = |input_schema: Value| {
        let tool = Tool {
            name: "a.b".to_owned(),
            description: String::new(),
            input_schema,
            read_only: true,
        };
        super::tool(&Offered { alias: "a_b".to_owned(), tool, server: Arc::new(Nobody) })
    };
    let plain = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    assert_eq!(told(plain.clone())["parameters"], plain);
    assert_eq!(told(json!({"type": "object"})), json!({"name": "a_b", "description": ""}));
    let free = json!({"type": "object", "properties": {"x": {"type": "object"}}});
    assert_eq!(told(free.clone())["parametersJsonSchema"], free);
}

#[test]
fn a_schema_that_gemini_does_not_know_is_told_as_it_is() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "object"}}});
    let ask = Ask {
        model: "m",
        system: None,
        said: &[],
        tools: &[],
        max_output_tokens: None,
        shape: Shape::Fits(&schema),
    };
    let body = Google.body(&ask);
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
}
