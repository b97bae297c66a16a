use super::*;
use expect_test::expect;

fn hear(events: &[Value]) -> (AnthropicDecoder, TurnDraft) {
    let mut listener = AnthropicDecoder { answers_by_tool: false, blocks: Vec::new() };
    let mut draft = TurnDraft::default();
    for event in events {
        let event = SseEvent { name: String::new(), data: event.to_string() };
        listener.event(&event, &mut draft).expect("it is no error");
    }
    (listener, draft)
}

#[test]
fn reasoning_is_returned_signed_and_in_order() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let (mut listener, draft) = hear(&[
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        start(1, json!({"type": "redacted_thinking", "data": "opaque"})),
        start(2, json!({"type": "text", "text": ""})),
        start(3, json!({"type": "something_new"})),
        delta(3, json!({"type": "new_delta", "text": "ignored"})),
        start(4, json!({"type": "tool_use", "id": "t", "name": "look", "input": {}})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "1}"})),
        delta(9, json!({"type": "text_delta", "text": "of no block"})),
    ]);
    assert_eq!(draft.text, "");
    let echo = serde_json::to_string_pretty(&listener.echo(&draft)).unwrap();
    expect![[r#"
        {
          "role": "assistant",
          "content": [
            {
              "type": "thinking",
              "thinking": "let me see",
              "signature": "sig"
            },
            {
              "type": "redacted_thinking",
              "data": "opaque"
            },
            {
              "type": "tool_use",
              "id": "t",
              "name": "look",
              "input": {
                "a": 1
              }
            }
          ]
        }"#]]
    .assert_eq(&echo);
}

#[test]
fn token_counts_are_totals_and_include_cached_tokens() {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100, "output_tokens": 1});
    let start = json!({"type": "message_start", "message": {"model": "m", "usage": usage}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}});
    let (_, draft) = hear(std::slice::from_ref(&start));
    assert!(!draft.counted.whole && draft.counted.input == 123);
    let (_, draft) = hear(&[start, end]);
    let counted = draft.counted;
    assert_eq!((counted.input, counted.cached, counted.output, counted.whole), (123, 20, 9, true));
    assert!(!draft.ended, "the last word is still to come");
}

#[test]
fn an_output_limit_is_always_sent() {
    let ask = ModelRequest {
        model: "m",
        system: None,
        conversation: &[],
        tools: &[],
        max_output_tokens: None,
        format: AnswerFormat::Text,
    };
    assert_eq!(Anthropic.body(&ask)["max_tokens"], OUTPUT_TOKENS_DEFAULT);
}

#[test]
fn results_are_one_message_in_the_order_of_the_calls() {
    let outcome = |id: &str, failed| ToolResult {
        call: crate::model::dialect::RequestedCall { id: id.to_owned(), ..Default::default() },
        text: format!("of {id}"),
        failed,
    };
    let said = [ConversationMessage::Results(vec![outcome("a", false), outcome("b", true)])];
    let ask = ModelRequest {
        model: "m",
        system: None,
        conversation: &said,
        tools: &[],
        max_output_tokens: None,
        format: AnswerFormat::Text,
    };
    assert_eq!(
        Anthropic.body(&ask)["messages"],
        json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "of a", "is_error": false},
            {"type": "tool_result", "tool_use_id": "b", "content": "of b", "is_error": true},
        ]}])
    );
}
