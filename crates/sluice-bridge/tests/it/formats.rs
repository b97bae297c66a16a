//! Responses in each provider's format, one event each, with 100 input and 20 output tokens.

use serde_json::{Value, json};

/// A text.
pub(crate) fn text(provider: &str, parts: &[&str]) -> Vec<String> {
    match provider {
        "openai" => openai(parts.iter().map(|part| json!({"content": part})), "stop"),
        "anthropic" => {
            let delta = |part: &&str| json!({"type": "text_delta", "text": part});
            anthropic(&json!({"type": "text", "text": ""}), parts.iter().map(delta), "end_turn")
        }
        _ => google(parts.iter().map(|part| json!({"text": part}))),
    }
}

/// A call of the tool that counts apples.
pub(crate) fn call(provider: &str, name: &str, arguments: &Value) -> Vec<String> {
    let written = arguments.to_string();
    match provider {
        "openai" => {
            let begins = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}]});
            let argues = json!({"tool_calls": [{"index": 0, "function": {"arguments": written}}]});
            openai([begins, argues].into_iter(), "tool_calls")
        }
        "anthropic" => {
            let block = json!({"type": "tool_use", "id": "c1", "name": name, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": written});
            anthropic(&block, [delta].into_iter(), "tool_use")
        }
        _ => google([json!({"functionCall": {"name": name, "args": arguments}})].into_iter()),
    }
}

/// An error.
pub(crate) fn complaint(provider: &str) -> String {
    match provider {
        "openai" => {
            json!({"error": {"message": "try later", "type": "server_error", "code": null}})
        }
        "anthropic" => {
            json!({"type": "error", "error": {"type": "api_error", "message": "try later"}})
        }
        _ => json!({"error": {"code": 500, "message": "try later", "status": "INTERNAL"}}),
    }
    .to_string()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn openai(deltas: impl Iterator<Item = Value>, reason: &str) -> Vec<String> {
    let delta = |delta: Value| {
        event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    };
    let mut events: Vec<String> = deltas.map(delta).collect();
    events.push(event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
    events.push(event(&json!({"choices": [], "usage": usage})));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn anthropic(block: &Value, deltas: impl Iterator<Item = Value>, reason: &str) -> Vec<String> {
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let mut events = vec![
        json!({"type": "message_start", "message": {"model": "model-1", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    ];
    let delta = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    events.extend(deltas.map(delta));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    let stop = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    let named = |one: &Value| {
        format!("event: {}\r\n{}", one["type"].as_str().expect("events have types"), event(one))
    };
    events.iter().map(named).collect()
}

fn google(parts: impl Iterator<Item = Value>) -> Vec<String> {
    let said =
        |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let mut events: Vec<Value> = parts.map(said).collect();
    let last = events.last_mut().expect("something is said");
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120});
    events.iter().map(event).collect()
}
