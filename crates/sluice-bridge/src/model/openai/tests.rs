use super::*;
use crate::model::dialect::RequestedCall;
use crate::model::draft::TokenCounts;

fn hear(events: &[Value]) -> (OpenAiDecoder, TurnDraft) {
    let (mut listener, mut draft) = (OpenAiDecoder::default(), TurnDraft::default());
    for event in events {
        let event = SseEvent { name: String::new(), data: event.to_string() };
        listener.event(&event, &mut draft).expect("it is no error");
    }
    (listener, draft)
}

fn calls(calls: &Value) -> Value {
    json!({"choices": [{"delta": {"tool_calls": calls}}]})
}

fn wanted(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn calls_are_assembled_for_any_chunking_and_numbering() {
    let expected = [wanted("a", "one", r#"{"x":1}"#), wanted("b", "two", "{}")];
    let whole = |index: Option<u64>, id: &str, name: &str, arguments: &str| {
        let mut call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        call
    };
    let more =
        |index: u64, arguments: &str| json!({"index": index, "function": {"arguments": arguments}});
    for events in [
        // As OpenAI sends them.
        vec![
            calls(&json!([whole(Some(0), "a", "one", "")])),
            calls(&json!([more(0, r#"{"x""#)])),
            calls(&json!([more(0, ":1}")])),
            calls(&json!([whole(Some(1), "b", "two", "{}")])),
        ],
        // Interleaved.
        vec![
            calls(&json!([whole(Some(0), "a", "one", ""), whole(Some(1), "b", "two", "")])),
            calls(&json!([more(1, "{"), more(0, r#"{"x":1"#)])),
            calls(&json!([more(0, "}"), more(1, "}")])),
        ],
        // Every index is 0 or missing; ids are repeated.
        vec![
            calls(&json!([whole(Some(0), "a", "one", r#"{"x":"#)])),
            calls(&json!([whole(Some(0), "a", "", "1}")])),
            calls(&json!([whole(Some(0), "b", "two", "{}")])),
        ],
        vec![calls(&json!([whole(None, "a", "one", r#"{"x":1}"#), whole(None, "b", "two", "{}")]))],
    ] {
        assert_eq!(hear(&events).1.calls, expected, "{events:?}");
    }
}

#[test]
fn a_call_without_an_id_gets_one() {
    let call = |index: u64| json!({"index": index, "function": {"name": "x", "arguments": "{}"}});
    let (_, draft) = hear(&[calls(&json!([call(0), call(1)]))]);
    assert_eq!(draft.calls, [wanted("call_0", "x", "{}"), wanted("call_1", "x", "{}")]);
}

#[test]
fn a_model_gets_its_message_back_with_valid_arguments() {
    let (mut listener, draft) = hear(&[
        json!({"choices": [{"delta": {"content": "hm"}}]}),
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{broken"}}])),
    ]);
    assert_eq!(
        listener.echo(&draft),
        json!({"role": "assistant", "content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        ]})
    );
}

#[test]
fn repeated_token_counts_are_final_only_at_the_end() {
    let usage = |written: u64| json!({"prompt_tokens": 7, "completion_tokens": written});
    let begun =
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": null}], "usage": usage(1)});
    let ended = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage(2)});
    assert!(!hear(std::slice::from_ref(&begun)).1.counted.whole);
    let counted = hear(&[begun, ended]).1.counted;
    assert_eq!(counted, TokenCounts { input: 7, output: 2, whole: true, ..TokenCounts::default() });
}

#[test]
fn the_end_counts_only_after_a_finish_reason() {
    let mut draft = TurnDraft::default();
    let done = SseEvent { name: String::new(), data: " [DONE]".to_owned() };
    OpenAiDecoder::default().event(&done, &mut draft).expect("it is no error");
    assert!(!draft.ended);
}

#[test]
fn openai_itself_gets_the_newer_limit_field() {
    let request = ModelRequest {
        model: "m",
        system: None,
        conversation: &[],
        tools: &[],
        max_output_tokens: Some(5),
        format: AnswerFormat::Text,
    };
    for (base, word) in [
        (None, "max_completion_tokens"),
        (Some("https://api.openai.com/v1"), "max_completion_tokens"),
        (Some("http://localhost:11434/v1"), "max_tokens"),
        (Some("https://api.openai.com.evil.test/v1"), "max_tokens"),
    ] {
        let body = OpenAi::at(base).body(&request);
        assert_eq!(body[word], 5, "{body}");
        assert_eq!(body.as_object().unwrap().len(), 5, "{body}");
    }
}
